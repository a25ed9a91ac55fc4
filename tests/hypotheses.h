/* hypotheses.h: what a test remembers of the rows that it decodes, and what the whole forward pass
 * says about them. */
#ifndef HEED_TESTS_HYPOTHESES_H
#define HEED_TESTS_HYPOTHESES_H

#include "small_transformer.h"

enum { MOST_ROWS = 40 };

/* A hypothesis as the test remembers it. */
struct history {
    int sentence;
    int length; /* BOS counted */
    int32_t token[LONGEST];
};

struct rows {
    int count;
    struct history at[MOST_ROWS];
};

/* The next token of each row: BOS first, then what the rng says. */
static void next_tokens(struct rows *rows, const heed_rng *rng, int32_t *token)
{
    for (int r = 0; r < rows->count; r++) {
        struct history *h = &rows->at[r];
        uint64_t at = (uint64_t)(1000 * h->length + r);
        token[r] = h->length ? 3 + (int32_t)heed_rng_below(rng, at, VOCABULARY - 3) : HEED_BOS;
        h->token[h->length++] = token[r];
    }
}

static void take_parents(struct rows *rows, const int32_t *parent, int count)
{
    struct rows old = *rows;
    rows->count = count;
    for (int r = 0; r < count; r++)
        rows->at[r] = old.at[parent[r]];
}

/* What the whole forward pass says about piece v after this history. */
static heed_real oracle(const heed_model *m, heed_tape *t, const struct pairs *p,
                        const struct history *h, int32_t v)
{
    heed_tokens target = {h->token + 1, h->length - 1};
    heed_batch b;
    assert_int_equal(heed_batch_pack(p->arena, NULL, p->source + h->sentence, &target, 1, &b, NULL),
                     HEED_OK);
    ((int32_t *)b.wanted)[b.target.rows->rows - 1] = v;
    heed_real *scores = score(m, t, &b), last = scores[b.target.rows->rows - 1];
    free(scores);
    return last;
}

/* Three pieces of each row, others in the next, from all over the vocabulary: what is wrong is
 * hardly wrong in one alone.  log_z is NULL where log_p is normalised. */
static void check_rows(const heed_model *m, heed_tape *t, const struct pairs *p,
                       const struct rows *rows, const heed_real *log_p, const heed_real *log_z)
{
    const int32_t columns = (int32_t)heed_model_configuration(m)->target_vocabulary;
    for (int r = 0; r < rows->count; r++)
        for (int k = 0; k < 3; k++) {
            int32_t v = (r + 6 * k) * 37 % columns;
            double found = (double)log_p[r * columns + v] - (log_z ? (double)log_z[r] : 0);
            assert_near(found, (double)oracle(m, t, p, &rows->at[r], v), SAME);
        }
}

/* Random parents that stay in the order of their sentences: some rows dropped, some doubled. */
static int draw_parents(const struct rows *rows, const heed_rng *rng, uint64_t at, int32_t *parent)
{
    int n = 0;
    for (int r = 0; r < rows->count; r++)
        for (int64_t k = heed_rng_below(rng, at + (uint64_t)r, 4); k > 1 && n < MOST_ROWS; k--)
            parent[n++] = r;
    /* within a sentence any order will do: swap where neighbours allow it */
    for (int r = 0; r + 1 < n; r++)
        if (rows->at[parent[r]].sentence == rows->at[parent[r + 1]].sentence) {
            int32_t kept = parent[r];
            parent[r] = parent[r + 1];
            parent[r + 1] = kept;
        }
    return n;
}

#endif
