/* train_oracle.h: what a training leaves, as plain numbers, to be held against arithmetic done
 * here: the weights of its saves and what it said of each update and validation.
 * Include cmocka.h and train_case.h first. */
#ifndef HEED_TESTS_TRAIN_ORACLE_H
#define HEED_TESTS_TRAIN_ORACLE_H

#include <math.h>

/* ---- weights ---- */

/* The numbers of a file, tensor after tensor; to be freed with free(w.x). */
struct weights {
    double *x;
    int64_t n;
};

static inline int64_t stored_count(const heed_stored *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

HEED_PRINTF(1, 2)
static inline struct weights read_weights(const char *format, ...)
{
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    heed_error err = {0};
    heed_safetensors *f = heed_safetensors_open(in_room(name), NULL, &err);
    if (!f)
        fail_msg("%s", err.text);
    struct weights w = {NULL, 0};
    for (int i = 0; i < heed_safetensors_count(f); i++) {
        const heed_stored *s = heed_safetensors_at(f, i);
        const int64_t n = stored_count(s);
        heed_real *part = malloc((size_t)n * sizeof *part);
        double *all = realloc(w.x, (size_t)(w.n + n) * sizeof *all);
        assert_true(part && all);
        assert_int_equal(heed_stored_read(s, part, 0, n, &err), HEED_OK);
        for (int64_t k = 0; k < n; k++)
            all[w.n + k] = (double)part[k];
        w = (struct weights){all, w.n + n};
        free(part);
    }
    heed_safetensors_close(f);
    return w;
}

/* Those of save number `update` of the training m. */
static inline struct weights saved_weights(const char *m, int64_t update)
{
    return read_weights("%s/training/step-%lld/model.safetensors", m, (long long)update);
}

static inline double distance(struct weights a, struct weights b)
{
    double sum = 0;
    assert_int_equal(a.n, b.n);
    for (int64_t i = 0; i < a.n; i++)
        sum += (a.x[i] - b.x[i]) * (a.x[i] - b.x[i]);
    return sqrt(sum);
}

/* b - a, in a new place. */
static inline struct weights difference(struct weights a, struct weights b)
{
    struct weights d = {malloc((size_t)a.n * sizeof *d.x), a.n};
    assert_non_null(d.x);
    assert_int_equal(a.n, b.n);
    for (int64_t i = 0; i < a.n; i++)
        d.x[i] = b.x[i] - a.x[i];
    return d;
}

/* How far the weights moved from save 0 to save 1. */
static inline struct weights first_step(const char *m)
{
    struct weights a = saved_weights(m, 0), b = saved_weights(m, 1), d = difference(a, b);
    free(a.x);
    free(b.x);
    return d;
}

static inline double length_of(struct weights w)
{
    double sum = 0;
    for (int64_t i = 0; i < w.n; i++)
        sum += w.x[i] * w.x[i];
    return sqrt(sum);
}

/* ---- what a run says ---- */

enum { MOST_SEEN = 256 };
struct seen {
    int64_t updates, validations, saves;
    heed_train_progress update[MOST_SEEN], validation[MOST_SEEN];
};

static inline void note_progress(void *context, const heed_train_progress *p)
{
    struct seen *s = context;
    assert_true(s->updates < MOST_SEEN && s->validations < MOST_SEEN);
    if (p->event == HEED_TRAIN_UPDATE)
        s->update[s->updates++] = *p;
    else if (p->event == HEED_TRAIN_VALIDATION)
        s->validation[s->validations++] = *p;
    else
        s->saves += p->event == HEED_TRAIN_SAVE;
}

/* A new training m, with the options of train_case.h and more, to its end. */
static inline heed_train_result train_seen(const char *m, const char *const *more, struct seen *s)
{
    static struct seen own;
    heed_train_hooks hooks = {.progress = note_progress, .context = s ? s : &own};
    heed_train_result result;
    heed_error err = {0};
    memset(hooks.context, 0, sizeof own);
    if (train_in(in_room(m), more, false, &hooks, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

/* Whether a is b up to a share of b. */
static inline bool within(double a, double b, double share)
{
    if (fabs(a - b) <= share * fabs(b))
        return true;
    print_error("%.9g, expected %.9g\n", a, b);
    return false;
}

/* Every update saved, the weights moved by the gradient times the rate and nothing else. */
#define PLAIN                                                                                      \
    "--optimizer", "sgd", "--schedule", "constant", "--warmup", "0", "--rate", "1", "--keep",      \
        "100", "--save-every", "1", "--average", "0", "--valid-every", "0", "--valid-lines", "0",  \
        "--dropout", "0"

#endif
