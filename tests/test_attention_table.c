/* Every form of attention in attention_table.h as a layer: against an oracle in double that knows
 * no ranges and no sums shared by queries, forward and gradients; its parameters' gradients; its
 * threads and segments; and that every row of the slots has a form. */
#include "attention_table.h"
#include "layer_check.h"
#include <heed/stack.h>

#include <stdlib.h>

/* Sums of up to a few hundred products of values around 1. */
#ifdef HEED_DOUBLE
#define NEAR 1e-8 /* the oracle's gradients may be differences */
#else
#define NEAR 1e-3
#endif

enum { HEADS = 4, DK = 6, DV = 4, B = 5, LONGEST = 97 };
/* No multiples of a block or a tile; softmax, and what is differentiated step by step. */
static const int64_t long_lengths[B] = {LONGEST, 0, 1, 50, 13}, short_lengths[B] = {11, 0, 1, 6, 2};
static const int64_t long_memory[B] = {50, 3, 20, LONGEST, 13}, short_memory[B] = {6, 2, 1, 11, 3};

static double value(int64_t i, int salt)
{
    return sin(12.9898 * (double)(i + 1) + 78.233 * salt);
}

/* ---- one layer with its queries, keys and values ---- */

enum { Q, K, V, INPUTS };
enum mode { ALL, CAUSAL, CROSS, MODES };
static const char *const mode_names[] = {"all keys", "causal", "cross"};

struct run {
    const struct attention_form *form;
    enum mode mode;
    heed_params *p;
    heed_attend_layer l;
    heed_tensor *in[INPUTS], *gate; /* gate: of forms that have one */
    const int64_t *queries, *keys;
    heed_attention_counts counts;
};

static bool takes(const struct attention_form *f, enum mode mode)
{
    return attention_form_takes(f, mode == CAUSAL) &&
           attention_form_can(f, mode == CAUSAL  ? HEED_CAN_CAUSAL
                                 : mode == CROSS ? HEED_CAN_CROSS
                                                 : 0);
}

static int64_t rows_of(const int64_t *lengths)
{
    int64_t rows = 0;
    for (int b = 0; b < B; b++)
        rows += lengths[b];
    return rows;
}

static struct run run_new(const struct attention_form *f, enum mode mode, bool small)
{
    struct run r = {.form = f, .mode = mode, .p = heed_params_new(NULL, NULL)};
    heed_scope root = heed_params_scope(r.p);
    heed_error err = {0};
    heed_attend_options o = attention_form_options(f, mode == CAUSAL);
    const int64_t kv = o.kv_heads ? o.kv_heads : HEADS;
    r.queries = small ? short_lengths : long_lengths;
    r.keys = mode != CROSS ? r.queries : small ? short_memory : long_memory;
    o.query_d = HEADS * DK;
    o.key_d = kv * DK;
    o.value_d = kv * DV;
    o.longest = LONGEST;
    const heed_shape shapes[INPUTS] = {HEED_SHAPE(rows_of(r.queries), o.query_d),
                                       HEED_SHAPE(rows_of(r.keys), o.key_d),
                                       HEED_SHAPE(rows_of(r.keys), o.value_d)};
    static const char *const names[INPUTS] = {"queries", "keys", "values"};
    for (int i = 0; i < INPUTS; i++)
        r.in[i] = heed_param(root, names[i], shapes[i], (heed_init){HEED_INIT_ZERO, 0});
    heed__linear_form linear;
    if (heed__linear_form_of(&o, &linear) && linear.gated)
        r.gate = heed_param(root, "gate", HEED_SHAPE(rows_of(r.keys), kv),
                            (heed_init){HEED_INIT_ZERO, 0});
    heed_attend_build(&r.l, heed_scope_enter(root, "score"), &o);
    if (heed_params_finish(r.p, 11, &err))
        fail_msg("%s, %s: %s", attention_form_name(f), mode_names[mode], err.text);
    for (int i = 0; i < heed_params_count(r.p); i++) {
        heed_tensor *x = heed_params_entry(r.p, i).tensor;
        for (int64_t n = 0; n < heed_tensor_count(x); n++)
            heed_tensor_data(x)[n] +=
                (heed_real)(i < INPUTS ? value(n, 20 + i) : 0.3 * value(n, i));
    }
    for (int h = 0; r.l.span && h < HEADS; h++) /* z between two distances: m has kinks there */
        heed_tensor_data(r.l.span)[h] =
            (heed_real)((2 * h + 0.5) / (double)o.position_bias.term[0].number[0]);
    return r;
}

static const heed_segments *segments(heed_tape *t, const int64_t *lengths)
{
    return heed_segments_new(heed_tape_arena(t), B, lengths);
}

static heed_tensor *attend(heed_tape *t, struct run *r)
{
    heed_memory m = heed_attend_memory(t, &r->l, r->in[K], r->in[V], segments(t, r->keys));
    m.gate = r->gate;
    heed_tensor *y =
        heed_attend(t, &r->l, r->in[Q], &m, r->mode == CROSS ? segments(t, r->queries) : m.segments,
                    &(heed_attend_extra){.counts = &r->counts});
    if (!y)
        fail_msg("%s, %s: %s", attention_form_name(r->form), mode_names[r->mode],
                 heed_tape_error(t)->text);
    return y;
}

/* What is differentiated: y times fixed numbers, summed. */
static heed_tensor *attend_back(heed_tape *t, struct run *r)
{
    heed_tensor *y = attend(t, r), *w = heed_input(t, heed_tensor_shape(y), NULL);
    for (int64_t n = 0; n < heed_tensor_count(w); n++)
        heed_tensor_data(w)[n] = (heed_real)value(n, 40);
    heed_params_zero_grads(r->p);
    if (heed_backward(t, heed_sum(t, heed_mul(t, y, w), HEED_ALL)))
        fail_msg("%s", heed_tape_error(t)->text);
    return y;
}

/* ---- the oracle ---- */

struct truth {
    double *y, *grad[INPUTS];
    int64_t pairs;
};

static struct form_pair pair_of(const struct form_head *h, int64_t i, int64_t j)
{
    return (struct form_pair){.h = h,
                              .layer = h->layer->options.layer,
                              .head = h->head,
                              .i = i,
                              .j = j,
                              .queries = h->t,
                              .keys = h->s,
                              .causal = h->causal};
}

/* What stands beside the product of query i and key j; -inf: they do not meet. */
static double bias_of(const struct form_head *h, int64_t i, int64_t j)
{
    const heed_attend_options *o = &h->layer->options;
    const int64_t d = i - j, far = o->position_bias.term[0].number[0];
    if (!form_sees(&o->pattern, pair_of(h, i, j)))
        return -INFINITY;
    switch ((heed_bias_kind)o->position_bias.term[0].kind) {
    case HEED_BIAS_ALIBI:
        return -exp2(-8.0 * (h->head + 1) / HEADS) * (double)llabs((long long)d);
    case HEED_BIAS_TABLE: {
        const int64_t cut = d > far ? far : d < -far ? -far : d;
        return (double)heed__row(h->layer->distance, h->head)[h->causal ? cut : far + cut];
    }
    case HEED_BIAS_SPAN: {
        const double z = (double)far * fmin(1, fmax(0, (double)h->layer->span->data[h->head]));
        const double m = fmin(1, (32 + z - (double)llabs((long long)d)) / 32);
        return m > 0 ? log(m) : -INFINITY;
    }
    case HEED_BIAS_NONE:
        break;
    }
    return 0;
}

/* Row e of keys or values: the shared ones, then those of the segment. */
static double key_at(const struct form_head *h, int64_t shared, int64_t e, int64_t d)
{
    const int64_t kv = h->head / (HEADS / h->layer->options.kv_heads);
    return e < shared ? (double)heed__row(h->layer->shared_k, e)[kv * h->dk + d]
                      : h->k[(e - shared) * h->dk + d];
}

static double value_at(const struct form_head *h, int64_t shared, int64_t e, int64_t d)
{
    const int64_t kv = h->head / (HEADS / h->layer->options.kv_heads);
    return e < shared ? (double)heed__row(h->layer->shared_v, e)[kv * h->dv + d]
                      : h->v[(e - shared) * h->dv + d];
}

/* Softmax over what is seen, and the gradients of y . dy; returns how many pairs met. */
static int64_t softmax_truth(const struct form_head *h, double *y, const double *dy,
                             double *grad[INPUTS])
{
    const int64_t shared = h->layer->shared_k ? h->layer->shared_k->rows : 0, n = shared + h->s;
    int64_t pairs = 0;
    for (int64_t i = 0; i < h->t; i++) {
        double w[LONGEST + 8], dw[LONGEST + 8], top = -INFINITY, sum = 0, inner = 0;
        int64_t own = 0;
        for (int64_t e = 0; e < n; e++) {
            w[e] = e < shared ? 0 : bias_of(h, i, e - shared);
            pairs += w[e] > -INFINITY;
            own += w[e] > -INFINITY && e >= shared;
            for (int64_t d = 0; d < h->dk; d++)
                w[e] += h->q[i * h->dk + d] * key_at(h, shared, e, d) / sqrt((double)h->dk);
            top = fmax(top, w[e]);
        }
        if (h->s && !own)
            fail_msg("query %lld of %lld sees none of %lld keys", (long long)i, (long long)h->t,
                     (long long)h->s);
        for (int64_t e = 0; e < n; e++)
            sum += w[e] = exp(w[e] - top);
        for (int64_t e = 0; e < n; e++) {
            w[e] /= sum;
            dw[e] = 0;
            for (int64_t d = 0; d < h->dv; d++) {
                y[i * h->dv + d] += w[e] * value_at(h, shared, e, d);
                dw[e] += dy[i * h->dv + d] * value_at(h, shared, e, d);
                if (e >= shared)
                    grad[V][(e - shared) * h->dv + d] += w[e] * dy[i * h->dv + d];
            }
            inner += w[e] * dw[e];
        }
        for (int64_t e = 0; e < n; e++)
            for (int64_t d = 0; d < h->dk; d++) {
                const double dz = w[e] * (dw[e] - inner) / sqrt((double)h->dk);
                grad[Q][i * h->dk + d] += dz * key_at(h, shared, e, d);
                if (e >= shared)
                    grad[K][(e - shared) * h->dk + d] += dz * h->q[i * h->dk + d];
            }
    }
    return pairs;
}

/* The same where the keys are the queries, made as long as 1. */
static int64_t shared_truth(const struct form_head *h, double *y, const double *dy,
                            double *grad[INPUTS])
{
    const int64_t d = h->dk;
    double *u = malloc((size_t)(h->t * d + 1) * sizeof *u);
    struct form_head shared = *h;
    for (int64_t i = 0; i < h->t; i++)
        for (int64_t k = 0; k < d; k++)
            u[i * d + k] = h->q[i * d + k] / sqrt(form_dot(h->q + i * d, h->q + i * d, d));
    shared.k = u;
    const int64_t pairs = softmax_truth(&shared, y, dy, grad);
    for (int64_t i = 0; i < h->t; i++) {
        double *g = grad[K] + i * d, *to = grad[Q] + i * d;
        const double along = form_dot(g, u + i * d, d),
                     length = sqrt(form_dot(h->q + i * d, h->q + i * d, d));
        for (int64_t k = 0; k < d; k++) {
            to[k] += (g[k] - along * u[i * d + k]) / length;
            g[k] = 0;
        }
    }
    free(u);
    return pairs;
}

static double product_of(const struct run *r, const struct form_head *h, double *y,
                         const double *dy)
{
    double sum = 0;
    r->form->mix(h, y);
    for (int64_t n = 0; n < h->t * h->dv; n++)
        sum += y[n] * dy[n];
    return sum;
}

/* Any other form, differentiated by five-point differences. */
static void mix_truth(const struct run *r, const struct form_head *h, double *y, const double *dy,
                      double *grad[INPUTS])
{
    const double *in[INPUTS] = {h->q, h->k, h->v}, step = 1e-3;
    const int64_t count[INPUTS] = {h->t * h->dk, h->s * h->dk, h->s * h->dv};
    for (int i = 0; i < INPUTS; i++)
        for (int64_t n = 0; n < count[i]; n++) {
            double *x = (double *)in[i] + n, kept = *x, at[4];
            for (int s = 0; s < 4; s++) {
                *x = kept + (s < 2 ? s - 2 : s - 1) * step;
                at[s] = product_of(r, h, y, dy);
            }
            *x = kept;
            grad[i][n] += (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step);
        }
    r->form->mix(h, y);
}

/* Columns of a head of a segment's rows, without gaps. */
static double *columns_of(const heed_tensor *x, int64_t first, int64_t rows, int64_t head,
                          int64_t d)
{
    double *out = calloc((size_t)(rows * d + 1), sizeof *out);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < d; c++)
            out[i * d + c] = (double)heed__row(x, first + i)[head * d + c];
    return out;
}

static void add_columns(double *to, const double *from, int64_t ld, int64_t first, int64_t rows,
                        int64_t head, int64_t d)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < d; c++)
            to[(first + i) * ld + head * d + c] += from[i * d + c];
}

static void true_head(const struct run *r, struct truth *out, int64_t row, int64_t key, int b,
                      int head)
{
    const int64_t kv = head / (HEADS / r->l.options.kv_heads), t = r->queries[b], s = r->keys[b];
    double *in[INPUTS] = {columns_of(r->in[Q], row, t, head, DK),
                          columns_of(r->in[K], key, s, kv, DK),
                          columns_of(r->in[V], key, s, kv, DV)};
    const int64_t ld[INPUTS] = {r->in[Q]->cols, r->in[K]->cols, r->in[V]->cols};
    double *gate = r->gate ? columns_of(r->gate, key, s, kv, 1) : NULL;
    double *still[] = {columns_of(r->in[Q], row, t, head, DK),
                       columns_of(r->in[K], key, s, kv, DK)};
    const struct form_head h = {&r->l, head, r->mode == CAUSAL, t,       s, DK, DV, in[Q], in[K],
                                in[V], gate, still[Q],          still[K]};
    double *y = calloc((size_t)(t * DV + 1), sizeof *y),
           *dy = malloc((size_t)(t * DV + 1) * sizeof *dy);
    double *grad[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        grad[i] = calloc((size_t)((i == Q ? t : s) * DK + 1), sizeof(double));
    for (int64_t i = 0; i < t; i++)
        for (int64_t d = 0; d < DV; d++)
            dy[i * DV + d] = (double)(heed_real)value((row + i) * HEADS * DV + head * DV + d, 40);
    const heed__content *content = heed__content_of(&r->l.options.pattern);
    if (r->form->mix)
        mix_truth(r, &h, y, dy, grad);
    else if (content && content->shares_keys)
        out->pairs += shared_truth(&h, y, dy, grad);
    else
        out->pairs += softmax_truth(&h, y, dy, grad);
    add_columns(out->y, y, HEADS * DV, row, t, head, DV);
    add_columns(out->grad[Q], grad[Q], ld[Q], row, t, head, DK);
    add_columns(out->grad[K], grad[K], ld[K], key, s, kv, DK);
    add_columns(out->grad[V], grad[V], ld[V], key, s, kv, DV);
    for (int i = 0; i < INPUTS; i++) {
        free(in[i]);
        free(grad[i]);
    }
    free(still[Q]);
    free(still[K]);
    free(gate);
    free(y);
    free(dy);
}

static struct truth truth_of(const struct run *r)
{
    struct truth out = {0};
    out.y = calloc((size_t)(rows_of(r->queries) * HEADS * DV), sizeof *out.y);
    for (int i = 0; i < INPUTS; i++)
        out.grad[i] = calloc((size_t)heed_tensor_count(r->in[i]), sizeof(double));
    int64_t row = 0, key = 0;
    for (int b = 0; b < B; row += r->queries[b], key += r->keys[b], b++)
        for (int head = 0; head < HEADS; head++)
            true_head(r, &out, row, key, b, head);
    return out;
}

static void assert_close(const struct run *r, const char *what, const heed_real *found,
                         const double *wanted, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= NEAR * fmax(1, fabs(wanted[i]))))
            fail_msg("%s, %s: %s[%lld] is %.9g, expected %.9g", attention_form_name(r->form),
                     mode_names[r->mode], what, (long long)i, (double)found[i], wanted[i]);
}

/* ---- tests ---- */

static void each_form(bool small, void (*check)(struct run *r, int number))
{
    for (int n = 0; n < ATTENTION_FORMS; n++)
        for (int mode = 0; mode < MODES; mode++) {
            const struct attention_form *f = &attention_forms[n];
            if (!takes(f, mode))
                continue;
            struct run r = run_new(f, mode, small || f->mix);
            check(&r, n);
            heed_params_free(r.p);
        }
}

static void check_truth(struct run *r, int number)
{
    static const char *const names[INPUTS] = {"dq", "dk", "dv"};
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = 1 + number % 3}, NULL);
    struct truth truth = truth_of(r);
    heed_tensor *y = attend_back(t, r);
    assert_close(r, "y", heed_tensor_data(y), truth.y, heed_tensor_count(y));
    for (int i = 0; i < INPUTS; i++) {
        assert_close(r, names[i], heed_params_grads(r->p) + heed_params_entry(r->p, i).offset,
                     truth.grad[i], heed_tensor_count(r->in[i]));
        free(truth.grad[i]);
    }
    /* With spans all heads have the pairs of the widest, and forbid what is behind their own. */
    if (!r->form->mix && !r->l.span && attention_form_can(r->form, HEED_CAN_FUSED) &&
        r->counts.pairs != truth.pairs)
        fail_msg("%s, %s: %lld pairs, expected %lld", attention_form_name(r->form),
                 mode_names[r->mode], (long long)r->counts.pairs, (long long)truth.pairs);
    free(truth.y);
    heed_tape_free(t);
}

/* Catches: a key too many or too few, twice, or of another head or segment; a query that sees
 * nothing; pairs that are computed though the pattern has them not; a gradient that is lost. */
static void forms_match_their_oracles(void **state)
{
    (void)state;
    each_form(false, check_truth);
}

static int run_layer(heed_tape *t, void *context, heed_tensor **out)
{
    out[0] = attend(t, context);
    return 1;
}

static double loss_of(struct run *r, heed_tape *t)
{
    heed_tape_reset(t);
    heed_tensor *y = attend(t, r);
    double sum = 0;
    for (int64_t n = 0; n < heed_tensor_count(y); n++)
        sum += (double)heed_tensor_data(y)[n] * (double)(heed_real)value(n, 40);
    return sum;
}

/* The learned span of each head by differences that stay between two distances. */
static void check_span(struct run *r)
{
    const double step = 0.2 / (double)r->l.options.position_bias.term[0].number[0];
    heed_tape *t = heed_tape_new(NULL, NULL);
    attend_back(t, r);
    for (int h = 0; h < HEADS; h++) {
        heed_real *share = heed_tensor_data(r->l.span) + h, kept = *share;
        const double found = (double)heed_tensor_grad(r->l.span)[h];
        *share = kept + (heed_real)step;
        const double up = loss_of(r, t);
        *share = kept - (heed_real)step;
        const double wanted = (up - loss_of(r, t)) / (2 * step);
        *share = kept;
        if (!(fabs(found - wanted) <= 2e-3 * fmax(1, fabs(wanted))))
            fail_msg("the span of head %d has the gradient %g, expected %g", h, found, wanted);
    }
    heed_tape_free(t);
}

static void check_gradients(struct run *r, int number)
{
    static const char *const names[INPUTS] = {"queries", "keys", "values"};
    (void)number;
    /* Differences of a phi with a kink, or of a choice, would need inputs that stay away from it;
     * the oracle has been differentiated at these. */
    const bool kinks = r->form->mix || heed__content_of(&r->l.options.pattern);
    for (int i = 0; kinks && i < INPUTS; i++)
        assert_int_equal(heed_params_freeze(r->p, names[i], NULL), HEED_OK);
    if (r->l.span) { /* must stay between 0 and 1, and away from kinks: check_span */
        check_span(r);
        assert_int_equal(heed_params_freeze(r->p, "score.span", NULL), HEED_OK);
    }
    if (heed_params_count(r->p) > INPUTS)
        layer_check(r->p, run_layer, r);
}

/* Catches: a parameter of a form without its gradient. */
static void forms_have_their_gradients(void **state)
{
    (void)state;
    each_form(true, check_gradients);
}

static void check_threads(struct run *r, int number)
{
    const heed_tape_options one = {.threads = 1};
    heed_tape *t = heed_tape_new(&one, NULL);
    heed_tensor *y = attend(t, r);
    (void)number;
    for (int threads = 2; threads <= 4; threads++) {
        heed_tape *more = heed_tape_new(&(heed_tape_options){.threads = threads}, NULL);
        assert_memory_equal(heed_tensor_data(y), heed_tensor_data(attend(more, r)),
                            (size_t)heed_tensor_count(y) * sizeof(heed_real));
        heed_tape_free(more);
    }
    heed_tape_free(t);
}

/* Catches: a bit that depends on the number of threads. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    each_form(false, check_threads);
}

static void check_alone(struct run *r, int number)
{
    heed_tape *t = heed_tape_new(NULL, NULL);
    heed_tensor *y = attend(t, r);
    const int64_t *queries = r->queries, *keys = r->keys;
    int64_t row = 0, key = 0;
    (void)number;
    for (int b = 0; b < B; row += queries[b], key += keys[b], b++) {
        const heed_segments *q = heed_segments_new(heed_tape_arena(t), 1, &queries[b]);
        const heed_segments *k = heed_segments_new(heed_tape_arena(t), 1, &keys[b]);
        if (!queries[b])
            continue;
        heed_memory m =
            heed_attend_memory(t, &r->l, heed_slice_rows(t, r->in[K], key, key + keys[b]),
                               heed_slice_rows(t, r->in[V], key, key + keys[b]), k);
        m.gate = r->gate ? heed_slice_rows(t, r->gate, key, key + keys[b]) : NULL;
        heed_tensor *alone =
            heed_attend(t, &r->l, heed_slice_rows(t, r->in[Q], row, row + queries[b]), &m,
                        r->mode == CROSS ? q : k, NULL);
        if (!alone)
            fail_msg("%s", heed_tape_error(t)->text);
        assert_memory_equal(heed__row(y, row), heed_tensor_data(alone),
                            (size_t)heed_tensor_count(alone) * sizeof(heed_real));
    }
    heed_tape_free(t);
}

/* Catches: a segment that changes another's numbers: what padding would be. */
static void segments_are_as_alone(void **state)
{
    (void)state;
    each_form(false, check_alone);
}

/* Catches: keys drawn twice, beyond the last, the same in all heads, layers and queries, others the
 * next time, or not all alike often. */
static void drawn_keys_are_different(void **state)
{
    enum { N = 23, COUNT = 9, QUERIES = 400 };
    int64_t first[HEED__MOST_DRAWN], again[HEED__MOST_DRAWN];
    int times[N] = {0}, same = 0;
    (void)state;
    for (int64_t i = 0; i < QUERIES; i++) {
        const heed__pattern_query q = {.layer = 1, .head = 2},
                                  others[] = {{.layer = 1, .head = 3}, {.layer = 2, .head = 2}, q};
        uint32_t seen = 0;
        assert_int_equal(heed__pattern_draw(&q, i, COUNT, N, first), COUNT);
        for (int k = 0; k < COUNT; k++) {
            assert_in_range(first[k], 0, N - 1);
            assert_false(seen >> first[k] & 1);
            seen |= 1u << first[k];
            times[first[k]]++;
        }
        heed__pattern_draw(&q, i, COUNT, N, again);
        assert_memory_equal(first, again, COUNT * sizeof *first);
        for (int k = 0; k < 3; k++) {
            heed__pattern_draw(&others[k], i + (k == 2), COUNT, N, again);
            same += memcmp(first, again, COUNT * sizeof *first) == 0;
        }
    }
    assert_int_equal(same, 0);
    for (int k = 0; k < N; k++) /* 157 on the average, deviation 10 */
        assert_in_range(times[k], QUERIES * COUNT / N - 50, QUERIES * COUNT / N + 50);
    const heed__pattern_query q = {0};
    assert_int_equal(heed__pattern_draw(&q, 0, COUNT, 3, first), 3);
    assert_int_equal(heed__pattern_draw(&q, 0, COUNT, 0, first), 0);
}

static bool meets(const heed_slot_spec *pattern, int layer, int64_t i, int64_t j, int64_t n,
                  bool causal)
{
    heed_key_range r[512];
    const heed__pattern_query q = {layer, 0, i, n, n, causal};
    const int count = heed__pattern_ranges(pattern, &q, r);
    for (int k = 0; k < count; k++)
        if (j >= r[k].begin && j < r[k].end && (j - r[k].begin) % r[k].step < r[k].width)
            return true;
    return false;
}

/* Catches: a tree or a star in which a token cannot be reached by way of one other, and pictures
 * whose rows and columns do not make a whole. */
static void two_steps_reach_everything(void **state)
{
    static const struct {
        const char *pattern;
        int64_t n;
        bool causal;
    } rows[] = {{"bpt:1", 77, false},   {"bpt:3", 64, false},    {"bpt:1", 77, true},
                {"bpt:2", 200, true},   {"star", 40, false},     {"fixed:7:1", 50, true},
                {"axial:8", 64, false}, {"strided:8", 64, true}, {"etc:3:1", 40, false}};
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const heed_slot_spec spec = form_slot(HEED_SLOT_PATTERN, rows[row].pattern);
        const heed_slot_spec pattern = heed__slot_complete(HEED_SLOT_PATTERN, &spec);
        const int64_t n = rows[row].n;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < (rows[row].causal ? i + 1 : n); j++) {
                bool reached = false;
                for (int64_t via = 0; via < n && !reached; via++)
                    reached = meets(&pattern, 1, i, via, n, rows[row].causal) &&
                              meets(&pattern, 0, via, j, n, rows[row].causal);
                if (!reached)
                    fail_msg("%s: %lld does not reach %lld of %lld", rows[row].pattern,
                             (long long)i, (long long)j, (long long)n);
            }
    }
}

/* Catches: a pattern that is stored or walked pair by pair: ranges of a long sequence are few. */
static void ranges_are_few(void **state)
{
    enum { N = 1 << 20 };
    static const char *const patterns[] = {
        "band:64+global:2",    "dilated:64:2",      "strided:1024",
        "fixed:1024:4",        "bigbird:64:3",      "bpt:4",
        "block-image:1024:16", "axial:1024:merged", "star"};
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        const heed_slot_spec spec = form_slot(HEED_SLOT_PATTERN, patterns[p]);
        const heed_slot_spec pattern = heed__slot_complete(HEED_SLOT_PATTERN, &spec);
        for (int64_t i = 0; i < N; i += 9973) {
            heed_key_range r[512];
            const heed__pattern_query q = {1, 0, i, N, N, false};
            const int count = heed__pattern_ranges(&pattern, &q, r);
            assert_true(count <= heed__pattern_most(&pattern, N));
            if (count > 50)
                fail_msg("%s: %d ranges for query %lld", patterns[p], count, (long long)i);
        }
    }
}

static bool is_named(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = text; at; at = strchr(at, '+'), at = at ? at + 1 : NULL)
        if (strncmp(at, name, n) == 0 && strchr("+:", at[n]))
            return true;
    return false;
}

/* Catches: a row of a slot without a form, and so without a proof. */
static void every_row_has_a_form(void **state)
{
    (void)state;
    for (int i = 0; i < heed_attention_count(); i++) {
        const heed_attention_info row = heed_attention_describe(i);
        bool found = false;
        if (row.slot == HEED_SLOT_SCORE || !(row.can & HEED_CAN_STACKS)) /* test_attend.c */
            continue;
        if (heed_sublayer_class_find(row.name)) /* test_sublayers.c */
            continue;
        for (int n = 0; n < ATTENTION_FORMS; n++) {
            const struct attention_form *f = &attention_forms[n];
            const char *text[] = {[HEED_SLOT_QUERIES] = f->queries,
                                  [HEED_SLOT_MEMORY] = f->memory,
                                  [HEED_SLOT_PATTERN] = f->pattern,
                                  [HEED_SLOT_BIAS] = f->bias,
                                  [HEED_SLOT_NORMALISER] = f->normaliser};
            found |= text[row.slot] ? is_named(text[row.slot], row.name)
                                    : strcmp(heed__row_of(row.slot, 0)->info.name, row.name) == 0;
        }
        if (!found)
            fail_msg("%s %s has no form in attention_table.h", heed_attention_slot_name(row.slot),
                     row.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_match_their_oracles),  cmocka_unit_test(forms_have_their_gradients),
        cmocka_unit_test(threads_change_no_bit),      cmocka_unit_test(segments_are_as_alone),
        cmocka_unit_test(every_row_has_a_form),       cmocka_unit_test(drawn_keys_are_different),
        cmocka_unit_test(two_steps_reach_everything), cmocka_unit_test(ranges_are_few),
    };
    return cmocka_run_group_tests_name("attention table", tests, NULL, NULL);
}
