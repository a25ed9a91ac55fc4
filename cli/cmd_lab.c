/* cmd_lab.c: `heed lab`: lists the labs, or runs one: options, signals and messages around it. */
#include "command.h"
#include "labs/lab.h"
#include "train_progress.h"
#include "train_ranks.h"
#include "train_signals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const lab *const all[] = {
#define LAB_ROW(name) &lab_##name,
    LAB_LIST(LAB_ROW)
#undef LAB_ROW
};
enum { LABS = sizeof all / sizeof *all };

static const char *const examples[] = {"heed lab", "heed lab ntm --help",
                                       "heed lab ntm --quick --model m", NULL};
const heed_option_set lab_options = {
    .command = "heed lab",
    .summary = "Reproduce a paper's own system on its own task; alone: list what there is",
    .arguments = "[NAME [options]]",
    .most = 1,
    .examples = examples,
};

/* ---- what came of it ---- */

static void print_figures(const lab_session *r)
{
    for (int i = 0; i < r->count; i++) {
        const lab_figure *f = &r->figures[i];
        if (isfinite(f->value))
            printf("%-60s %10.4g", f->name, f->value);
        else
            printf("%-60s %10s", f->name, "-");
        if (f->relation != LAB_NO_TARGET)
            printf("  %s %g: %s", f->relation == LAB_AT_MOST ? "at most" : "at least", f->target,
                   lab_figure_met(f) ? "met" : "missed");
        putchar('\n');
    }
}

static int run_lab(const lab *l, const void *settings, heed_arena *arena, heed_ranks *ranks)
{
    struct progress p;
    heed_error err = {0};
    char time[32];
    const lab_common *common = settings;
    lab_session r = {.options = common,
                     .hooks = {.log = {progress_line, &p},
                               .progress = progress_show,
                               .stop = signals_stop,
                               .ranks = ranks,
                               .context = &p},
                     .arena = arena};
    progress_begin(&p, common->json);
    ranks_silence(ranks, &r.hooks);
    heed_status status = l->run(&r, settings, &err);
    progress_end(&p);
    if (status) {
        ranks_complain(ranks, &err);
        if (status == HEED_ARGUMENT)
            fprintf(stderr, "try '%s --help'\n", l->options->command);
        return status == HEED_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    if (heed_ranks_rank(ranks) > 0)
        return r.stopped ? EXIT_INTERRUPTED : EXIT_DONE;
    if (r.stopped) {
        fprintf(stderr, "stopped and saved; go on with: %s --resume %s\n", l->options->command,
                r.folder);
        return EXIT_INTERRUPTED;
    }
    if (common->json) {
        fputs(lab_results(&r, l, settings), stdout);
    } else {
        print_figures(&r);
        printf("trained %s; the model, results.json and pictures are in '%s', curves in "
               "training/\n",
               status_duration(r.seconds, time), r.folder);
    }
    return EXIT_DONE;
}

/* The value of --resume, NULL if it is not there. */
static const char *resumed(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--resume") == 0 && i + 1 < argc)
            return argv[i + 1];
        if (strncmp(argv[i], "--resume=", 9) == 0)
            return argv[i] + 9;
    }
    return NULL;
}

/* --quick stands for a preset, and --resume for the options that the run was begun with: both must
 * be known before the other options are read.  NULL after saying what is wrong. */
static const char **all_words(heed_arena *arena, int *argc, const char *const *argv,
                              heed_ranks *ranks)
{
    heed_error err = {0};
    const char **words = heed_arena_allocate(arena, sizeof *words * (size_t)(*argc + 2));
    const char *folder = resumed(*argc, argv);
    const size_t room = folder ? strlen(folder) + sizeof "/config.json" : 1;
    char *path = heed_arena_allocate(arena, room);
    bool quick = false, preset = false, model = false;
    for (int i = 0; words && i < *argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0;
        preset |= strncmp(argv[i], "--preset", 8) == 0;
        model |= strncmp(argv[i], "--model", 7) == 0 || strcmp(argv[i], "-m") == 0;
        words[i] = argv[i];
    }
    if (!words || !path) {
        complain("out of memory");
        return NULL;
    }
    if (quick && preset) {
        complain("options '--quick' and '--preset' exclude each other");
        return NULL;
    }
    if (folder && (quick || preset || model)) {
        complain("options '--resume' and '%s' exclude each other", quick    ? "--quick"
                                                                   : preset ? "--preset"
                                                                            : "--model");
        return NULL;
    }
    if (folder)
        snprintf(path, room, "%s/config.json", folder);
    if (folder && heed_ranks_rank(ranks) == 0 && access(path, F_OK) != 0) {
        complain("cannot resume '%s': there is no lab in it", folder);
        return NULL;
    }
    const char *config = folder ? heed_ranks_file(ranks, path, &err) : NULL;
    if (folder && !config) {
        ranks_complain(ranks, &err);
        return NULL;
    }
    if (quick || folder) {
        words[(*argc)++] = quick ? "--preset" : "--config";
        words[(*argc)++] = quick ? "quick" : config;
    }
    return words;
}

static int begin_lab(const lab *l, int argc, const char *const *argv, heed_ranks *ranks)
{
    invocation in = {.exit_code = EXIT_FAILED};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    void *settings = arena ? heed_arena_allocate(arena, l->settings) : NULL;
    const char **words = settings ? all_words(arena, &argc, argv, ranks) : NULL;
    int code = EXIT_FAILED;
    if (!settings) {
        complain("out of memory");
    } else if (!words) {
        code = EXIT_USAGE;
    } else {
        const bool go = invocation_begin(&in, l->options, argc, words, settings);
        const lab_common *common = settings;
        if (go)
            ranks_settle(ranks, l->options, settings, &in, common->resume != NULL);
        code = go ? run_lab(l, settings, in.arena, ranks) : in.exit_code;
        invocation_end(&in);
    }
    heed_arena_free(arena);
    return code;
}

static int begin_on_ranks(const lab *l, int argc, const char *const *argv)
{
    signals_catch();
    heed_ranks *ranks = ranks_begin(argc, argv);
    return ranks ? ranks_end(ranks, begin_lab(l, argc, argv, ranks)) : EXIT_FAILED;
}

int lab_run(int argc, const char *const *argv)
{
    const char *names[LABS + 1] = {NULL};
    for (int i = 0; i < LABS; i++)
        names[i] = all[i]->name;
    if (argc > 0 && argv[0][0] != '-') {
        int i = choose_word("lab", argv[0], names);
        return i < 0 ? EXIT_USAGE : begin_on_ranks(all[i], argc - 1, argv + 1);
    }
    invocation in;
    int code = EXIT_DONE;
    if (invocation_begin(&in, &lab_options, argc, argv, NULL))
        for (int i = 0; i < LABS; i++)
            printf("%-10s  %s\n", all[i]->name, all[i]->options->summary);
    else
        code = in.exit_code;
    invocation_end(&in);
    return code;
}
