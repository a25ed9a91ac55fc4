/* params.c: parameter sets.
 *
 * Declaring collects entries (name, shape, init); finishing lays them out in flat buffers, each
 * entry at a multiple of 64 bytes with zero padding, and draws their values.  The random stream of
 * a parameter is keyed by the seed and a hash of its name, so adding a layer elsewhere in the model
 * changes no other layer's initial values.  The first error stays: later declarations do nothing
 * and heed_params_finish reports it. */
#include "nn/params.h"

#include "base/error.h"
#include "base/memory.h"
#include "nn/init.h"
#include "tensor/tensor_fields.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct entry {
    heed_tensor *tensor; /* in the arena; its name is the full name */
    uint64_t hash;       /* of the name */
    int64_t offset;      /* into the values, or into the state */
    int64_t padded;      /* elements up to the next entry: count, rounded up to 64 bytes */
    heed_init init;
    heed__fill *fill; /* if not NULL, instead of init */
    bool is_state, frozen, has_weight_decay;
    heed_param_role role;
    double rate_factor, weight_decay;
};

/* A table that is neither a parameter nor state; in the arena, like its values. */
struct derived {
    heed_tensor *tensor;
    heed__fill *fill;
    struct derived *next;
};

/* The flat buffers have at least one cache line, so that an empty set has valid pointers too. */
enum { LINE = HEED_ALIGN / sizeof(real) };

struct heed_params {
    heed_allocator allocator;
    heed_arena *arena; /* names, paths and tensors */
    heed_error error;
    struct entry *entries;
    int count, capacity;
    struct derived *derived;
    int64_t size, state_size;
    real *values, *grads, *state; /* NULL until finished */
    /* What forward passes have added for the state: flat sums, then a weight and a keep for each
     * entry. */
    double *moved;
    heed__param_range *ranges; /* capacity: one per entry, from finish on */
    int n_ranges;
    bool finished;
};

heed_params *heed_params_new(const heed_allocator *allocator, heed_error *err)
{
    heed_allocator a = heed__allocator_or_default(allocator);
    heed_params *p = heed__allocate_zeroed(&a, 1, sizeof *p);
    if (!p) {
        heed__fail(err, HEED_MEMORY, "no memory for a parameter set");
        return NULL;
    }
    p->allocator = a;
    p->arena = heed_arena_new(allocator, err);
    if (!p->arena) {
        heed__release(&a, p, 1, sizeof *p);
        return NULL;
    }
    return p;
}

static size_t buffer_elements(int64_t size)
{
    return (size_t)(size > 0 ? size : LINE);
}

static size_t moved_elements(const heed_params *p)
{
    return buffer_elements(p->state_size) + 2 * (size_t)p->count;
}

static void release_buffers(heed_params *p)
{
    const heed_allocator *a = &p->allocator;
    heed__release(a, p->values, buffer_elements(p->size), sizeof(real));
    heed__release(a, p->grads, buffer_elements(p->size), sizeof(real));
    heed__release(a, p->state, buffer_elements(p->state_size), sizeof(real));
    heed__release(a, p->moved, moved_elements(p), sizeof *p->moved);
    p->values = p->grads = p->state = NULL;
    p->moved = NULL;
}

void heed_params_free(heed_params *p)
{
    if (!p)
        return;
    heed_allocator a = p->allocator;
    release_buffers(p);
    heed__release(&a, p->entries, (size_t)p->capacity, sizeof *p->entries);
    heed_arena_free(p->arena);
    heed__release(&a, p, 1, sizeof *p);
}

const heed_error *heed_params_error(const heed_params *p)
{
    return &p->error;
}

/* ---- declaring ---- */

/* FNV-1a */
static uint64_t hash_of(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

heed_scope heed_params_scope(heed_params *p)
{
    return (heed_scope){p, ""};
}

void heed__scope_fail(heed_scope scope, heed_status status, const char *format, ...)
{
    if (!scope.params)
        return;
    va_list args;
    va_start(args, format);
    heed__vfail(&scope.params->error, status, format, args);
    va_end(args);
}

/* "path.rest" in the arena, or NULL with the set's error. */
HEED_PRINTF(3, 0)
static char *join(heed_params *p, const char *path, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int rest = vsnprintf(NULL, 0, format, args);
    size_t before = *path ? strlen(path) + 1 : 0;
    char *text = rest > 0 ? heed_arena_allocate(p->arena, before + (size_t)rest + 1) : NULL;
    if (text) {
        memcpy(text, path, before);
        if (before)
            text[before - 1] = '.';
        vsnprintf(text + before, (size_t)rest + 1, format, again);
    } else if (rest > 0) {
        heed__fail(&p->error, HEED_MEMORY, "no memory for a name under '%s'", path);
    } else {
        heed__fail(&p->error, HEED_ARGUMENT, "an empty name under '%s'", path);
    }
    va_end(again);
    return text;
}

heed_scope heed_scope_enter(heed_scope scope, const char *format, ...)
{
    if (!scope.params || scope.params->error.status != HEED_OK)
        return scope;
    va_list args;
    va_start(args, format);
    const char *path = join(scope.params, scope.path, format, args);
    va_end(args);
    return path ? (heed_scope){scope.params, path} : scope;
}

HEED_PRINTF(3, 4)
static const char *name_in(heed_params *p, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *name = join(p, path, format, args);
    va_end(args);
    return name;
}

static struct entry *find(const heed_params *p, const char *name)
{
    uint64_t hash = hash_of(name);
    for (int i = 0; i < p->count; i++)
        if (p->entries[i].hash == hash && strcmp(p->entries[i].tensor->name, name) == 0)
            return &p->entries[i];
    return NULL;
}

/* A slot for one more entry; entries move when the array grows. */
static struct entry *add_entry(heed_params *p)
{
    if (p->count == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 32;
        struct entry *grown = heed__allocate(&p->allocator, (size_t)capacity, sizeof *grown);
        if (!grown)
            return NULL;
        if (p->count)
            memcpy(grown, p->entries, (size_t)p->count * sizeof *grown);
        heed__release(&p->allocator, p->entries, (size_t)p->capacity, sizeof *grown);
        p->entries = grown;
        p->capacity = capacity;
    }
    return &p->entries[p->count++];
}

static heed_tensor *declare(heed_scope scope, const char *name, heed_shape shape, struct entry e)
{
    heed_params *p = scope.params;
    if (!p || p->error.status != HEED_OK)
        return NULL;
    const char *full = name_in(p, scope.path, "%s", name);
    if (!full)
        return NULL;
    char text[HEED_SHAPE_TEXT];
    int64_t count;
    if (p->finished) {
        heed__fail(&p->error, HEED_STATE, "parameter '%s' declared after finish", full);
    } else if (find(p, full)) {
        heed__fail(&p->error, HEED_ARGUMENT, "parameter '%s' declared twice", full);
    } else if (!heed__shape_count(shape, &count) || count < 1 ||
               count > INT64_MAX / (int64_t)sizeof(real) - LINE) {
        heed__fail(&p->error, HEED_SHAPE_ERROR,
                   "parameter '%s' is %s, expected sizes of at least 1", full,
                   heed__dims_text(shape, text));
    } else if (!e.fill && !heed__init_fits(e.init, shape)) {
        heed__fail(&p->error, HEED_SHAPE_ERROR, "parameter '%s' is %s, its init needs (in,out)",
                   full, heed__dims_text(shape, text));
    } else {
        heed_tensor *x = heed_arena_allocate(p->arena, sizeof *x);
        struct entry *place = x ? add_entry(p) : NULL;
        if (place) {
            heed__tensor_init(x, shape, NULL);
            x->name = full;
            x->needs_grad = x->keeps_grad = !e.is_state;
            e.tensor = x;
            e.hash = hash_of(full);
            e.rate_factor = 1;
            *place = e;
            return x;
        }
        heed__fail(&p->error, HEED_MEMORY, "no memory for parameter '%s'", full);
    }
    return NULL;
}

heed_tensor *heed_param(heed_scope scope, const char *name, heed_shape shape, heed_init init)
{
    return declare(scope, name, shape, (struct entry){.init = init});
}

heed_tensor *heed_param_with_role(heed_scope scope, const char *name, heed_shape shape,
                                  heed_init init, heed_param_role role)
{
    return declare(scope, name, shape, (struct entry){.init = init, .role = role});
}

heed_tensor *heed_state(heed_scope scope, const char *name, heed_shape shape, double start)
{
    heed_init init = {HEED_INIT_CONSTANT, start};
    return declare(scope, name, shape, (struct entry){.init = init, .is_state = true});
}

heed_tensor *heed__state_drawn(heed_scope scope, const char *name, heed_shape shape, heed_init init)
{
    return declare(scope, name, shape, (struct entry){.init = init, .is_state = true});
}

heed_tensor *heed__param_filled(heed_scope scope, const char *name, heed_shape shape,
                                heed__fill *fill)
{
    return declare(scope, name, shape, (struct entry){.fill = fill});
}

heed_tensor *heed__param_derived(heed_scope scope, heed_shape shape, heed__fill *fill)
{
    heed_params *p = scope.params;
    int64_t count;
    char text[HEED_SHAPE_TEXT];
    if (!p || p->error.status != HEED_OK)
        return NULL;
    if (!heed__shape_count(shape, &count) || count < 1 ||
        count > INT64_MAX / (int64_t)sizeof(real) - LINE) {
        heed__fail(&p->error, HEED_SHAPE_ERROR,
                   "a table under '%s' is %s, expected sizes of at least 1", scope.path,
                   heed__dims_text(shape, text));
        return NULL;
    }
    struct derived *d = heed_arena_allocate(p->arena, sizeof *d);
    heed_tensor *x = heed_arena_allocate(p->arena, sizeof *x);
    if (!d || !x) {
        heed__fail(&p->error, HEED_MEMORY, "no memory for a table under '%s'", scope.path);
        return NULL;
    }
    heed__tensor_init(x, shape, NULL);
    *d = (struct derived){x, fill, p->derived};
    p->derived = d;
    return x;
}

/* ---- finishing ---- */

/* Offsets and sizes; false if the sum overflows. */
static bool lay_out(heed_params *p)
{
    int64_t end[2] = {0, 0};
    for (int i = 0; i < p->count; i++) {
        struct entry *e = &p->entries[i];
        const heed_tensor *x = e->tensor;
        e->padded = (x->rows * x->cols + LINE - 1) / LINE * LINE;
        e->offset = end[e->is_state];
        if (e->padded > INT64_MAX / (int64_t)sizeof(real) - e->offset)
            return false;
        end[e->is_state] += e->padded;
    }
    p->size = end[false];
    p->state_size = end[true];
    return true;
}

static bool alike(const heed__param_range *r, const struct entry *e)
{
    return r->frozen == e->frozen && r->has_weight_decay == e->has_weight_decay &&
           r->rate_factor == e->rate_factor && r->weight_decay == e->weight_decay;
}

static void merge_ranges(heed_params *p)
{
    if (!p->finished)
        return;
    p->n_ranges = 0;
    for (int i = 0; i < p->count; i++) {
        const struct entry *e = &p->entries[i];
        if (e->is_state)
            continue;
        heed__param_range *last = p->n_ranges ? &p->ranges[p->n_ranges - 1] : NULL;
        if (last && alike(last, e))
            last->end = e->offset + e->padded;
        else
            p->ranges[p->n_ranges++] = (heed__param_range){
                .begin = e->offset,
                .end = e->offset + e->padded,
                .frozen = e->frozen,
                .has_weight_decay = e->has_weight_decay,
                .rate_factor = e->rate_factor,
                .weight_decay = e->weight_decay,
            };
    }
}

static heed_status start_values(heed_params *p, const struct entry *e, uint64_t seed)
{
    heed_tensor *x = e->tensor;
    if (e->fill) {
        e->fill(x->data, x->rows, x->cols);
        return HEED_OK;
    }
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed, .node = e->hash});
    if (heed__init_draw(x->data, x->rows, x->cols, e->init, &rng, &p->allocator) == HEED_OK)
        return HEED_OK;
    return heed__fail(&p->error, HEED_MEMORY, "no memory to draw parameter '%s'", x->name);
}

static heed_status allocate_buffers(heed_params *p)
{
    const heed_allocator *a = &p->allocator;
    if (!lay_out(p))
        return heed__fail(&p->error, HEED_MEMORY, "the parameters are too large to address");
    p->values = heed__allocate_zeroed(a, buffer_elements(p->size), sizeof(real));
    p->grads = heed__allocate_zeroed(a, buffer_elements(p->size), sizeof(real));
    p->state = heed__allocate_zeroed(a, buffer_elements(p->state_size), sizeof(real));
    p->moved = heed__allocate_zeroed(a, moved_elements(p), sizeof *p->moved);
    p->ranges = heed_arena_allocate(p->arena, (size_t)p->count * sizeof *p->ranges);
    if (!p->values || !p->grads || !p->state || !p->moved || !p->ranges) {
        release_buffers(p);
        return heed__fail(&p->error, HEED_MEMORY, "no memory for %lld parameters",
                          (long long)p->size);
    }
    return HEED_OK;
}

static heed_status fill_derived(heed_params *p)
{
    for (struct derived *d = p->derived; d; d = d->next) {
        heed_tensor *x = d->tensor;
        x->data = heed_arena_allocate(p->arena, (size_t)(x->rows * x->cols) * sizeof(real));
        if (!x->data)
            return heed__fail(&p->error, HEED_MEMORY, "no memory for a table of %lld elements",
                              (long long)(x->rows * x->cols));
        d->fill(x->data, x->rows, x->cols);
    }
    return HEED_OK;
}

static heed_status point_tensors(heed_params *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct entry *e = &p->entries[i];
        e->tensor->data = (e->is_state ? p->state : p->values) + e->offset;
        e->tensor->grad = e->is_state ? NULL : p->grads + e->offset;
        if (!e->is_state)
            continue;
        heed__moving *m = heed_arena_allocate(p->arena, sizeof *m);
        if (!m)
            return heed__fail(&p->error, HEED_MEMORY, "no memory for state '%s'", e->tensor->name);
        *m = (heed__moving){.sum = p->moved + e->offset,
                            .weight = p->moved + buffer_elements(p->state_size) + i,
                            .keep = p->moved + buffer_elements(p->state_size) + p->count + i};
        e->tensor->moving = m;
    }
    return HEED_OK;
}

static heed_status finish(heed_params *p, const uint64_t *seed, heed_error *err)
{
    if (!p)
        return heed__fail(err, HEED_ARGUMENT, "there is no parameter set to finish");
    if (p->error.status == HEED_OK && p->finished)
        return heed__fail(err, HEED_STATE, "the parameter set is finished already");
    if (p->error.status == HEED_OK && allocate_buffers(p) == HEED_OK) {
        point_tensors(p);
        for (int i = 0; seed && i < p->count && p->error.status == HEED_OK; i++)
            start_values(p, &p->entries[i], *seed);
        if (p->error.status == HEED_OK)
            fill_derived(p);
        p->finished = true;
        merge_ranges(p);
    }
    if (p->error.status != HEED_OK)
        return heed__fail(err, p->error.status, "%s", p->error.text);
    return HEED_OK;
}

heed_status heed_params_finish(heed_params *p, uint64_t seed, heed_error *err)
{
    return finish(p, &seed, err);
}

heed_status heed__params_finish_zero(heed_params *p, heed_error *err)
{
    return finish(p, NULL, err);
}

/* ---- accessors ---- */

int64_t heed_params_size(const heed_params *p)
{
    if (!p)
        return 0;
    return p->size;
}

heed_real *heed_params_values(const heed_params *p)
{
    if (!p)
        return NULL;
    return p->values;
}

heed_real *heed_params_grads(const heed_params *p)
{
    if (!p)
        return NULL;
    return p->grads;
}

int64_t heed_params_state_size(const heed_params *p)
{
    if (!p)
        return 0;
    return p->state_size;
}

heed_real *heed_params_state_values(const heed_params *p)
{
    if (!p)
        return NULL;
    return p->state;
}

void heed_params_zero_grads(heed_params *p)
{
    if (!p)
        return;
    if (!p->grads)
        return;
    memset(p->grads, 0, (size_t)p->size * sizeof(real));
    memset(p->moved, 0, moved_elements(p) * sizeof *p->moved);
}

/* ---- state that moves ---- */

void heed_state_add(const heed_tape *t, heed_tensor *state, const double *sum, double weight,
                    double keep)
{
    if (!t || !state || !state->moving || !heed_tape_training(t))
        return;
    heed__moving *m = state->moving;
    for (int64_t i = 0; i < state->rows * state->cols; i++)
        m->sum[i] += sum[i];
    *m->weight += weight;
    *m->keep = keep;
}

void heed_params_fold_state(heed_params *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->count; i++) {
        const heed_tensor *x = p->entries[i].tensor;
        const heed__moving *m = x->moving;
        if (!m || !(*m->weight > 0))
            continue;
        for (int64_t k = 0; k < x->rows * x->cols; k++)
            x->data[k] =
                (real)(*m->keep * (double)x->data[k] + (1 - *m->keep) * m->sum[k] / *m->weight);
    }
    if (p->moved)
        memset(p->moved, 0, moved_elements(p) * sizeof *p->moved);
}

double *heed__params_moved(heed_params *p, int64_t *count)
{
    *count = p->state_size ? (int64_t)moved_elements(p) : 0;
    return p->moved;
}

void heed__params_add_moved(const heed_params *p, double *total, const double *one)
{
    const size_t sums = moved_elements(p) - (size_t)p->count;
    for (size_t i = 0; i < sums; i++)
        total[i] += one[i];
    for (size_t i = sums; i < moved_elements(p); i++)
        if (one[i] != 0) /* a pass that was left out knows of none */
            total[i] = one[i];
}

int heed_params_count(const heed_params *p)
{
    if (!p)
        return 0;
    return p->count;
}

heed_param_info heed_params_entry(const heed_params *p, int i)
{
    if (!p)
        return (heed_param_info){0};
    if (i < 0 || i >= p->count)
        return (heed_param_info){0};
    const struct entry *e = &p->entries[i];
    return (heed_param_info){.name = e->tensor->name,
                             .tensor = e->tensor,
                             .offset = e->offset,
                             .is_state = e->is_state,
                             .frozen = e->frozen,
                             .role = e->role};
}

heed_tensor *heed_params_find(const heed_params *p, const char *name)
{
    if (!p)
        return NULL;
    const struct entry *e = find(p, name);
    return e ? e->tensor : NULL;
}

int64_t heed_params_trainable(const heed_params *p)
{
    if (!p)
        return 0;
    int64_t n = 0;
    for (int i = 0; i < p->count; i++)
        if (!p->entries[i].is_state)
            n += p->entries[i].tensor->rows * p->entries[i].tensor->cols;
    return n;
}

const heed_allocator *heed__params_allocator(const heed_params *p)
{
    return &p->allocator;
}

int heed__params_ranges(const heed_params *p)
{
    return p->n_ranges;
}

heed__param_range heed__params_range(const heed_params *p, int i)
{
    return p->ranges[i];
}

/* ---- freezing and groups ---- */

/* Whether name is scope itself or is under it: "encoder.1" covers "encoder.1.w", not
 * "encoder.10.w". */
static bool covers(const char *scope, const char *name)
{
    size_t n = strlen(scope);
    return n == 0 || (strncmp(scope, name, n) == 0 && (name[n] == '.' || name[n] == '\0'));
}

static heed_status set_frozen(heed_params *p, const char *scope, bool frozen, heed_error *err)
{
    bool found = false;
    for (int i = 0; i < p->count; i++) {
        struct entry *e = &p->entries[i];
        if (!covers(scope, e->tensor->name))
            continue;
        found = true;
        if (e->is_state)
            continue;
        e->frozen = frozen;
        e->tensor->needs_grad = !frozen;
        if (frozen && p->grads)
            memset(p->grads + e->offset, 0, (size_t)e->padded * sizeof(real));
    }
    merge_ranges(p);
    return found ? HEED_OK : heed__fail(err, HEED_ARGUMENT, "no parameter under '%s'", scope);
}

heed_status heed_params_freeze(heed_params *p, const char *scope, heed_error *err)
{
    if (!p)
        return heed__missing(err, "params");
    return set_frozen(p, scope, true, err);
}

heed_status heed_params_thaw(heed_params *p, const char *scope, heed_error *err)
{
    if (!p)
        return heed__missing(err, "params");
    return set_frozen(p, scope, false, err);
}

void heed__params_hold(heed_params *p, bool hold)
{
    for (int i = 0; i < p->count; i++)
        if (!p->entries[i].is_state)
            p->entries[i].tensor->needs_grad = !hold && !p->entries[i].frozen;
}

heed_status heed_params_set_group(heed_params *p, const char *scope, heed_group group,
                                  heed_error *err)
{
    if (!p)
        return heed__missing(err, "params");
    bool found = false;
    for (int i = 0; i < p->count; i++) {
        struct entry *e = &p->entries[i];
        if (!covers(scope, e->tensor->name))
            continue;
        found = true;
        e->rate_factor = group.rate_factor;
        e->weight_decay = group.weight_decay;
        e->has_weight_decay = true;
    }
    merge_ranges(p);
    return found ? HEED_OK : heed__fail(err, HEED_ARGUMENT, "no parameter under '%s'", scope);
}
