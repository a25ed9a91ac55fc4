/* pattern.c: which keys a query sees.
 *
 *   global   all of its segment; causal: those up to its own place
 *   local-m  p - D .. p + D around its own place p         Luong et al. 2015, section 3.2
 *   local-p  the same around p = S sigmoid(v_p . tanh(W_p q)), equation 9, and its weights are
 *            multiplied with exp(-(j - p)^2 / 2 s^2), s = D/2, equation 10
 *
 * S is the length of the query's own segment of keys.  p is a real number in the Gaussian, through
 * which alone its gradient flows, and rounded only to cut the window.  The weights are not made to
 * sum to 1 again: a query that predicts badly sees little. */
#include "attention/attend.h"

#include "nn/params.h"
#include <math.h>

void heed__pattern_build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    if (o->pattern != HEED_PATTERN_LOCAL_P)
        return;
    s = heed_scope_enter(s, "place");
    heed_linear_build(&l->place, heed_scope_enter(s, "in"), o->query_d, o->query_d, HEED_TANH,
                      false);
    heed_linear_build(&l->place_out, heed_scope_enter(s, "out"), o->query_d, o->heads, HEED_SIGMOID,
                      false);
}

static int64_t keys_of(const heed_pairs *p, int64_t b)
{
    return p->keys->offset[b + 1] - p->keys->offset[b];
}

/* (N,1): how many keys each query's segment has. */
static heed_tensor *lengths(heed_tape *t, const heed_pairs *p)
{
    heed_tensor *s = heed_input(t, HEED_SHAPE(p->queries->rows, 1), NULL);
    for (int64_t b = 0; s && b < p->queries->count; b++)
        for (int64_t n = p->queries->offset[b]; n < p->queries->offset[b + 1]; n++)
            heed_tensor_data(s)[n] = (heed_real)keys_of(p, b);
    return s;
}

/* The window of a query around p; `past`: keys that are not behind it. */
static void cut(const heed_attend_options *o, double p, int64_t past, int64_t keys, int32_t *begin,
                int32_t *end)
{
    const double d = (double)o->window;
    double low = 0, high = (double)keys;
    if (o->pattern == HEED_PATTERN_LOCAL_M)
        p = fmin(p, fmax(0, high - 1)); /* behind the end there is nothing: look at the last */
    if (o->pattern != HEED_PATTERN_GLOBAL) {
        low = fmax(low, ceil(p - d));
        high = fmin(high, floor(p + d) + 1);
    }
    high = fmin(high, (double)past);
    *begin = (int32_t)fmin(low, high);
    *end = (int32_t)high;
}

bool heed__pattern_windows(heed_tape *t, const heed_attend_layer *l, heed_tensor *q, bool causal,
                           const int32_t *place, heed_pairs *p, heed_tensor **gate)
{
    const heed_attend_options *o = &l->options;
    *gate = NULL;
    if (o->pattern == HEED_PATTERN_GLOBAL && !causal)
        return true;
    heed_tensor *centre = NULL; /* (N,H) */
    if (o->pattern == HEED_PATTERN_LOCAL_P) {
        centre = heed_linear_apply(t, &l->place_out, heed_linear_apply(t, &l->place, q));
        centre = heed_mul(t, centre, lengths(t, p));
        if (!centre)
            return false;
    }
    const int64_t heads = p->heads;
    const size_t bytes = (size_t)(p->queries->rows * heads) * sizeof(int32_t);
    int32_t *begin = heed_arena_allocate(heed_tape_arena(t), bytes);
    int32_t *end = heed_arena_allocate(heed_tape_arena(t), bytes);
    if (!begin || !end) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld windows",
                       (long long)(p->queries->rows * heads));
        return false;
    }
    for (int64_t b = 0; b < p->queries->count; b++)
        for (int64_t n = p->queries->offset[b]; n < p->queries->offset[b + 1]; n++)
            for (int64_t i = n * heads; i < (n + 1) * heads; i++) {
                const int64_t own = place ? place[n] : n - p->queries->offset[b];
                cut(o, centre ? (double)heed_tensor_data(centre)[i] : (double)own,
                    causal ? own + 1 : keys_of(p, b), keys_of(p, b), &begin[i], &end[i]);
            }
    p->begin = begin;
    p->end = end;
    if (centre && isfinite(o->deviation))
        *gate = heed_pairs_gaussian(t, centre, o->deviation, p);
    return true;
}
