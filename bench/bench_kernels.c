/* bench_kernels.c: `heed bench kernels`: everything with 1 thread, then with all. */
#include "measure.h"

#include <stdio.h>

/* Best of what fits into this time; a product of 32000 words takes its three turns all the same. */
#define BUDGET 0.4

/* HEED_PROFILE's table: results alone go to stdout. */
static void write_log(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static bool run_with(const bench_settings *settings, int threads)
{
    heed_error err = {0};
    heed_tape_options options = {.threads = threads};
    bench_run r = {.settings = settings, .threads = threads, .budget = BUDGET};
    r.hold = heed_tape_new(&options, &err);
    r.yard = heed_tape_new(&options, &err);
    options.log.write = write_log;
    r.work = heed_tape_new(&options, &err);
    if (r.hold && r.work && r.yard) {
        void (*const parts[])(bench_run *) = {
            bench_machine, bench_few_rows,  bench_panels,     bench_linear,     bench_convolution,
            bench_memory,  bench_attention, bench_mechanisms, bench_projection, bench_small};
        for (size_t i = 0; i < sizeof parts / sizeof *parts && !r.failed; i++)
            parts[i](&r);
        if (!r.failed && !r.lines) {
            fprintf(stderr, "heed: no measurement has '%s' in its name\n", settings->only);
            r.failed = true;
        }
    } else {
        fprintf(stderr, "heed: cannot measure: %s\n", err.text);
        r.failed = true;
    }
    heed_tape_free(r.yard);
    heed_tape_free(r.work);
    heed_tape_free(r.hold);
    return !r.failed;
}

bool bench_kernels(const bench_settings *settings)
{
    heed_machine m;
    heed_machine_describe(&m);
    if (!settings->json)
        printf("%s, %s kernels, %s, %d threads at most\n", m.cpu, m.instruction_set, m.blas,
               m.threads);
    bench_header(settings);
    if (settings->threads)
        return run_with(settings, settings->threads);
    return run_with(settings, 1) && (m.threads == 1 || run_with(settings, m.threads));
}
