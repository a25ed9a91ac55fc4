/* tape.c: calling operators.  An operator computes at once; if one of its inputs needs a gradient,
 * the call stays on the tape, a list in the step arena, newest first.  One allocation for the call,
 * one for each output. */
#include "tensor/tape.h"

#include "base/parallel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

heed_tape *heed_tape_new(const heed_tape_options *options, heed_error *err)
{
    static const heed_tape_options defaults = {0};
    if (!options)
        options = &defaults;
    if (options->threads < 0 || options->threads > HEED_MAX_THREADS) {
        heed__fail(err, HEED_ARGUMENT, "tape: threads is %d, expected 0 to %d", options->threads,
                   HEED_MAX_THREADS);
        return NULL;
    }
    heed_allocator a = heed__allocator_or_default(options->allocator);
    heed_tape *t = heed__allocate_zeroed(&a, 1, sizeof *t);
    if (!t) {
        heed__fail(err, HEED_MEMORY, "out of memory for a tape");
        return NULL;
    }
    t->allocator = a;
    t->recording = t->training = true;
    t->threads = t->next_threads = options->threads ? options->threads : heed__processors();
    t->key.seed = options->seed;
    t->log = options->log;
    t->arena = heed_arena_new(&a, err);
    const char *profile = getenv("HEED_PROFILE");
    if (profile && *profile && strcmp(profile, "0") != 0)
        t->profile = heed__allocate_zeroed(&a, HEED_PROFILE_ROWS, sizeof *t->profile);
    if (!t->arena) {
        heed_tape_free(t);
        return NULL;
    }
    return t;
}

static void release_scratch(heed_tape *t)
{
    heed__release(&t->allocator, t->scratch, (size_t)t->scratch_threads, t->scratch_bytes);
    t->scratch = NULL;
    t->scratch_bytes = 0;
    t->scratch_threads = 0;
}

static void release_panels(heed_tape *t)
{
    heed__release(&t->allocator, t->panels, (size_t)t->panel_threads,
                  HEED_PANEL_COUNT * sizeof *t->panels);
    t->panels = NULL;
    t->panel_threads = 0;
}

void heed_tape_free(heed_tape *t)
{
    if (!t)
        return;
    if (t->profile) {
        heed__profile_report(t);
        heed__release(&t->allocator, t->profile, HEED_PROFILE_ROWS, sizeof *t->profile);
    }
    release_scratch(t);
    release_panels(t);
    heed_arena_free(t->arena);
    heed_allocator a = t->allocator;
    heed__release(&a, t, 1, sizeof *t);
}

void heed_tape_reset(heed_tape *t)
{
    if (!t)
        return;
    heed_arena_reset(t->arena);
    t->error = (heed_error){0};
    t->last = NULL;
    t->calls = 0;
    t->threads = t->next_threads;
    t->free_blocks = NULL;
}

const heed_error *heed_tape_error(const heed_tape *t)
{
    static const heed_error none = {HEED_ARGUMENT, "there is no tape"};
    return t ? &t->error : &none;
}

heed_tensor *heed_tape_fail(heed_tape *t, heed_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (t)
        heed__vfail(&t->error, status, format, args);
    va_end(args);
    return NULL;
}

void heed_tape_step(heed_tape *t, uint64_t step, uint32_t micro_batch, uint32_t rank)
{
    if (!t)
        return;
    t->key.step = step;
    t->key.micro_batch = micro_batch;
    t->key.rank = rank;
    t->key.set = 0;
}

void heed_tape_for_set(heed_tape *t, uint32_t set)
{
    if (!t)
        return;
    t->key.set = set;
}

void heed_tape_set_recording(heed_tape *t, bool on)
{
    if (!t)
        return;
    t->recording = on;
}

void heed_tape_set_training(heed_tape *t, bool on)
{
    if (!t)
        return;
    t->training = on;
}

bool heed_tape_training(const heed_tape *t)
{
    if (!t)
        return false;
    return t->training;
}

int heed_tape_threads(const heed_tape *t)
{
    if (!t)
        return 0;
    return t->threads;
}

void heed_tape_set_threads(heed_tape *t, int threads)
{
    if (!t)
        return;
    t->next_threads = threads < 1 ? 1 : threads > HEED_MAX_THREADS ? HEED_MAX_THREADS : threads;
    /* Recorded calls have scratch for the old number of threads. */
    if (t->calls == 0)
        t->threads = t->next_threads;
}

heed_arena *heed_tape_arena(heed_tape *t)
{
    if (!t)
        return NULL;
    return t->arena;
}

size_t heed_tape_memory(const heed_tape *t)
{
    if (!t)
        return 0;
    return heed_arena_held(t->arena) + t->scratch_bytes * (size_t)t->scratch_threads +
           HEED_PANEL_COUNT * sizeof *t->panels * (size_t)t->panel_threads + sizeof *t;
}

/* ---- tensors on the tape ---- */

heed_tensor *heed__tensor_new(heed_tape *t, heed_shape shape, const char *who)
{
    char text[HEED_SHAPE_TEXT];
    int64_t count;
    if (!heed__shape_count(shape, &count)) {
        heed__fail(&t->error, HEED_SHAPE_ERROR,
                   "%s: %s is not a shape of 1 to %d sizes that fit in memory", who,
                   heed__dims_text(shape, text), HEED_MAX_RANK);
        return NULL;
    }
    /* Struct and data in one allocation; the struct fills whole cache lines, so the data is
     * aligned. */
    size_t head = (sizeof(heed_tensor) + HEED_ALIGN - 1) / HEED_ALIGN * HEED_ALIGN;
    char *memory = heed_arena_allocate(t->arena, head + (size_t)count * sizeof(real));
    if (!memory) {
        heed__fail(&t->error, HEED_MEMORY, "%s: out of memory for a tensor of shape %s", who,
                   heed__dims_text(shape, text));
        return NULL;
    }
    heed_tensor *x = (heed_tensor *)memory;
    heed__tensor_init(x, shape, (real *)(memory + head));
    return x;
}

heed_tensor *heed_input(heed_tape *t, heed_shape shape, const heed_real *values)
{
    if (!t || t->error.status)
        return NULL;
    heed_tensor *x = heed__tensor_new(t, shape, "input");
    if (!x)
        return NULL;
    size_t bytes = (size_t)(x->rows * x->cols) * sizeof(real);
    if (values)
        memcpy(x->data, values, bytes);
    else
        memset(x->data, 0, bytes);
    return x;
}

heed_tensor *heed_variable(heed_tape *t, heed_shape shape, const heed_real *values)
{
    heed_tensor *x = heed_input(t, shape, values);
    if (!x)
        return NULL;
    x->needs_grad = x->keeps_grad = true;
    size_t bytes = (size_t)(x->rows * x->cols) * sizeof(real);
    x->grad = heed_arena_allocate(t->arena, bytes);
    if (!x->grad)
        return heed_tape_fail(t, HEED_MEMORY, "variable: out of memory for a gradient of %zu bytes",
                              bytes);
    memset(x->grad, 0, bytes);
    return x;
}

heed_tensor *heed__view(heed_tape *t, heed_tensor *x, heed_shape shape, int64_t offset, int64_t ld)
{
    heed_tensor *v = heed_arena_allocate(t->arena, sizeof *v);
    if (!v)
        return heed_tape_fail(t, HEED_MEMORY, "view: out of memory");
    heed__tensor_init(v, shape, x->data + offset);
    v->ld = ld;
    v->root = x->root ? x->root : x;
    v->offset = x->offset + offset;
    v->needs_grad = x->needs_grad;
    return v;
}

/* ---- calls ---- */

/* A parameter has no values until its set is finished. */
static bool has_values(heed_tape *t, const heed_op *op, const heed_tensor *x)
{
    if (!x->data)
        heed__fail(&t->error, HEED_STATE,
                   "%s: '%s' has no values yet: call heed_params_finish first", op->name,
                   x->name ? x->name : "an input");
    return x->data != NULL;
}

bool heed__usable(heed_tape *t, const heed_op *op, const heed_tensor *x)
{
    if (!t || t->error.status)
        return false;
    if (!x)
        heed__fail(&t->error, HEED_ARGUMENT, "%s: an input is NULL", op->name);
    return x && has_values(t, op, x);
}

heed_opcall *heed__apply(heed_tape *t, const heed_op *op, heed_tensor *const *in, int n_in,
                         unsigned optional, const void *attributes, size_t attribute_bytes)
{
    if (!t || t->error.status)
        return NULL;
    bool wanted = false;
    for (int i = 0; i < n_in; i++) {
        if (in[i] && !has_values(t, op, in[i]))
            return NULL;
        if (in[i])
            wanted |= in[i]->needs_grad;
        else if (i >= 32 || !(optional >> i & 1)) {
            heed__fail(&t->error, HEED_ARGUMENT, "%s: input %d is NULL", op->name, i + 1);
            return NULL;
        }
    }
    /* In one allocation: the call, its inputs, the attributes, and which inputs need a gradient. */
    size_t pointers = ((size_t)n_in * sizeof *in + 15) / 16 * 16;
    size_t attributes_end = (attribute_bytes + 15) / 16 * 16;
    heed_opcall *c =
        heed_arena_allocate(t->arena, sizeof *c + pointers + attributes_end + (size_t)n_in);
    if (!c) {
        heed__fail(&t->error, HEED_MEMORY, "%s: out of memory", op->name);
        return NULL;
    }
    *c = (heed_opcall){.op = op, .tape = t, .node = t->calls++, .n_in = n_in};
    char *after = (char *)(c + 1);
    c->in = (heed_tensor **)after;
    memcpy(c->in, in, (size_t)n_in * sizeof *in);
    if (attribute_bytes) {
        memcpy(after + pointers, attributes, attribute_bytes);
        c->attributes = after + pointers;
    }
    c->wanted = (bool *)(after + pointers + attributes_end);
    for (int i = 0; i < n_in; i++)
        c->wanted[i] = in[i] && in[i]->needs_grad;
    c->recorded = wanted && t->recording && op->backward;

    heed_status status = op->shape(c);
    if (status) {
        heed__fail(&t->error, status, "%s: %s", op->name, heed_status_text(status));
        return NULL;
    }
    if (t->profile) {
        double start = heed_clock_seconds();
        op->forward(c);
        heed__profile_add(t, op, heed_clock_seconds() - start, 0);
    } else {
        op->forward(c);
    }
    if (c->recorded) {
        c->previous = t->last;
        t->last = c;
    }
    return c;
}

heed_status heed__out(heed_opcall *c, heed_shape shape)
{
    heed_tensor *x = heed__tensor_new(c->tape, shape, c->op->name);
    if (!x)
        return c->tape->error.status;
    x->needs_grad = c->recorded;
    c->out[c->n_out++] = x;
    return HEED_OK;
}

void *heed__keep(heed_opcall *c, size_t bytes)
{
    void *memory = heed_arena_allocate(c->tape->arena, bytes);
    if (!memory)
        heed__fail(&c->tape->error, HEED_MEMORY, "%s: out of memory for %zu bytes", c->op->name,
                   bytes);
    return memory;
}

heed_status heed__save(heed_opcall *c, size_t bytes)
{
    c->saved = heed__keep(c, bytes);
    return c->saved ? HEED_OK : HEED_MEMORY;
}

heed_status heed__want_scratch(heed_opcall *c, size_t bytes_per_thread)
{
    heed_tape *t = c->tape;
    if (bytes_per_thread <= t->scratch_bytes && t->threads <= t->scratch_threads)
        return HEED_OK;
    size_t bytes = (bytes_per_thread + HEED_ALIGN - 1) / HEED_ALIGN * HEED_ALIGN;
    if (bytes < t->scratch_bytes)
        bytes = t->scratch_bytes;
    release_scratch(t);
    t->scratch = heed__allocate(&t->allocator, (size_t)t->threads, bytes);
    if (!t->scratch)
        return heed__op_fail(c, HEED_MEMORY,
                             "out of memory for %zu bytes of scratch for each of %d threads", bytes,
                             t->threads);
    t->scratch_bytes = bytes;
    t->scratch_threads = t->threads;
    return HEED_OK;
}

heed_status heed__want_panels(heed_opcall *c, int64_t m, int64_t n, int64_t k)
{
    heed_tape *t = c->tape;
    if (t->threads <= t->panel_threads || heed__gemm_panels(m, n, k) == 0)
        return HEED_OK;
    release_panels(t);
    size_t bytes = HEED_PANEL_COUNT * sizeof *t->panels;
    t->panels = heed__allocate(&t->allocator, (size_t)t->threads, bytes);
    if (!t->panels)
        return heed__op_fail(c, HEED_MEMORY,
                             "out of memory for %zu bytes of panels for each of %d threads", bytes,
                             t->threads);
    t->panel_threads = t->threads;
    return HEED_OK;
}

HEED_PRINTF(4, 0)
static heed_status fail_as(heed_tape *t, const heed_op *op, heed_status status, const char *format,
                           va_list args)
{
    char text[sizeof t->error.text];
    vsnprintf(text, sizeof text, format, args);
    return heed__fail(&t->error, status, "%s: %s", op->name, text);
}

heed_status heed__op_fail(heed_opcall *c, heed_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_as(c->tape, c->op, status, format, args);
    va_end(args);
    return status;
}

heed_tensor *heed__wrapper_fail(heed_tape *t, const heed_op *op, heed_status status,
                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_as(t, op, status, format, args);
    va_end(args);
    return NULL;
}

heed_status heed__op_shape_fail(heed_opcall *c, const char *input, const heed_tensor *x,
                                const char *expected, ...)
{
    char wanted[256], found[HEED_SHAPE_TEXT];
    va_list args;
    va_start(args, expected);
    vsnprintf(wanted, sizeof wanted, expected, args);
    va_end(args);
    return heed__op_fail(c, HEED_SHAPE_ERROR, "%s is %s, expected %s", input,
                         heed__shape_text(x, found), wanted);
}

int heed__threads(const heed_opcall *c)
{
    return c->tape->threads;
}

void *heed__scratch(const heed_opcall *c, int thread)
{
    return c->tape->scratch + (size_t)thread * c->tape->scratch_bytes;
}

real *heed__thread_panels(const heed_opcall *c, int thread)
{
    return c->tape->panels ? c->tape->panels + thread * HEED_PANEL_COUNT : NULL;
}

void heed__op_gemm(const heed_opcall *c, const heed__product *p, heed__after_block *after,
                   void *context)
{
    heed__product q = *p;
    q.panels = heed__thread_panels(c, 0);
    heed__gemm(&q, c->tape->threads, after, context);
}

heed_rng heed__rng(const heed_opcall *c)
{
    heed_rng_key key = c->tape->key;
    key.node = c->node;
    return heed_rng_stream(&key);
}

const heed_segments *heed__case_segments(heed_tape *t, const int64_t *lengths)
{
    int64_t n = 0;
    while (lengths[n] >= 0)
        n++;
    return heed_segments_new(t->arena, n, lengths);
}
