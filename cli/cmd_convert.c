/* cmd_convert.c: `heed convert`: a model with other numbers, for decoding. */
#include "cmd_models.h"
#include "command.h"
#include "numbers.h"

#include <heed/translate.h>
#include <stdio.h>
#include <sys/stat.h>

struct settings {
    int numbers;
};
static const heed_option fields[] = {NUMBERS_OPTION(struct settings, numbers)};
static const char *const examples[] = {"heed convert m m-int8 --quantize int8",
                                       "heed convert m m-fp16 --quantize fp16",
                                       "heed translate --model m-int8 news.en", NULL};
const heed_option_set convert_options = {
    .command = "heed convert",
    .summary = "Write a model as int8 or fp16: smaller and faster",
    .arguments = "DIR OUT",
    .least = 2,
    .most = 2,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static double megabytes(const char *folder)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    return stat(path, &st) == 0 ? (double)st.st_size / 1e6 : 0;
}

int convert_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    if (invocation_begin(&in, &convert_options, argc, argv, &s)) {
        const char *from = find_model(in.words.items[0], NULL, in.arena), *to = in.words.items[1];
        heed_error err = {0};
        in.exit_code = EXIT_DONE;
        if (heed_convert(from, to, (heed_number_kind)s.numbers, &err)) {
            complain("%s", err.text);
            in.exit_code = EXIT_FAILED;
        } else {
            fprintf(stderr, "'%s': %.1f MB of weights, '%s': %.1f MB\n", from, megabytes(from), to,
                    megabytes(to));
        }
    }
    invocation_end(&in);
    return in.exit_code;
}
