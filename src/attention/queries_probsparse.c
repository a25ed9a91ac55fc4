/* queries_probsparse.c: ProbSparse attention (Zhou et al. 2021, "Informer"): only queries whose
 * weights are far from uniform look for themselves.
 *
 *   M_i = max_j s_ij - mean_j s_ij over U sampled keys;  U = u = C ceil(ln L)
 *   the u queries with the largest M see all keys; any other gets mean(V)
 *
 * At most 64 keys are sampled, drawn once and for all from layer, head and query.  Causal: query i
 * draws from the keys 0..i, is active if its M is among the u(i + 1) largest so far, and gets the
 * mean of the values so far if not, so that nothing depends on what comes later.  Informer's public
 * code differs: it divides the sum over the sample by all keys, draws anew in every pass, and in a
 * causal layer chooses among all queries, later ones too, and gives the others running sums.  C
 * counts as in the paper; which queries are active has no gradient. */
#include "attention/attend.h"

#include "base/min_max.h"
#include "base/parallel.h"
#include "tensor/tape.h"
#include <math.h>

/* u of a sequence of n. */
static int64_t active_of(int64_t n, int64_t c)
{
    const int64_t u = c * (int64_t)ceil(log((double)n));
    return heed__max(1, heed__min(u, n));
}

/* ---- which queries are active ---- */

struct job {
    const heed_tensor *q, *k;
    const heed_segments *queries, *keys;
    int heads, kv_heads, layer;
    int64_t c;
    bool causal;
    uint8_t *active; /* (N,H) */
    struct leader {
        double m;
        int64_t i;
    } * leaders; /* (threads,room): largest M first */
    int64_t room;
};

static double product(const heed_real *a, const heed_real *b, int64_t d)
{
    heed_real sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += a[i] * b[i];
    return (double)sum;
}

/* M of a query over the first n keys. */
static double sparsity(const struct job *j, const heed_real *q, int64_t first, int64_t n, int head,
                       int64_t i)
{
    const int64_t d = j->q->cols / j->heads, u = active_of(n, j->c);
    const int64_t kv = head / (j->heads / j->kv_heads);
    int64_t drawn[HEED__MOST_DRAWN], count = n;
    const heed__pattern_query from = {.layer = j->layer, .head = head};
    double most = -INFINITY, sum = 0;
    if (u < n)
        count = heed__pattern_draw(&from, i, u, n, drawn);
    for (int64_t e = 0; e < count; e++) {
        const double s = product(q, heed__row(j->k, first + (u < n ? drawn[e] : e)) + kv * d, d);
        most = fmax(most, s);
        sum += s;
    }
    return most - sum / (double)count;
}

/* Puts (m,i) among the `most` largest, of which there are *n: how many are before it, `most` if it
 * is none of them. */
static int64_t enter(struct leader *leaders, int64_t *n, int64_t most, double m, int64_t i)
{
    int64_t at = *n;
    while (at > 0 && leaders[at - 1].m < m)
        at--;
    if (at >= most)
        return most;
    *n = heed__min(*n + 1, most);
    for (int64_t e = *n - 1; e > at; e--)
        leaders[e] = leaders[e - 1];
    leaders[at] = (struct leader){m, i};
    return at;
}

static void choose(void *context, int64_t begin, int64_t end, int thread)
{
    const struct job *j = context;
    const int64_t d = j->q->cols / j->heads;
    struct leader *leaders = j->leaders + thread * j->room;
    for (int64_t task = begin; task < end; task++) {
        const int64_t b = task / j->heads, first = j->queries->offset[b];
        const int head = (int)(task % j->heads);
        const int64_t n = j->queries->offset[b + 1] - first;
        const int64_t keys = j->keys->offset[b + 1] - j->keys->offset[b];
        const int64_t most = active_of(heed__max(n, 1), j->c);
        int64_t there = 0;
        for (int64_t i = 0; i < n; i++) {
            const heed_real *q = heed__row(j->q, first + i) + head * d;
            const double m =
                keys ? sparsity(j, q, j->keys->offset[b], j->causal ? i + 1 : keys, head, i) : 0;
            const int64_t before = enter(leaders, &there, most, m, i);
            j->active[(first + i) * j->heads + head] = j->causal && before < active_of(i + 1, j->c);
        }
        for (int64_t e = 0; !j->causal && keys && e < there; e++)
            j->active[(first + leaders[e].i) * j->heads + head] = 1;
    }
}

static uint8_t *find_active(heed_tape *t, const heed_attend_options *o, const heed_tensor *q,
                            const heed_memory *m, const heed_segments *queries, bool causal)
{
    heed_arena *arena = heed_tape_arena(t);
    struct job j = {.q = q,
                    .k = m->keys,
                    .queries = queries,
                    .keys = m->segments,
                    .heads = o->heads,
                    .kv_heads = o->kv_heads,
                    .layer = o->layer,
                    .c = o->queries.term[0].number[0],
                    .causal = causal};
    j.room = active_of(heed__max(1, queries->longest), j.c);
    const int64_t work =
        queries->longest * heed__min(HEED__MOST_DRAWN, j.room) * (q->cols / o->heads + 16);
    const int width = heed__parallel_width(t->threads, queries->count * o->heads, 1, work);
    j.leaders = heed_arena_allocate(arena, (size_t)(width * j.room) * sizeof *j.leaders);
    j.active = heed_arena_allocate(arena, (size_t)(queries->rows * o->heads + 1));
    if (!j.leaders || !j.active)
        return heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld queries",
                              (long long)queries->rows),
               NULL;
    heed__parallel(t->threads, queries->count * o->heads, 1, work, choose, &j);
    return j.active;
}

/* ---- what they answer ---- */

/* The active queries, head of keys by head of keys: row n H + h in `row`, how many keys each may
 * see, and for all queries the row of the answers below them. */
struct active {
    const heed_segments *each; /* (B*KvHeads) */
    int32_t *row, *visible;
    int32_t *source; /* (N*H): a row of what is active, or, behind these, of the means */
};

static bool gather_active(heed_tape *t, const heed_attend_options *o, const uint8_t *active,
                          const heed_segments *queries, bool causal, struct active *a)
{
    heed_arena *arena = heed_tape_arena(t);
    const int64_t rows = queries->rows * o->heads, count = queries->count * o->kv_heads;
    const int each = o->heads / o->kv_heads;
    int64_t *length = heed_arena_allocate(arena, (size_t)(count + 1) * sizeof *length), n = 0;
    int32_t *index = heed_arena_allocate(arena, 3 * (size_t)(rows + 1) * sizeof *index);
    if (length && index) {
        a->row = index;
        a->visible = a->row + rows + 1;
        a->source = a->visible + rows + 1;
        for (int64_t b = 0; b < queries->count; b++)
            for (int h = 0; h < o->heads; h++) {
                int64_t *here = &length[b * o->kv_heads + h / each];
                *here = h % each ? *here : 0;
                for (int64_t i = queries->offset[b]; i < queries->offset[b + 1]; i++)
                    if (active[i * o->heads + h]) {
                        a->visible[n] = (int32_t)(i - queries->offset[b] + 1);
                        a->source[i * o->heads + h] = (int32_t)n;
                        a->row[n++] = (int32_t)(i * o->heads + h);
                        ++*here;
                    }
            }
        a->each = heed_segments_new(arena, count, length);
    }
    if (!length || !index || !a->each) {
        heed_tape_fail(t, HEED_MEMORY, "attention: no memory for %lld queries",
                       (long long)queries->rows);
        return false;
    }
    for (int64_t b = 0; b < queries->count; b++)
        for (int64_t i = queries->offset[b]; i < queries->offset[b + 1]; i++)
            for (int h = 0; h < o->heads; h++)
                if (!active[i * o->heads + h])
                    a->source[i * o->heads + h] =
                        (int32_t)(n + (causal ? i : b) * o->kv_heads + h / each);
    return true;
}

/* (N,KvHeads*Dv): of the values so far; or (B,KvHeads*Dv) of all. */
static heed_tensor *means(heed_tape *t, const heed_memory *m, bool causal)
{
    if (!causal)
        return heed_segment_mean(t, m->values, m->segments);
    heed_tensor *same = heed_input(t, HEED_SHAPE(m->segments->rows, 1), NULL);
    return heed_linear_attention(
        t, same, same, m->values, m->segments, m->segments,
        &(heed_linear_attention_options){
            .heads = 1, .causal = true, .eps = 1e-20, .features = {.kind = HEED_FEATURES_ELU}});
}

static heed_tensor *answer(heed_tape *t, const heed_attend_layer *l, heed_tensor *q,
                           const heed_memory *m, const heed_segments *queries, bool causal,
                           const heed_attention_options *one)
{
    const heed_attend_options *o = &l->options;
    struct active a = {0};
    if ((queries->rows + m->segments->rows) * o->heads > INT32_MAX)
        return heed_tape_fail(t, HEED_ARGUMENT, "attention: %lld queries of %d heads are too many",
                              (long long)queries->rows, o->heads);
    if (causal && queries->rows != m->segments->rows)
        return heed_tape_fail(t, HEED_ARGUMENT,
                              "attention: %lld queries and %lld keys, causal probsparse is of one "
                              "sequence",
                              (long long)queries->rows, (long long)m->segments->rows);
    const uint8_t *active = find_active(t, o, q, m, queries, causal);
    if (!active || !gather_active(t, o, active, queries, causal, &a))
        return NULL;
    const heed_segments *keys, *values;
    heed_tensor *k = heed__heads_apart(t, m->keys, m->segments, o->kv_heads, &keys);
    heed_tensor *v = heed__heads_apart(t, m->values, m->segments, o->kv_heads, &values);
    if (!k || !v)
        return NULL;
    heed_attention_options alone = *one;
    alone.heads = alone.kv_heads = 1;
    alone.visible = causal ? a.visible : NULL;
    heed_tensor *own =
        heed_attention(t, heed_gather_rows(t, heed__head_rows(t, q, o->heads), a.row, a.each->rows),
                       k, v, a.each, keys, &alone);
    heed_tensor *part[] = {own, heed__head_rows(t, means(t, m, causal), o->kv_heads)};
    heed_tensor *y =
        heed_gather_rows(t, heed_concat_rows(t, part, 2), a.source, queries->rows * o->heads);
    return y ? heed_reshape(t, y, HEED_SHAPE(queries->rows, heed_tensor_cols(y) * o->heads)) : NULL;
}

const heed__slot_row heed__queries_probsparse = {
    .info = {.slot = HEED_SLOT_QUERIES,
             .name = "probsparse",
             .form = "probsparse:C",
             .formula = "the u = C ceil(ln L) queries with the largest max - mean of sampled "
                        "scores; others get mean(V)",
             .paper = "Zhou et al. 2021",
             .cost = "u S / T pairs and u products a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_CROSS | HEED_CAN_HEADS | HEED_CAN_STACKS |
                    HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .queries = &(const heed__queries_form){.answer = answer, .drops = true},
};
