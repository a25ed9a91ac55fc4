/* bench_decode.c: `heed bench decode`: tokens a second that come out of an engine, as its peers
 * were measured: random weights, 200 lines of 12 tokens, 16 tokens out for each, EOS and UNK
 * never.
 *
 * A cell is a model, a kind of weights (fp32, int8), a beam, lines that are decoded together, and
 * workers.  Each is measured in a process of its own, so that its memory is its own, on a model
 * that another process has written.  The reference is CTranslate2 4.8.1 on one or two Zen 3 cores
 * that gave 103.6 GFLOP/s and 199 GOP/s each (vpmaddubsw, vpmaddwd, vpaddd): tokens for each
 * operation of the peak are compared, and the peak is measured beside every turn. */
#include "decode_products.h"
#include "measure.h"

#include <dirent.h>
#include <heed/io.h>
#include <heed/translate.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 200, TOKENS_IN = 12, TOKENS_OUT = 16, MOST_WORKERS = 64 };
enum { PIECE = 32, PIECES = (LINES + PIECE - 1) / PIECE };
#define PEER_FMA 103.6e9
#define PEER_BYTES 199e9

struct peer {
    const char *preset;
    bool bytes;
    int64_t beam, batch;
    double one, two; /* tokens/s with one and two workers */
    double one_mb, two_mb;
};
static const struct peer peers[] = {
    {"base", false, 4, 32, 215, 413, 396, 546},   {"base", false, 1, 32, 525, 962, 300, 347},
    {"small", false, 4, 32, 1553, 2795, 83, 124}, {"small", false, 1, 32, 4123, 7537, 60, 76},
    {"base", true, 4, 32, 363, 687, 239, 362},    {"base", true, 1, 32, 968, 1781, 128, 171},
    {"small", true, 4, 32, 2269, 4386, 65, 101},  {"small", true, 1, 32, 7385, 13042, 37, 50},
    {"base", false, 4, 1, 51, NAN, 256, NAN},     {"base", false, 1, 1, 98, NAN, 256, NAN},
    {"small", false, 4, 1, 577, NAN, 45, NAN},    {"small", false, 1, 1, 1292, NAN, 45, NAN},
    {"base", true, 4, 1, 123, NAN, 86, NAN},      {"base", true, 1, 1, 160, NAN, 86, NAN},
    {"small", true, 4, 1, 1471, NAN, 25, NAN},    {"small", true, 1, 1, 2157, NAN, 25, NAN},
};

struct cell {
    const bench_decode_settings *s;
    char folder[64];
    int64_t beam, batch;
    int workers;
};

static bool is_bytes(const bench_decode_settings *s)
{
    return s->numbers == HEED_NUMBERS_INT8;
}

static bool is_base(const bench_decode_settings *s)
{
    return s->preset && strcmp(s->preset, "base") == 0;
}

static const struct peer *peer_of(const struct cell *c)
{
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if (c->s->preset && strcmp(peers[i].preset, c->s->preset) == 0 &&
            peers[i].bytes == is_bytes(c->s) && peers[i].beam == c->beam &&
            peers[i].batch == c->batch)
            return &peers[i];
    return NULL;
}

/* What this project asks, as times the peer. */
static double target(const struct cell *c)
{
    const bool base = is_base(c->s);
    if (c->workers != 1 || !peer_of(c))
        return NAN;
    if (c->s->shortlist)
        return base && is_bytes(c->s) && c->batch > 1 ? 2 : NAN;
    if (c->batch == 1) /* base in numbers, greedy, is bound by memory */
        return base && c->beam == 1 && !is_bytes(c->s) ? NAN : 2;
    if (!is_bytes(c->s))
        return c->beam == 4 ? 1.15 : 1.25;
    return 1.4;
}

/* ---- a model ---- */

static bool complain(const char *what, const heed_error *err)
{
    fprintf(stderr, "heed: %s: %s\n", what, err->text);
    return false;
}

static void add_list(heed_safetensors_writer *w, const char *name, const int32_t *ids,
                     int64_t count, heed_error *err)
{
    const heed_stored s = {.name = name,
                           .dtype = HEED_I32,
                           .rank = 1,
                           .dim = {count},
                           .data = ids,
                           .bytes = (size_t)count * sizeof *ids};
    heed_safetensors_writer_add(w, &s, err);
}

/* Random translations of each piece, enough for about s->shortlist candidates a line. */
static bool write_shortlist(const struct cell *c, heed_error *err)
{
    const int64_t words = c->s->model.source_vocabulary;
    const int64_t each = (c->s->shortlist + TOKENS_IN - 1) / TOKENS_IN;
    const int32_t always[] = {HEED_EOS};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 2});
    char path[128];
    int32_t *offset = malloc((size_t)(words + 1) * sizeof *offset);
    int32_t *token = malloc((size_t)(words * each) * sizeof *token);
    heed_safetensors_writer *w = heed_safetensors_writer_new(NULL, err);
    bool good = offset && token && w;
    for (int64_t i = 0; good && i <= words; i++)
        offset[i] = (int32_t)(i * each);
    for (int64_t i = 0; good && i < words * each; i++)
        token[i] = (int32_t)heed_rng_below(&rng, (uint64_t)i, words);
    if (good) {
        add_list(w, "offset", offset, words + 1, err);
        add_list(w, "token", token, words * each, err);
        add_list(w, "always", always, 1, err);
        snprintf(path, sizeof path, "%s/shortlist.safetensors", c->folder);
        good = !heed_safetensors_writer_write(w, path, err);
    }
    heed_safetensors_writer_free(w);
    free(offset);
    free(token);
    return good;
}

/* With its files, half-written ones too. */
static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    char path[512];
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

/* Writes the model with random weights, converted, to c->folder. */
static bool write_model(const struct cell *c)
{
    char plain[96], path[128];
    heed_error err = {0};
    snprintf(plain, sizeof plain, "%s/plain", c->folder);
    snprintf(path, sizeof path, "%s/model.safetensors", plain);
    heed_model *m = heed_model_new(&c->s->model, 1, NULL, &err);
    bool good = m && mkdir(plain, 0777) == 0 &&
                !heed_model_describe(plain, &c->s->model, &(heed_text_config){0}, &err) &&
                !heed_params_save(heed_model_params(m), path, &err);
    heed_model_free(m);
    good = good && !heed_convert(plain, c->folder, (heed_number_kind)c->s->numbers, &err);
    if (good && c->s->shortlist)
        good = write_shortlist(c, &err);
    remove_folder(plain);
    return good || complain("cannot write a model to measure with", &err);
}

/* ---- decoding ---- */

struct worker {
    const struct cell *c;
    heed_session *session;
    heed_arena *arena;
    const heed_tokens *source; /* (lines) its share */
    int64_t lines, tokens;
    heed_error err;
};

static void *decode_lines(void *context)
{
    struct worker *w = context;
    const struct cell *c = w->c;
    const heed_search_options o = {.beam = c->beam,
                                   .n_best = 1,
                                   .length_penalty = 0.6,
                                   .extra_length = 2 * TOKENS_OUT,
                                   .max_length = TOKENS_OUT,
                                   .min_length = TOKENS_OUT,
                                   .suppress_unk = true,
                                   .unscored = true, /* as is the peer's default */
                                   .allow_loops = true};
    heed_hypothesis *out = malloc((size_t)c->batch * sizeof *out);
    w->tokens = 0;
    for (int64_t i = 0; out && i < w->lines && !w->err.status; i += c->batch) {
        int64_t n = w->lines - i < c->batch ? w->lines - i : c->batch;
        heed_arena_reset(w->arena);
        if (!heed_search(w->session, &o, w->source + i, n, w->arena, out, &w->err))
            for (int64_t k = 0; k < n; k++)
                w->tokens += out[k].count;
    }
    free(out);
    return NULL;
}

/* All lines once; seconds, or a negative number. */
static double turn(struct worker *w, int workers)
{
    pthread_t thread[MOST_WORKERS];
    const double start = heed_clock_seconds();
    int started = 1;
    for (; started < workers; started++)
        if (pthread_create(&thread[started], NULL, decode_lines, &w[started]) != 0)
            break;
    decode_lines(&w[0]);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    bool good = started == workers;
    for (int i = 0; i < workers; i++)
        good = good && !w[i].err.status && w[i].tokens == TOKENS_OUT * w[i].lines;
    return good ? heed_clock_seconds() - start : -1;
}

/* All lines once, piece by piece, and for each the best time so far.  A machine that is shared is
 * hardly ever quiet for the many seconds that all lines take, but it may be for the fraction of one
 * in which the peak is measured.  Workers are timed as a whole. */
static bool turn_by_pieces(struct worker *w, int workers, double best[PIECES])
{
    double seconds = workers == 1 ? 0 : turn(w, workers);
    if (workers > 1)
        best[0] = fmin(best[0], seconds);
    for (int i = 0; workers == 1 && seconds >= 0 && i < PIECES; i++) {
        struct worker part = *w;
        part.source += i * PIECE;
        part.lines = LINES - i * PIECE < PIECE ? LINES - i * PIECE : PIECE;
        seconds = turn(&part, 1);
        best[i] = fmin(best[i], seconds);
        w->err = part.err;
    }
    return seconds >= 0;
}

/* Operations a second that the machine makes, over about that many seconds: as long as a piece
 * takes, because what a neighbour leaves in short is not to be had for long. */
static double peak(const struct cell *c, double seconds)
{
    const double start = heed_clock_seconds();
    double sum = 0; /* of seconds for one operation */
    int turns = 0;
    do {
        sum += 1 / (is_bytes(c->s) ? bench_int8_peak(c->workers) : bench_peak(c->workers));
        turns++;
    } while (heed_clock_seconds() - start < seconds);
    return turns / sum;
}

static void name_cell(const struct cell *c, bench_line *line)
{
    static const char *const numbers[] = {"fp32", "fp16", "int8"};
    snprintf(line->shape, sizeof line->shape, "%s %s beam %lld batch %lld%s",
             c->s->preset ? c->s->preset : "model", numbers[c->s->numbers], (long long)c->beam,
             (long long)c->batch, c->s->shortlist ? " short" : "");
}

/* Bytes of the weights that a line needs when it is alone: the encoder's and those of the keys and
 * values of its words once, the others for every token.  (Greedy search in a small model of numbers
 * does with less: it does not make all logits.) */
struct needed {
    double once, each;
};

static struct needed weights_needed(const struct cell *c)
{
    char path[128];
    heed_error err = {0};
    struct needed all = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", c->folder);
    heed_safetensors *f = heed_safetensors_open(path, NULL, &err);
    for (int i = 0; f && i < heed_safetensors_count(f); i++) {
        const heed_stored *x = heed_safetensors_at(f, i);
        bool once = strncmp(x->name, "encoder.", 8) == 0 || strstr(x->name, ".cross.kv.");
        /* 16 bits are unpacked when the model is opened */
        *(once ? &all.once : &all.each) += (double)x->bytes * (x->dtype == HEED_F16 ? 2 : 1);
    }
    heed_safetensors_close(f);
    return all;
}

/* One line at a time reads the weights again and again: how fast, against reading as many bytes as
 * a token needs and nothing else, again and again.  Both take about as long, in turns: what memory
 * gives changes from second to second, and the best of short turns is not to be had in a long one.
 * What is read alone would add to the memory: report that first. */
static void report_reading(const struct cell *c, struct worker *w)
{
    enum { SOME = 8, TURNS = 8 };
    bench_run r = {.settings = &c->s->common, .threads = 1};
    const struct needed need = weights_needed(c);
    const int64_t n = (int64_t)need.each / (int64_t)sizeof(heed_real);
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, &err); /* of large pages, as the weights are */
    heed_real *x = arena ? heed_arena_allocate(arena, (size_t)n * sizeof *x) : NULL;
    double best = INFINITY, alone = INFINITY;
    for (int64_t i = 0; x && i < n; i++)
        x[i] = 1;
    w->lines = SOME;
    for (int i = 0; x && i < TURNS; i++) {
        double reading = 0;
        for (int k = 0; k < SOME * TOKENS_OUT; k++)
            reading += bench_read(x, n);
        double seconds = turn(w, 1);
        alone = fmin(alone, reading);
        best = seconds > 0 ? fmin(best, seconds) : best;
    }
    heed_arena_free(arena);
    const double rate = SOME * (need.once + TOKENS_OUT * need.each) / best;
    const double reading = SOME * TOKENS_OUT * need.each / alone;
    bench_line line = {.bench = "reading weights",
                       .value = 1e-9 * rate,
                       .unit = "GB/s",
                       .reference = 1e-9 * reading,
                       .ratio = rate / reading,
                       .target = is_base(c->s) && c->beam == 1 && !is_bytes(c->s) ? 0.85 : NAN};
    name_cell(c, &line);
    bench_report(&r, &line);
}

/* The whole against the peak, operations of products alone counted; and the same of the products
 * without what stands between them, timed in turns with the peak. */
static bool report_share(const struct cell *c, double seconds, double best_peak, heed_error *err)
{
    bench_run r = {.settings = &c->s->common, .threads = c->workers};
    const bench_products_form form = {.model = &c->s->model,
                                      .bytes = is_bytes(c->s),
                                      .batch = c->batch,
                                      .beam = c->beam,
                                      .tokens_in = TOKENS_IN + 1,
                                      .out = TOKENS_OUT,
                                      .shortlist = c->s->shortlist};
    bench_products *p = bench_products_new(&form, err);
    if (!p)
        return false;
    const double batches = (double)LINES / (double)c->batch;
    double all = bench_products_operations(p), best = INFINITY, of = 0;
    const double start = heed_clock_seconds();
    for (int i = 0; i < 3 || heed_clock_seconds() - start < c->s->seconds / 2; i++) {
        const double turn = bench_products_turn(p);
        best = fmin(best, turn);
        of = fmax(of, peak(&(struct cell){.s = c->s, .workers = 1}, turn));
    }
    bench_products_free(p);
    bench_line line = {.bench = "share of the peak",
                       .value = 1e-9 * all * batches / seconds,
                       .unit = "G/s",
                       .reference = 1e-9 * best_peak,
                       .ratio = all * batches / seconds / best_peak,
                       .target = NAN};
    name_cell(c, &line);
    bench_report(&r, &line);
    const bool student = c->s->preset && strcmp(c->s->preset, "student") == 0;
    r.threads = 1;
    line.bench = "products alone";
    line.value = 1e-9 * all / best;
    line.reference = 1e-9 * of;
    line.ratio = all / best / of;
    line.target = student && is_bytes(c->s) && c->batch > 1 ? 0.6 : NAN;
    bench_report(&r, &line);
    return true;
}

static void report(const struct cell *c, double opened, double seconds, double best_peak)
{
    bench_run r = {.settings = &c->s->common, .threads = c->workers};
    const struct peer *p = peer_of(c);
    const double peer_peak = c->workers * (is_bytes(c->s) ? PEER_BYTES : PEER_FMA);
    const double theirs = !p ? NAN : c->workers == 1 ? p->one : c->workers == 2 ? p->two : NAN;
    const double rate = LINES * TOKENS_OUT / seconds;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    bench_line line = {.bench = "decoding",
                       .value = rate,
                       .unit = "tokens/s",
                       .reference = theirs * best_peak / peer_peak,
                       .ratio = rate / (theirs * best_peak / peer_peak),
                       .target = target(c)};
    name_cell(c, &line);
    bench_report(&r, &line);
    const double mb = (double)usage.ru_maxrss / 1024;
    const double their_mb = !p                ? NAN
                            : c->workers == 1 ? p->one_mb
                            : c->workers == 2 ? p->two_mb
                                              : NAN;
    bench_line memory = {.bench = "decoding memory",
                         .value = mb,
                         .unit = "MB",
                         .reference = their_mb,
                         .ratio = their_mb / mb,
                         .target = isnan(their_mb) ? NAN : 1};
    name_cell(c, &memory);
    bench_report(&r, &memory);
    /* Asked of a large model that is used straight from its file, which is in memory by now. */
    const bool base = is_base(c->s) && is_bytes(c->s);
    bench_line opening = {.bench = "opening",
                          .value = 1e3 * opened,
                          .unit = "ms",
                          .reference = base ? 20 : NAN,
                          .ratio = base ? 20e-3 / opened : NAN,
                          .target = base ? 1 : NAN};
    name_cell(c, &opening);
    bench_report(&r, &opening);
}

/* All lines by one worker and by all of them, in turns. */
static bool report_workers(const struct cell *c, struct worker *w)
{
    bench_run r = {.settings = &c->s->common, .threads = c->workers};
    struct worker alone = *w;
    double best = INFINITY, one = INFINITY;
    alone.lines = LINES;
    const double start = heed_clock_seconds();
    for (int i = 0; i < 3 || heed_clock_seconds() - start < c->s->seconds; i++) {
        const double all = turn(w, c->workers), single = turn(&alone, 1);
        if (all < 0 || single < 0)
            return false;
        best = fmin(best, all);
        one = fmin(one, single);
    }
    bench_line line = {.bench = c->workers == 2 ? "two workers" : "workers",
                       .value = LINES * TOKENS_OUT / best,
                       .unit = "tokens/s",
                       .reference = LINES * TOKENS_OUT / one,
                       .ratio = one / best,
                       .target = c->workers == 2 ? 1.85 : NAN};
    name_cell(c, &line);
    bench_report(&r, &line);
    return true;
}

/* Where a worker's share of the lines begins: as many whole batches as can be. */
static int64_t first_line(const struct cell *c, int worker)
{
    const int64_t even = LINES * worker / c->workers;
    return worker == c->workers ? LINES : (even + c->batch / 2) / c->batch * c->batch;
}

static bool measure(const struct cell *c)
{
    struct worker w[MOST_WORKERS] = {{0}};
    const heed_session_options how = {.threads = 1, .shortlist = c->s->shortlist > 0};
    static int32_t ids[LINES][TOKENS_IN];
    heed_tokens source[LINES];
    heed_error err = {0};
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    const int64_t words = c->s->model.source_vocabulary;
    for (int64_t i = 0; i < LINES; i++) {
        for (int64_t k = 0; k < TOKENS_IN; k++)
            ids[i][k] =
                (int32_t)(3 + heed_rng_below(&rng, (uint64_t)(i * TOKENS_IN + k), words - 3));
        source[i] = (heed_tokens){ids[i], TOKENS_IN};
    }
    double opened = heed_clock_seconds(), best[PIECES], all = 0, best_peak = 0;
    heed_engine *e = heed_engine_open(c->folder, NULL, &err);
    opened = heed_clock_seconds() - opened;
    bool good = e && (!c->s->shortlist || !heed_engine_open_shortlist(e, c->folder, &err));
    for (int i = 0; good && i < c->workers; i++) {
        int64_t begin = first_line(c, i), end = first_line(c, i + 1);
        w[i] = (struct worker){.c = c,
                               .session = heed_session_new(e, &how, NULL, &err),
                               .arena = heed_arena_new(NULL, &err),
                               .source = source + begin,
                               .lines = end - begin};
        good = w[i].session && w[i].arena;
    }
    for (int i = 0; i < PIECES; i++)
        best[i] = INFINITY;
    const double start = heed_clock_seconds();
    for (int i = 0; good && (i < 3 || heed_clock_seconds() - start < c->s->seconds); i++) {
        good = turn_by_pieces(w, c->workers, best);
        best_peak = fmax(best_peak, peak(c, best[0]));
    }
    for (int i = 0; i < PIECES; i++)
        all += isinf(best[i]) ? 0 : best[i];
    if (good) {
        report(c, opened, all, best_peak);
        good = report_share(c, all, best_peak, &err);
    }
    if (good && c->batch == 1 && c->workers == 1 && !c->s->shortlist)
        report_reading(c, w);
    if (good && c->workers > 1)
        good = report_workers(c, w);
    if (!good)
        complain("cannot measure decoding", w[0].err.status ? &w[0].err : &err);
    for (int i = 0; i < c->workers; i++) {
        heed_session_free(w[i].session);
        heed_arena_free(w[i].arena);
    }
    heed_engine_free(e);
    return good;
}

/* ---- cells ---- */

typedef void (*handler)(int signal);

/* Runs it in a process of its own, which Ctrl-C ends; returns how that ended, 0 if well. */
static int apart(bool (*run)(const struct cell *c), const struct cell *c, handler ctrl_c)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, ctrl_c);
        bool good = run(c);
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

bool bench_decode(const bench_decode_settings *s)
{
    static const int64_t beams[] = {4, 1}, batches[] = {32, 1};
    struct cell c = {.s = s, .folder = "/tmp/heed-bench-XXXXXX"};
    heed_machine m;
    char plain[96];
    handler ctrl_c = signal(SIGINT, SIG_IGN); /* here: the model is to be removed first */
    if (!mkdtemp(c.folder)) {
        fprintf(stderr, "heed: cannot make a folder for a model to measure with\n");
        return false;
    }
    int status = apart(write_model, &c, ctrl_c);
    heed_machine_describe(&m);
    if (!status && !s->common.json)
        printf("%s, %s kernels\n", m.cpu, m.instruction_set);
    if (!status)
        bench_header(&s->common);
    for (int b = 0; b < 2; b++)
        for (int k = 0; k < 2; k++) {
            c.batch = s->batch ? s->batch : batches[b];
            c.beam = s->beam ? s->beam : beams[k];
            c.workers = (int)s->workers;
            if ((s->batch && b > 0) || (s->beam && k > 0))
                continue;
            if (!status)
                status = apart(measure, &c, ctrl_c);
        }
    snprintf(plain, sizeof plain, "%s/plain", c.folder);
    remove_folder(plain);
    remove_folder(c.folder);
    signal(SIGINT, ctrl_c);
    if (status > 0 && WIFSIGNALED(status))
        raise(WTERMSIG(status));
    return !status;
}
