/* encoder_batches.c: batches of items: their order in an epoch, tokens that are hidden, masks.
 *
 * A batch takes items until it has --batch-tokens; there is no padding, so their lengths need
 * not be alike.  Everything that is drawn comes from (seed, epoch) or (seed, update, micro-
 * batch). */
#include "task/encoder_task.h"

#include <math.h>
#include <string.h>

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for a batch");
}

/* A batch while it is made. */
struct making {
    const heed__encoding *t;
    heed_arena *arena;
    heed_rng rng;
    uint64_t drawn; /* numbers of rng */
    bool training;
    heed__read *read; /* (sequences) */
    int64_t sequences, rows;
    int32_t *wanted, *row;
    int64_t wanted_count;
    double *score;
};

static double draw(struct making *m)
{
    return heed_rng_uniform(&m->rng, m->drawn++);
}

static bool is_text(const heed_special_ids *ids, int32_t id)
{
    return id != ids->cls && id != ids->sep && id != ids->bos && id != ids->eos && id != ids->pad;
}

static void want(struct making *m, int64_t row, int32_t answer)
{
    m->row[m->wanted_count] = (int32_t)row;
    m->wanted[m->wanted_count++] = answer;
}

/* ---- what is hidden ---- */

/* [MASK], or the unknown piece, in the place of some tokens. */
static void hide_some(struct making *m, int32_t *id, int64_t n)
{
    const double share = m->t->recipe.train.word_dropout;
    const heed_special_ids ids = heed_vocab_special(m->t->vocab);
    const int32_t instead = ids.mask >= 0 ? ids.mask : ids.unk;
    if (!m->training || share <= 0 || instead < 0)
        return;
    for (int64_t i = 0; i < n; i++)
        if (is_text(&ids, id[i]) && draw(m) < share)
            id[i] = instead;
}

/* Devlin et al. 2019, section 3.1: of the chosen tokens 80 in 100 become [MASK], 10 another
 * token, 10 stay; the loss is of the chosen ones alone. */
static void mask_some(struct making *m, int32_t *id, int64_t n, int64_t first_row)
{
    const heed_special_ids ids = heed_vocab_special(m->t->vocab);
    const double share = m->t->recipe.train.mask_share;
    const int32_t pieces = heed_vocab_size(m->t->vocab);
    for (int64_t i = 0; i < n; i++) {
        if (!is_text(&ids, id[i]) || draw(m) >= share)
            continue;
        want(m, first_row + i, id[i]);
        const double fate = draw(m);
        if (fate < 0.8)
            id[i] = ids.mask;
        else if (fate < 0.9)
            id[i] = (int32_t)(draw(m) * pieces);
    }
}

/* ---- pairs of halves ---- */

/* The second half is the one that follows, or, half of the time, that of another block; [CLS] is
 * asked which: [SEP] if it follows, [UNK] if not.  So the head over the vocabulary answers it, and
 * needs no second one. */
static heed_status pair_halves(struct making *m, const heed__item_set *set, heed__read *r,
                               heed_error *err)
{
    const heed_special_ids ids = heed_vocab_special(m->t->vocab);
    const bool follows = draw(m) < 0.5;
    const int64_t other = (int64_t)(draw(m) * (double)set->count);
    const heed__read *b = &set->item[other].read[0];
    want(m, m->rows, follows ? ids.sep : ids.unk);
    if (follows)
        return HEED_OK;
    const int64_t from = b->second, n = b->count - from, before = r->second;
    int32_t *id = heed_arena_allocate(m->arena, (size_t)(before + n) * sizeof *id);
    if (!id)
        return no_memory(err);
    memcpy(id, r->id, (size_t)before * sizeof *id);
    memcpy(id + before, b->id + from, (size_t)n * sizeof *id);
    r->id = id;
    r->count = before + n;
    return HEED_OK;
}

/* ---- a batch ---- */

/* A copy, since tokens of it may change. */
static heed_status add(struct making *m, const heed__item_set *set, const heed__item *x, int side,
                       heed_error *err)
{
    heed__read *r = &m->read[m->sequences++];
    const int task = m->t->recipe.train.task;
    *r = x->read[side];
    int32_t *id = heed_arena_allocate(m->arena, (size_t)r->count * sizeof *id);
    if (!id)
        return no_memory(err);
    r->id = memcpy(id, r->id, (size_t)r->count * sizeof *id);
    if (task == HEED_ENCODER_MLM) {
        if (m->t->recipe.train.next_sentence && pair_halves(m, set, r, err))
            return HEED_MEMORY;
        mask_some(m, r->id, r->count, m->rows);
    } else {
        hide_some(m, r->id, r->count);
        if (task == HEED_ENCODER_CLASSIFY)
            want(m, m->rows, x->label);
        for (int64_t i = 0; task == HEED_ENCODER_TAG && i < r->words; i++)
            if (x->tag[i] >= 0 || !m->training)
                want(m, m->rows + r->first[i], x->tag[i]);
    }
    m->rows += r->count;
    return HEED_OK;
}

/* Every batch has an answer: where chance has masked nothing, the first token is asked for. */
static void want_something(struct making *m)
{
    if (m->t->recipe.train.task == HEED_ENCODER_MLM && !m->wanted_count)
        want(m, 1, m->read[0].id[1]);
}

static int64_t item_tokens(const heed__item *x)
{
    return x->read[0].count + x->read[1].count;
}

static const heed__item *item_of(const heed__item_set *set, const int64_t *order, int64_t i)
{
    return &set->item[order ? order[i] : i];
}

heed_status heed__encoder_batch(const heed__encoding *t, const heed__item_set *set,
                                const int64_t *order, int64_t n, bool training, const heed_rng *rng,
                                heed_arena *arena, heed__item_batch *out, heed_error *err)
{
    const bool pairs = t->recipe.train.task == HEED_ENCODER_EMBED;
    struct making m = {.t = t, .arena = arena, .rng = *rng, .training = training};
    heed_status status = HEED_OK;
    *out = (heed__item_batch){0};
    do
        out->tokens += item_tokens(item_of(set, order, out->taken++));
    while (out->taken < n && out->tokens + item_tokens(item_of(set, order, out->taken)) <=
                                 t->recipe.train.batch_tokens);
    /* A block that gets another half may be longer than it was. */
    const int64_t longest = t->recipe.model.longest;
    const size_t answers = (size_t)(out->tokens + out->taken * (longest + 1));
    m.read = heed_arena_allocate(arena, (size_t)(2 * out->taken) * sizeof *m.read);
    m.wanted = heed_arena_allocate(arena, answers * sizeof *m.wanted);
    m.row = heed_arena_allocate(arena, answers * sizeof *m.row);
    m.score = heed_arena_allocate(arena, (size_t)out->taken * sizeof *m.score);
    if (!m.read || !m.wanted || !m.row || !m.score)
        return no_memory(err);
    for (int side = 0; side < 1 + pairs; side++)
        for (int64_t i = 0; !status && i < out->taken; i++)
            status = add(&m, set, item_of(set, order, i), side, err);
    if (status)
        return status;
    want_something(&m);
    for (int64_t i = 0; i < out->taken; i++)
        m.score[i] = item_of(set, order, i)->score;
    out->score = pairs && !isnan(m.score[0]) ? m.score : NULL;
    out->batch = (heed_batch){.examples = out->taken,
                              .wanted = m.wanted,
                              .wanted_row = m.row,
                              .wanted_count = pairs ? out->taken : m.wanted_count};
    return heed__read_join(m.read, m.sequences, t->recipe.model.transformer.types > 1, arena,
                           &out->batch.source, err);
}

/* ---- the order of an epoch ---- */

static void shuffle(heed__encoding *t, int64_t epoch)
{
    const int64_t n = t->train.count;
    const heed_rng rng =
        heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                        .step = (uint64_t)epoch,
                                        .node = HEED_TASK_NODE + 1});
    for (int64_t i = 0; i < n; i++)
        t->order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = heed_rng_below(&rng, (uint64_t)i, i + 1), other = t->order[k];
        t->order[k] = t->order[i];
        t->order[i] = other;
    }
    t->ordered = epoch;
}

heed_status heed__encoder_next(void *self, int64_t update, int micros, heed_portion *portion,
                               heed_error *err)
{
    heed__encoding *t = self;
    heed_status status = HEED_OK;
    heed_arena_reset(t->passing);
    for (int i = 0; !status && i < micros; i++) {
        heed__item_batch b;
        if (t->position.at[0] >= t->train.count)
            t->position = (heed_position){.epoch = t->position.epoch + 1};
        if (t->ordered != t->position.epoch)
            shuffle(t, t->position.epoch);
        const heed_rng rng =
            heed_rng_stream(&(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed,
                                            .step = (uint64_t)update,
                                            .micro_batch = (uint32_t)i,
                                            .node = HEED_TASK_NODE + 2});
        status = heed__encoder_batch(t, &t->train, t->order + t->position.at[0],
                                     t->train.count - t->position.at[0], true, &rng, t->passing, &b,
                                     err);
        if (status)
            break;
        t->position.at[0] += b.taken;
        t->micro[i] = b.batch;
        t->score[i] = b.score;
        portion[i] = (heed_portion){.terms = (double)b.batch.wanted_count,
                                    .items = (double)b.batch.source.rows->rows,
                                    .share = (double)b.taken / (double)t->train.count,
                                    .epoch = t->position.epoch};
    }
    return status;
}

heed_position heed__encoder_tell(void *self)
{
    return ((heed__encoding *)self)->position;
}

heed_status heed__encoder_seek(void *self, heed_position p, heed_error *err)
{
    heed__encoding *t = self;
    if (p.epoch < 0 || p.at[0] < 0 || p.at[0] > t->train.count)
        return heed__fail(err, HEED_FORMAT, "the save stands at example %lld of %lld",
                          (long long)p.at[0], (long long)t->train.count);
    t->position = p;
    return HEED_OK;
}
