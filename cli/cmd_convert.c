/* cmd_convert.c: `heed convert`: a model with other numbers, for decoding. */
#include "cmd_models.h"
#include "command.h"
#include "numbers.h"

#include <heed/translate.h>
#include <stdio.h>
#include <sys/stat.h>

/* Forms that a model can be written in: heed's own, then those of heed_export_form. */
enum { OWN_FORM };
struct settings {
    int numbers, form;
    const char *sample;
};
static const heed_option fields[] = {
    NUMBERS_OPTION(struct settings, numbers),
    HEED_OPTION_CHOICE(struct settings, form, "to", "heed",
                       HEED_WORDS("heed", "marian", "firefox", "hugging-face"),
                       "form: heed's own, or another program's (--quantize is heed's alone)"),
    HEED_OPTION_TEXT(struct settings, sample, "sample", NULL, "FILE",
                     "firefox: pairs, source TAB target, that tell how large activations get; "
                     "without it, the model's own sample.tsv"),
};
static const char *const examples[] = {"heed convert m m-int8 --quantize int8",
                                       "heed convert m m-fp16 --quantize fp16",
                                       "heed translate --model m-int8 news.en",
                                       "heed convert student firefox-ende --to firefox", NULL};
const heed_option_set convert_options = {
    .command = "heed convert",
    .summary = "Write a model as int8 or fp16, or in another program's form",
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
        const bool own = s.form == OWN_FORM;
        if (own ? heed_convert(from, to, (heed_number_kind)s.numbers, &err)
                : heed_export(from, to, (heed_export_form)(s.form - 1), s.sample, &err)) {
            complain("%s", err.text);
            in.exit_code = EXIT_FAILED;
        } else if (own) {
            if (megabytes(from) > 0)
                fprintf(stderr, "'%s': %.1f MB of weights, ", from, megabytes(from));
            fprintf(stderr, "'%s': %.1f MB\n", to, megabytes(to));
        }
    }
    invocation_end(&in);
    return in.exit_code;
}
