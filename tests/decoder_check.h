/* decoder_check.h: hypotheses of a decoder as a test remembers them, and cached steps against the
 * whole forward pass, for any architecture. */
#ifndef HEED_TESTS_DECODER_CHECK_H
#define HEED_TESTS_DECODER_CHECK_H

#include "hypotheses.h"
#include <heed/task.h>

static heed_decoder *new_decoder(const heed_model *m, int threads)
{
    heed_error err = {0};
    heed_decoder *d = heed_decoder_new(m, threads, NULL, &err);
    if (!d)
        fail_msg("%s", err.text);
    return d;
}

static void start(heed_decoder *d, const struct pairs *p, int first, int count, struct rows *rows)
{
    heed_error err = {0};
    heed_batch b;
    assert_int_equal(heed_batch_pack(p->arena, NULL, p->source + first, NULL, count, &b, &err),
                     HEED_OK);
    if (heed_decoder_start(d, &b, &err))
        fail_msg("%s", err.text);
    *rows = (struct rows){.count = count};
    for (int r = 0; r < count; r++)
        rows->at[r].sentence = first + r;
}

/* Appends a token to each row: BOS first, then what the rng says. */
static const heed_real *step(heed_decoder *d, struct rows *rows, const heed_rng *rng)
{
    int32_t token[MOST_ROWS];
    heed_error err = {0};
    const heed_real *log_p;
    next_tokens(rows, rng, token);
    if (heed_decoder_step(d, token, &log_p, &err))
        fail_msg("%s", err.text);
    return log_p;
}

static void reorder(heed_decoder *d, struct rows *rows, const int32_t *parent, int count)
{
    heed_error err = {0};
    if (heed_decoder_reorder(d, parent, count, &err))
        fail_msg("%s", err.text);
    take_parents(rows, parent, count);
}

static inline void check_model(const heed_model_config *config)
{
    enum { SENTENCES = 8, STEPS = 9 };
    heed_model *m = new_model(config);
    heed_decoder *d = new_decoder(m, 2);
    heed_tape *t = new_tape(1);
    struct pairs *p = draw_pairs(2 * SENTENCES, 11);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 12});
    for (int round = 0; round < 2; round++) { /* a decoder is used again */
        struct rows rows;
        start(d, p, SENTENCES * round, SENTENCES, &rows);
        for (int i = 0; i < STEPS && rows.count; i++) {
            check_rows(m, t, p, &rows, step(d, &rows, &rng), NULL);
            int32_t parent[MOST_ROWS];
            for (int times = i % 3; times > 0; times--) { /* none, one, two at once */
                int n = draw_parents(&rows, &rng, (uint64_t)(10000 * (i + 1) + times), parent);
                reorder(d, &rows, parent, n);
            }
        }
    }
    pairs_free(p);
    heed_tape_free(t);
    heed_decoder_free(d);
    heed_model_free(m);
}

/* Updates until every next token of the pairs is the likeliest, or `most`; how many there were. */
static inline int learn(heed_model *m, const heed_batch *b, int most)
{
    heed_optimizer *o = heed_optimizer_new(
        heed_model_params(m), &(heed_optimizer_options){.kind = HEED_ADAM}, NULL, NULL);
    heed_tape *t = new_tape(1);
    const double tokens = (double)b->target.rows->rows;
    double nll = 1e9;
    int step = 0;
    for (; step < most && nll / tokens > 0.05; step++) {
        heed_tape_reset(t);
        heed_tape_step(t, (uint64_t)step, 0, 0);
        assert_int_equal(heed_backward(t, heed_model_loss(m, t, b, 1 / tokens, &nll)), HEED_OK);
        heed_optimizer_step(o, 3e-3 * fmin(1, (step + 1) / 20.0), 1);
    }
    heed_tape_free(t);
    heed_optimizer_free(o);
    return step;
}

/* How many of the pairs come out of the decoder as they are, taking the likeliest token each time.
 * Rows that have said EOS leave. */
static inline int right_translations(const heed_model *m, const struct pairs *p)
{
    heed_decoder *d = new_decoder(m, 1);
    struct rows rows;
    int right = 0;
    start(d, p, 0, p->count, &rows);
    int32_t token[MOST_PAIRS], parent[MOST_PAIRS];
    for (int r = 0; r < rows.count; r++)
        token[r] = HEED_BOS;
    for (int i = 0; i < LONGEST && rows.count; i++) {
        const heed_real *log_p;
        assert_int_equal(heed_decoder_step(d, token, &log_p, NULL), HEED_OK);
        int n = 0;
        for (int r = 0; r < rows.count; r++, log_p += VOCABULARY) {
            const heed_tokens *wanted = &p->target[rows.at[r].sentence];
            int32_t best = 0;
            for (int v = 1; v < VOCABULARY; v++)
                best = log_p[v] > log_p[best] ? v : best;
            if (i < wanted->count && best == wanted->id[i]) {
                token[n] = best;
                parent[n++] = r;
            } else {
                right += best == HEED_EOS && i == wanted->count;
            }
        }
        reorder(d, &rows, parent, n);
    }
    heed_decoder_free(d);
    return right;
}

#endif
