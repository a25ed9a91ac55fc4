/* score.c: how probable given translations are.  The whole target is known, so one pass over all of
 * its tokens does what the search does step by step. */
#include "base/error.h"
#include "decode/translator.h"

/* Tokens in a batch, of the longer side. */
#define BATCH_TOKENS 4096

struct pairs {
    heed_tokens *source, *target;
    int64_t *length;      /* tokens of the longer side, EOS included */
    const int64_t *order; /* the longest first */
};

static heed_status encode_side(const heed_translator *tr, const heed_vocab *v, const char *side,
                               const char *const *lines, int64_t count, heed_tokens **tokens,
                               heed_error *err)
{
    int64_t longest = heed_model_configuration(tr->model)->longest - 1; /* EOS has its place */
    heed_tokens *t = *tokens = heed__take(tr->lines, count, sizeof *t, err);
    heed_status status = t ? HEED_OK : HEED_MEMORY;
    for (int64_t i = 0; !status && i < count; i++) {
        bool repaired;
        status = heed__encode_line(v, lines[i], tr->lines, &t[i], &repaired, err);
        if (!status && t[i].count > longest)
            status = heed__fail(err, HEED_ARGUMENT,
                                "the %s of pair %lld has %lld tokens, expected at most %lld as the "
                                "model takes",
                                side, (long long)i + 1, (long long)t[i].count, (long long)longest);
    }
    return status;
}

static heed_status prepare(heed_translator *tr, const char *const *source,
                           const char *const *target, int64_t count, struct pairs *p,
                           heed_error *err)
{
    heed_status status = encode_side(tr, tr->source, "source", source, count, &p->source, err);
    if (!status)
        status = encode_side(tr, tr->target, "target", target, count, &p->target, err);
    if (status)
        return status;
    p->length = heed__take(tr->lines, count, sizeof *p->length, err);
    for (int64_t i = 0; p->length && i < count; i++) {
        int64_t m = p->source[i].count, n = p->target[i].count;
        p->length[i] = (m > n ? m : n) + 1;
    }
    int64_t most = heed_model_configuration(tr->model)->longest;
    p->order = p->length ? heed__longest_first(p->length, count, most, tr->lines, err) : NULL;
    if (!p->order)
        return HEED_MEMORY;
    if (tr->tape)
        return HEED_OK;
    tr->tape = heed_tape_new(
        &(heed_tape_options){.allocator = &tr->allocator, .threads = tr->threads}, err);
    if (!tr->tape)
        return HEED_MEMORY;
    heed_tape_set_recording(tr->tape, false);
    heed_tape_set_training(tr->tape, false);
    return HEED_OK;
}

/* One sentence's share of a batch's result, copied to the caller. */
static heed_status hand_out(const int32_t *ids, const heed_real *log_p, int64_t count,
                            heed_arena *arena, heed_hypothesis *out, heed_error *err)
{
    int32_t *id = heed__take(arena, count, sizeof *id, err);
    heed_real *value = heed__take(arena, count, sizeof *value, err);
    if (!id || !value)
        return HEED_MEMORY;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!heed__is_log_p(log_p[i]))
            return heed__not_log_p(err, ids[i], log_p[i], i);
        id[i] = ids[i];
        value[i] = log_p[i];
        sum += (double)log_p[i];
    }
    *out = (heed_hypothesis){id, count, sum, sum, value};
    return HEED_OK;
}

static heed_status score_batch(heed_translator *tr, const struct pairs *p, const int64_t *which,
                               int64_t count, heed_arena *arena, heed_hypothesis *out,
                               heed_error *err)
{
    heed_arena_reset(tr->batch);
    heed_tokens *source = heed__take(tr->batch, count, sizeof *source, err);
    heed_tokens *target = heed__take(tr->batch, count, sizeof *target, err);
    if (!source || !target)
        return HEED_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        source[i] = p->source[which[i]];
        target[i] = p->target[which[i]];
    }
    heed_batch batch;
    heed_status status = heed_batch_pack(tr->batch, source, target, count, &batch, err);
    if (status)
        return status;
    heed_tape_reset(tr->tape);
    const heed_real *log_p = heed_model_score(tr->model, tr->tape, &batch);
    const heed_error *failed = heed_tape_error(tr->tape);
    if (!log_p)
        return heed__fail(err, failed->status, "%s", failed->text);
    for (int64_t i = 0; !status && i < count; i++) {
        int64_t begin = batch.target->offset[i], end = batch.target->offset[i + 1];
        status = hand_out(batch.target_out + begin, log_p + begin, end - begin, arena,
                          &out[which[i]], err);
    }
    return status;
}

heed_status heed_score(heed_translator *tr, const char *const *source, const char *const *target,
                       int64_t count, heed_arena *arena, heed_hypothesis *out, heed_error *err)
{
    struct pairs p;
    heed_arena_reset(tr->lines);
    heed_status status = prepare(tr, source, target, count, &p, err);
    for (int64_t begin = 0, end; !status && begin < count; begin = end) {
        int64_t room = BATCH_TOKENS / p.length[p.order[begin]];
        end = begin + (room > 1 ? room : 1);
        end = end < count ? end : count;
        status = score_batch(tr, &p, p.order + begin, end - begin, arena, out, err);
    }
    return status;
}
