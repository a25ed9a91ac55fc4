/* cmd_lab.c: `heed lab`: lists the labs, or runs one: options, signals and messages around it. */
#include "command.h"
#include "labs/lab.h"
#include "status_line.h"

#include <math.h>
#include <signal.h>
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

/* ---- while it runs ---- */

static volatile sig_atomic_t asked;

/* The second time the signal does what it does by itself. */
static void ask(int number)
{
    asked = 1;
    signal(number, SIG_DFL);
}

static bool stop_asked(void *context)
{
    (void)context;
    return asked;
}

static void show_progress(void *context, const lab_progress *p)
{
    struct status_line *line = context;
    char text[256], left[32];
    if (p->validated) {
        status_end(line);
        fprintf(stderr, "update %lld: %s %.4g%s\n", (long long)p->update, p->measure, p->score,
                p->best ? " (the best so far)" : "");
        return;
    }
    if (!status_due(line))
        return;
    double share = (double)p->update / (double)p->updates;
    snprintf(text, sizeof text, "seed %llu  update %lld  loss %.4f  %.1f updates/s  left %s",
             (unsigned long long)p->seed, (long long)p->update, p->loss,
             (double)p->update / p->seconds,
             status_duration(p->seconds * (1 - share) / share, left));
    status_show(line, text);
}

static void write_log(void *context, heed_log_level level, const char *line)
{
    (void)level;
    status_end(context);
    fprintf(stderr, "%s\n", line);
}

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

static int run_lab(const lab *l, const void *settings, heed_arena *arena)
{
    struct status_line line;
    heed_error err = {0};
    char time[32];
    const lab_common *common = settings;
    lab_session r = {
        .options = common,
        .hooks = {show_progress, stop_asked, heed_clock_seconds, &line, {write_log, &line}},
        .arena = arena};
    status_begin(&line);
    signal(SIGINT, ask);
    signal(SIGTERM, ask);
    heed_status status = l->run(&r, settings, &err);
    status_end(&line);
    if (status) {
        complain("%s", err.text);
        if (status == HEED_ARGUMENT)
            fprintf(stderr, "try '%s --help'\n", l->options->command);
        return status == HEED_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    if (r.stopped) {
        fprintf(stderr, "stopped; the weights so far are in '%s'\n", common->folder);
        return EXIT_INTERRUPTED;
    }
    if (common->json) {
        fputs(lab_results(&r, l, settings), stdout);
    } else {
        print_figures(&r);
        printf("trained %s; the model, results.json and pictures are in '%s'\n",
               status_duration(r.seconds, time), common->folder);
    }
    return EXIT_DONE;
}

/* --quick stands for a preset, which must be known before the other options are read.  NULL after
 * saying what is wrong. */
static const char **quick_words(heed_arena *arena, int *argc, const char *const *argv)
{
    const char **words = heed_arena_allocate(arena, sizeof *words * (size_t)(*argc + 2));
    bool quick = false, preset = false;
    for (int i = 0; words && i < *argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0;
        preset |= strncmp(argv[i], "--preset", 8) == 0;
        words[i] = argv[i];
    }
    if (!words || (quick && preset)) {
        complain("%s",
                 words ? "options '--quick' and '--preset' exclude each other" : "out of memory");
        return NULL;
    }
    if (quick) {
        words[(*argc)++] = "--preset";
        words[(*argc)++] = "quick";
    }
    return words;
}

static int begin_lab(const lab *l, int argc, const char *const *argv)
{
    invocation in = {.exit_code = EXIT_FAILED};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    void *settings = arena ? heed_arena_allocate(arena, l->settings) : NULL;
    const char **words = settings ? quick_words(arena, &argc, argv) : NULL;
    int code = EXIT_FAILED;
    if (!settings) {
        complain("out of memory");
    } else if (!words) {
        code = EXIT_USAGE;
    } else {
        code = invocation_begin(&in, l->options, argc, words, settings)
                   ? run_lab(l, settings, in.arena)
                   : in.exit_code;
        invocation_end(&in);
    }
    heed_arena_free(arena);
    return code;
}

int lab_run(int argc, const char *const *argv)
{
    const char *names[LABS + 1] = {NULL};
    for (int i = 0; i < LABS; i++)
        names[i] = all[i]->name;
    if (argc > 0 && argv[0][0] != '-') {
        int i = choose_word("lab", argv[0], names);
        return i < 0 ? EXIT_USAGE : begin_lab(all[i], argc - 1, argv + 1);
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
