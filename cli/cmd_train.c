/* cmd_train.c: `heed train`: options, signals and messages around heed_trainer, for every kind of
 * training. */
#include "command.h"
#include "train_kinds.h"
#include "train_progress.h"
#include "train_ranks.h"
#include "train_signals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One run of the command. */
struct run {
    const train_kind *kind;
    struct train_common *settings; /* and the rest of the kind's */
    const invocation *in;
    heed_ranks *ranks;
};

/* ---- running ---- */

static int finish(const struct run *r, struct progress *p, const heed_train_result *result)
{
    const struct train_common *s = r->settings;
    const char *folder = s->resume ? s->resume : s->folder;
    progress_end(p);
    if (result->reason == HEED_TRAIN_ASKED) {
        fprintf(stderr, "stopped after update %lld and saved; go on with: heed train --resume %s\n",
                (long long)result->last.update, folder);
        return EXIT_INTERRUPTED;
    }
    progress_summary(p, folder, result, r->kind->then);
    return EXIT_DONE;
}

static void tell_forecast(const struct run *r, struct progress *p, const heed_trainer *t,
                          const heed_train_forecast *forecast)
{
    progress_end(p);
    if (p->json)
        putchar('{');
    r->kind->report(t, p->json);
    progress_forecast(p, forecast, r->kind->speed);
    progress_advise(p, heed_trainer_options(t), forecast);
}

static int run(const struct run *r, heed_trainer *t, struct progress *p)
{
    heed_error err = {0};
    heed_train_result result;
    heed_train_forecast forecast;
    const bool dry = r->settings->dry_run;
    if (!dry)
        signals_prepare(NULL);
    heed_status status =
        dry ? heed_trainer_forecast(t, &forecast, &err) : heed_trainer_run(t, &result, &err);
    if (status) {
        progress_end(p);
        ranks_complain(r->ranks, &err);
        return EXIT_FAILED;
    }
    if (heed_ranks_rank(r->ranks) > 0) /* rank 0 says what has come of it */
        return !dry && result.reason == HEED_TRAIN_ASKED ? EXIT_INTERRUPTED : EXIT_DONE;
    if (!dry)
        return finish(r, p, &result);
    tell_forecast(r, p, t, &forecast);
    return EXIT_DONE;
}

static int train(const struct run *r)
{
    heed_error err = {0};
    struct progress p;
    progress_begin(&p, r->settings->json);
    heed_train_hooks hooks = {.log = {progress_line, &p},
                              .progress = progress_show,
                              .stop = signals_stop,
                              .ranks = r->ranks,
                              .context = &p};
    ranks_silence(r->ranks, &hooks);
    ranks_settle(r->ranks, r->kind->options, r->settings, r->in, r->settings->resume != NULL);
    signals_prepare(r->settings->resume ? NULL : r->settings->folder);
    heed_trainer *t = r->kind->open(r->settings, r->in, &hooks, &err);
    int code = t ? run(r, t, &p) : EXIT_FAILED;
    if (!t) {
        signals_prepare(NULL); /* what failed because a signal removes it waits here for the end */
        progress_end(&p);
        ranks_complain(r->ranks, &err);
        if (err.status == HEED_ARGUMENT) {
            fprintf(stderr, "try '%s --help'\n", r->kind->options->command);
            code = EXIT_USAGE;
        }
    }
    heed_trainer_free(t);
    signals_prepare(NULL);
    return code;
}

/* What goes together; the trainer checks the rest. */
static bool check(const struct run *r)
{
    const struct train_common *s = r->settings;
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
        fprintf(stderr, "try '%s --help'\n", r->kind->options->command);
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

static int run_resumed(struct run *r, invocation *outer, int argc, const char *const *argv)
{
    const char **words = resumed_words(outer, argc, argv, r->settings->resume);
    invocation in;
    if (!words)
        return outer->exit_code;
    bool go = invocation_begin(&in, r->kind->options, argc + 2, words, r->settings);
    r->in = &in;
    int code = go ? train(r) : in.exit_code;
    invocation_end(&in);
    return code;
}

/* Any rank but the first: what rank 0 trains, as a run that is resumed from a folder of its own.
 * Of its own words, only the number of threads counts. */
static int run_other(struct run *r, const invocation *outer)
{
    heed_error err = {0};
    char path[4096 + 64], threads[32];
    invocation in;
    const char *folder = heed_ranks_folder(r->ranks, &err);
    if (!folder) {
        ranks_complain(r->ranks, &err);
        return EXIT_FAILED;
    }
    snprintf(path, sizeof path, "%s/training/options.json", folder);
    snprintf(threads, sizeof threads, "%lld",
             (long long)ranks_threads(r->ranks, r->kind->options, r->settings, outer));
    const char *const words[] = {"--config", path, "--threads", threads};
    const bool dry = r->settings->dry_run;
    if (!invocation_begin(&in, r->kind->options, 4, words, r->settings))
        return in.exit_code;
    r->settings->resume = folder;
    r->settings->dry_run = dry;
    r->in = &in;
    const int code = train(r);
    invocation_end(&in);
    return code;
}

/* --print-config shows what would be chosen, too, where there is a text to choose for.  False when
 * it is of no use, after saying why. */
static bool choose_to_print(const struct run *r, invocation *in)
{
    heed_error err = {0};
    struct progress p;
    if (in->action != HEED_OPTION_PRINT_CONFIG || r->settings->resume || !r->kind->choose)
        return true;
    progress_begin(&p, false);
    const heed_log_sink log = {progress_line, &p};
    heed_status status = r->kind->choose(r->settings, in, &log, &err);
    if (status)
        complain(status == HEED_IO ? "nothing is chosen: %s" : "%s", err.text);
    in->exit_code = status == HEED_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    return !status || status == HEED_IO;
}

static int run_on_ranks(struct run *r, invocation *in, int argc, const char *const *argv)
{
    signals_catch();
    if (!(r->ranks = ranks_begin(argc, argv)))
        return EXIT_FAILED;
    return ranks_end(r->ranks, heed_ranks_rank(r->ranks) > 0 ? run_other(r, in)
                               : r->settings->resume         ? run_resumed(r, in, argc, argv)
                                                             : train(r));
}

static int run_kind(const train_kind *kind, void *settings, int argc, const char *const *argv)
{
    invocation in;
    struct run r = {.kind = kind, .settings = settings, .in = &in};
    int code;
    if (!invocation_parse(&in, kind->options, argc, argv, settings) || !choose_to_print(&r, &in) ||
        !invocation_runs(&in, kind->options, settings))
        code = in.exit_code;
    else if (!check(&r))
        code = EXIT_USAGE;
    else
        code = run_on_ranks(&r, &in, argc, argv);
    invocation_end(&in);
    return code;
}

int train_run(int argc, const char *const *argv)
{
    const train_kind *kind = train_kind_find(argc, argv);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    void *settings = arena && kind ? heed_arena_allocate(arena, kind->settings) : NULL;
    int code = kind ? EXIT_FAILED : EXIT_USAGE;
    if (settings)
        code = run_kind(kind, memset(settings, 0, kind->settings), argc, argv);
    else if (kind)
        complain("out of memory");
    heed_arena_free(arena);
    return code;
}
