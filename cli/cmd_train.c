/* cmd_train.c: `heed train`: options, signals and messages around heed_trainer. */
#include "cmd_models.h"
#include "command.h"
#include "option_groups.h"
#include "train_progress.h"
#include "train_signals.h"

#include <heed/task.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
    heed_recipe recipe;
    const char *folder, *resume;
    bool dry_run, json;
};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, folder, "model", NULL, "DIR",
                     "where the model is made; must not be there yet"),
    HEED_OPTION_TEXT(struct settings, resume, "resume", NULL, "DIR",
                     "go on with a training that was interrupted, or raise its limits"),
    HEED_OPTION_BOOL(struct settings, dry_run, "dry-run", NULL,
                     "check the data, say what training would need, and leave nothing behind"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "results as JSON objects on stdout, one a line"),
    HEED_TRAIN_OPTIONS(struct settings, recipe.train),
    HEED_MODEL_OPTIONS(struct settings, recipe.model),
};
static const char *const examples[] = {
    "heed train --model m --source train.en --target train.de",
    "heed train --model m --tsv pairs.tsv.gz --valid-tsv dev.tsv --max-minutes 30",
    "heed train --model m --tsv pairs.tsv --preset tiny --dry-run",
    "heed train --model mine --from en-de --tsv mine.tsv",
    "heed train --resume m",
    NULL,
};
const heed_option_set train_options = {
    .command = "heed train",
    .summary = "Train a translation model on pairs of sentences",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .bundles = heed_model_presets,
    .examples = examples,
    .groups = train_groups,
};

/* ---- running ---- */

static int finish(const struct settings *s, struct progress *p, const heed_train_result *r)
{
    const char *folder = s->resume ? s->resume : s->folder;
    progress_end(p);
    if (r->reason == HEED_TRAIN_ASKED) {
        fprintf(stderr, "stopped after update %lld and saved; go on with: heed train --resume %s\n",
                (long long)r->last.update, folder);
        return EXIT_INTERRUPTED;
    }
    progress_summary(p, folder, r);
    return EXIT_DONE;
}

static int run(const struct settings *s, heed_trainer *t, struct progress *p)
{
    heed_error err = {0};
    heed_train_result result;
    heed_train_forecast forecast;
    if (!s->dry_run)
        signals_prepare(NULL);
    heed_status status =
        s->dry_run ? heed_trainer_forecast(t, &forecast, &err) : heed_trainer_run(t, &result, &err);
    if (status) {
        progress_end(p);
        complain("%s", err.text);
        return EXIT_FAILED;
    }
    if (s->dry_run) {
        const heed_text_report text = heed_trainer_text(t);
        progress_forecast(p, &forecast, &text);
        progress_advise(p, heed_trainer_options(t), &forecast);
        return EXIT_DONE;
    }
    return finish(s, p, &result);
}

static int train(struct settings *s, const invocation *in)
{
    heed_error err = {0};
    struct progress p;
    const char **from = &s->recipe.train.from;
    if (*from)
        *from = find_model(*from, NULL, in->arena);
    s->recipe.origins = in->origins;
    progress_begin(&p, s->json);
    heed_train_hooks hooks = {
        .log = {progress_line, &p}, .progress = progress_show, .stop = signals_stop, .context = &p};
    signals_prepare(s->resume ? NULL : s->folder);
    signals_catch();
    heed_trainer *t = s->resume ? heed_trainer_resume(s->resume, &s->recipe, &hooks, NULL, &err)
                                : heed_trainer_new(s->folder, &s->recipe, &hooks, NULL, &err);
    int code = t ? run(s, t, &p) : EXIT_FAILED;
    if (!t) {
        signals_prepare(NULL); /* what failed because a signal removes it waits here for the end */
        progress_end(&p);
        complain("%s", err.text);
        if (err.status == HEED_ARGUMENT) {
            fputs("try 'heed train --help'\n", stderr);
            code = EXIT_USAGE;
        }
    }
    heed_trainer_free(t);
    signals_prepare(NULL);
    return code;
}

/* What goes together; the trainer checks the rest. */
static bool check(const struct settings *s)
{
    const char *wrong = NULL;
    if (!s->folder && !s->resume)
        wrong = "missing option '--model': the directory to make, or '--resume' to go on with one";
    else if (s->folder && !*s->folder)
        wrong = "option '--model' is empty, expected the directory to make";
    else if (s->folder && s->resume)
        wrong = "options '--model' and '--resume' cannot stand together";
    else if (s->resume && s->dry_run)
        wrong = "options '--resume' and '--dry-run' cannot stand together";
    if (wrong) {
        complain("%s", wrong);
        fputs("try 'heed train --help'\n", stderr);
    }
    return !wrong;
}

/* A resumed run starts from its stored options, and what is given again must agree with them or be
 * one that may change: they are read like a config file before the command line.  NULL after
 * saying what is wrong. */
static const char **resumed_words(invocation *in, int argc, const char *const *argv,
                                  const char *folder)
{
    static const char name[] = "/training/options.json";
    size_t n = strlen(folder) + sizeof name;
    char *path = heed_arena_allocate(in->arena, n);
    const char **words = heed_arena_allocate(in->arena, sizeof *words * (size_t)(argc + 2));
    in->exit_code = EXIT_FAILED;
    if (!path || !words) {
        complain("out of memory");
        return NULL;
    }
    snprintf(path, n, "%s%s", folder, name);
    words[0] = "--config";
    words[1] = path;
    for (int i = 0; i < argc; i++) {
        words[i + 2] = argv[i];
        if (strcmp(argv[i], "--preset") == 0 || strncmp(argv[i], "--preset=", 9) == 0) {
            complain("--preset cannot change on resume; leave it out, or train '%s' anew", folder);
            in->exit_code = EXIT_USAGE;
            return NULL;
        }
    }
    if (access(path, F_OK) != 0) {
        complain("cannot resume '%s': there is no training in it", folder);
        return NULL;
    }
    return words;
}

static int run_resumed(invocation *outer, int argc, const char *const *argv, struct settings *s)
{
    const char **words = resumed_words(outer, argc, argv, s->resume);
    invocation in;
    if (!words)
        return outer->exit_code;
    bool go = invocation_begin(&in, &train_options, argc + 2, words, s);
    int code = go ? train(s, &in) : in.exit_code;
    invocation_end(&in);
    return code;
}

/* --print-config shows what would be chosen, too, where there is a text to choose for.  False when
 * it is of no use, after saying why. */
static bool choose_to_print(invocation *in, struct settings *s)
{
    heed_error err = {0};
    struct progress p;
    heed_recipe *r = &s->recipe;
    if (in->action != HEED_OPTION_PRINT_CONFIG || s->resume ||
        !(r->train.source.count || r->train.tsv.count))
        return true;
    if (r->train.from)
        r->train.from = find_model(r->train.from, NULL, in->arena);
    r->origins = in->origins;
    progress_begin(&p, false);
    const heed_log_sink log = {progress_line, &p};
    heed_status status = heed_recipe_choose(r, &log, NULL, &err);
    if (status)
        complain(status == HEED_IO ? "nothing is chosen: %s" : "%s", err.text);
    in->exit_code = status == HEED_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    return !status || status == HEED_IO;
}

int train_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code;
    if (!invocation_parse(&in, &train_options, argc, argv, &s) || !choose_to_print(&in, &s) ||
        !invocation_runs(&in, &train_options, &s))
        code = in.exit_code;
    else if (!check(&s))
        code = EXIT_USAGE;
    else
        code = s.resume ? run_resumed(&in, argc, argv, &s) : train(&s, &in);
    invocation_end(&in);
    return code;
}
