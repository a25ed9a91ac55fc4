/* bench_train.c: `heed bench train`: whole training steps (forward, backward, clipping, Adam),
 * as many real source and target tokens a second, and what share of the multiply-add peak that
 * is:
 *
 *   share = 6 (weights a source token meets * source tokens + the same for the target)
 *           / seconds / peak
 *
 * Two operations forward and four backward for each weight of a matrix product; attention's scores,
 * norms, dropout and Adam count as time, not as work.  The peak is measured between the turns, and
 * the best turn counts for both. */
#include "train_batches.h"

#include <heed/train.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define CLIP 1
#define RATE 1e-4
#define MEGABYTE (1024.0 * 1024.0)

struct training {
    const bench_batches *batches;
    heed_model *model;
    heed_optimizer *optimizer;
    heed_tape *tape;
    int threads;
    uint64_t step;
    double loss; /* of the newest batch, a target token */
};

static bool one_step(struct training *x, const heed_batch *b)
{
    const double tokens = (double)b->target.rows->rows;
    double nll;
    heed_tape_reset(x->tape);
    heed_tape_step(x->tape, x->step++, 0, 0);
    heed_backward(x->tape, heed_model_loss(x->model, x->tape, b, 1 / tokens, &nll));
    if (heed_tape_error(x->tape)->status)
        return false;
    heed_clip_norm(heed_model_params(x->model), CLIP, x->threads);
    heed_optimizer_step(x->optimizer, RATE, x->threads);
    x->loss = nll / tokens;
    return true;
}

/* One turn is every batch once. */
static bool turn(struct training *x, double *seconds)
{
    double start = heed_clock_seconds();
    for (int64_t i = 0; i < x->batches->count; i++)
        if (!one_step(x, &x->batches->batch[i]))
            return false;
    *seconds = heed_clock_seconds() - start;
    return true;
}

static double work(const struct training *x)
{
    heed_model_cost c = heed_model_costs(x->model);
    return 6 * ((double)c.source_weights * (double)x->batches->source_tokens +
                (double)c.target_weights * (double)x->batches->target_tokens);
}

/* What this project asks of its presets. */
static double target(const char *preset, int threads)
{
    static const struct {
        const char *preset;
        double one, two;
    } targets[] = {{"tiny", 0.50, 0.45}, {"small", 0.78, 0.72}, {"base", 0.85, 0.80}};
    for (size_t i = 0; preset && threads <= 2 && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(preset, targets[i].preset) == 0)
            return threads == 1 ? targets[i].one : targets[i].two;
    return NAN;
}

static void report(bench_run *r, const bench_train_settings *s, const struct training *x,
                   double seconds, double peak)
{
    const double tokens = (double)(x->batches->source_tokens + x->batches->target_tokens);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    char note[64];
    snprintf(note, sizeof note, "peak %.1f GFLOP/s, loss %.2f", peak * 1e-9, x->loss);
    bench_line line = {.bench = "training",
                       .value = tokens / seconds,
                       .unit = "tokens/s",
                       .reference = tokens / (work(x) / peak),
                       .ratio = work(x) / peak / seconds,
                       .target = target(s->preset, r->threads),
                       .note = note};
    snprintf(line.shape, sizeof line.shape, "%s", s->preset ? s->preset : "model");
    bench_report(r, &line);
    bench_line memory = {.bench = "training memory",
                         .value = (double)usage.ru_maxrss * 1024 / MEGABYTE,
                         .unit = "MB",
                         .reference = NAN,
                         .ratio = NAN,
                         .target = NAN};
    snprintf(memory.shape, sizeof memory.shape, "%s", line.shape);
    bench_report(r, &memory);
}

static void write_log(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static bool run_with(const bench_train_settings *s, const bench_batches *batches, int threads)
{
    heed_error err = {0};
    bench_run r = {.settings = &s->common, .threads = threads};
    struct training x = {.batches = batches, .threads = threads};
    heed_tape_options options = {.threads = threads, .seed = 1, .log.write = write_log};
    bool done = false;
    double best = INFINITY, peak = 0, seconds;
    if (!(x.model = heed_model_new(&s->model, 1, NULL, &err)) ||
        !(x.tape = heed_tape_new(&options, &err)) ||
        !(x.optimizer =
              heed_optimizer_new(heed_model_params(x.model),
                                 &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, &err)))
        goto done;
    if (!turn(&x, &seconds)) /* memory is there now */
        goto done;
    double start = heed_clock_seconds();
    for (int i = 0; i < s->turns || (s->turns == 0 && (i < 3 || heed_clock_seconds() - start < 10));
         i++) {
        peak = fmax(peak, bench_peak(threads));
        if (!turn(&x, &seconds))
            goto done;
        best = fmin(best, seconds);
    }
    report(&r, s, &x, best, peak);
    done = true;
done:
    if (!done)
        fprintf(stderr, "heed: cannot measure training: %s\n",
                err.status ? err.text : heed_tape_error(x.tape)->text);
    heed_optimizer_free(x.optimizer);
    heed_tape_free(x.tape);
    heed_model_free(x.model);
    return done;
}

bool bench_train(const bench_train_settings *s)
{
    heed_machine m;
    heed_error err = {0};
    heed_machine_describe(&m);
    heed_arena *arena = heed_arena_new(NULL, &err);
    bench_batches batches;
    bool done = false;
    if (!arena || bench_batches_make(s, arena, &batches, &err)) {
        fprintf(stderr, "heed: %s\n", err.text);
        goto done;
    }
    if (!s->common.json)
        printf(
            "%s, %s kernels, %s, %d threads at most\n"
            "%s: %lld batches, %lld source and %lld target tokens, %lld pairs, vocabulary %lld\n",
            m.cpu, m.instruction_set, m.blas, m.threads, s->ids ? s->ids : "made-up sentences",
            (long long)batches.count, (long long)batches.source_tokens,
            (long long)batches.target_tokens, (long long)batches.pairs,
            (long long)s->model.target_vocabulary);
    bench_header(&s->common);
    if (s->common.threads)
        done = run_with(s, &batches, s->common.threads);
    else
        done = run_with(s, &batches, 1) && (m.threads == 1 || run_with(s, &batches, m.threads));
done:
    heed_arena_free(arena);
    return done;
}
