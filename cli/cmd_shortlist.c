/* cmd_shortlist.c: `heed shortlist`: lists of likely translations, so that decoding need not
 * look at the whole vocabulary. */
#include "cmd_models.h"
#include "command.h"

#include <heed/task.h>
#include <stdio.h>

struct settings {
    const char *model;
    heed_option_list source, target, tsv;
    heed_shortlist_options lists;
};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, model, "model", NULL, "DIR",
                     "the model's directory, where the lists go"),
    HEED_OPTION_LIST(struct settings, source, "source", "FILE",
                     "text that the model was trained on, plain or .gz"),
    HEED_OPTION_LIST(struct settings, target, "target", "FILE",
                     "its translation, line by line; one file for each --source"),
    HEED_OPTION_LIST(struct settings, tsv, "tsv", "FILE", "both in one file: source TAB target"),
    HEED_OPTION_INT(struct settings, lists.translations, "translations", "100", 1, 100000, "N",
                    "target pieces for each source piece"),
    HEED_OPTION_INT(struct settings, lists.frequent, "frequent", "200", 0, 1000000, "N",
                    "frequent target pieces for every sentence"),
};
static const char *const examples[] = {
    "heed shortlist --model m --source train.en --target train.de",
    "heed translate --model m --shortlist news.en", NULL};
const heed_option_set shortlist_options = {
    .command = "heed shortlist",
    .summary = "Learn which pieces translate which, for 'heed translate --shortlist'",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static void write_log(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    complain("%s", line);
}

static bool learn(const struct settings *s)
{
    heed_error err = {0};
    const heed_log_sink log = {write_log, NULL};
    const heed_corpus_files files = {.source = s->source.items,
                                     .target = s->target.items,
                                     .pairs = s->source.count,
                                     .tsv = s->tsv.items,
                                     .tsvs = s->tsv.count};
    heed_corpus *c = heed_corpus_open(&files, &log, NULL, &err);
    if (c)
        heed_shortlist_train(s->model, c, &s->lists, NULL, &err);
    heed_corpus_free(c);
    if (err.status)
        complain("%s", err.text);
    return !err.status;
}

int shortlist_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    if (invocation_begin(&in, &shortlist_options, argc, argv, &s)) {
        in.exit_code = EXIT_USAGE;
        if (!s.model)
            complain("option '--model' is missing, expected the directory of a model");
        else if (s.source.count != s.target.count)
            complain("there are %d '--source' and %d '--target', expected the same number of each",
                     s.source.count, s.target.count);
        else if (s.source.count + s.tsv.count == 0)
            complain("there is no text, expected '--source' and '--target', or '--tsv'");
        else {
            s.model = find_model(s.model, NULL, in.arena);
            in.exit_code = learn(&s) ? EXIT_DONE : EXIT_FAILED;
        }
        if (in.exit_code == EXIT_USAGE)
            fprintf(stderr, "try '%s --help'\n", shortlist_options.command);
    }
    invocation_end(&in);
    return in.exit_code;
}
