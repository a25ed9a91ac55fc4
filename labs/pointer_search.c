/* pointer_search.c: decoding a Pointer Network by a beam.
 *
 * A step shows the decoder the last point of every hypothesis of every example at once.  Scores are
 * sums of log-probabilities, which only fall: an example is done when its best finished answer is
 * better than all that is still running. */
#include "pointer.h"

#include <math.h>
#include <string.h>

/* A hypothesis: where it points last, and how it came there. */
struct path {
    const struct path *before;
    int32_t at; /* place in its example; -1: nothing yet */
    int64_t length;
    double score;
    int32_t row; /* of the decoder's last step */
};

/* The hypotheses of one example that are running, best first, and the best that is finished. */
struct beam {
    struct path *alive; /* (beam) */
    int64_t count;
    const struct path *done;
};

struct search {
    heed_tape *tape;
    const pointer_net *net;
    const pointer_batch *batch;
    pointer_task task;
    int64_t width; /* of a beam */
    bool once;
    struct beam *beams;
    heed_memory memory;
    heed_rnn_state state;
};

static void *room(const struct search *s, int64_t count, size_t size)
{
    void *memory = heed_arena_allocate(heed_tape_arena(s->tape), (size_t)count * size);
    if (!memory)
        heed_tape_fail(s->tape, HEED_MEMORY, "out of memory for a search");
    return memory;
}

static bool begin(struct search *s)
{
    s->beams = room(s, s->batch->count, sizeof *s->beams);
    for (int64_t k = 0; s->beams && k < s->batch->count; k++) {
        s->beams[k] = (struct beam){.alive = room(s, s->width, sizeof *s->beams->alive)};
        if (!s->beams[k].alive)
            return false;
        s->beams[k].alive[s->beams[k].count++] = (struct path){.at = -1, .row = (int32_t)k};
    }
    s->memory = pointer_encode(s->tape, s->net, s->batch, &s->state);
    return s->beams;
}

/* ---- a step of the decoder ---- */

/* One step for all running hypotheses; the state's rows are then theirs, in order.  NULL after an
 * error. */
static heed_tensor *step(struct search *s, int64_t running)
{
    heed_arena *arena = heed_tape_arena(s->tape);
    const pointer_batch *b = s->batch;
    int32_t *shown = room(s, running, sizeof *shown), *from = room(s, running, sizeof *from);
    int64_t *one = room(s, running, sizeof *one), *each = room(s, b->count, sizeof *each), n = 0;
    if (!shown || !from || !one || !each)
        return NULL;
    for (int64_t k = 0; k < b->count; k++) {
        each[k] = s->beams[k].count;
        for (int64_t i = 0; i < each[k]; i++, n++) {
            struct path *p = &s->beams[k].alive[i];
            shown[n] = p->at < 0 ? -1 : (int32_t)b->shown->offset[k] + p->at;
            from[n] = p->row;
            p->row = (int32_t)n;
            one[n] = 1;
        }
    }
    heed_lstm_state *last = &s->state.at[0][0];
    heed_rnn_state start = {0};
    start.at[0][0].h = heed_gather_rows(s->tape, last->h, from, running);
    start.at[0][0].c = heed_gather_rows(s->tape, last->c, from, running);
    const heed_segments *steps = heed_segments_new(arena, running, one);
    const heed_segments *queries = heed_segments_new(arena, b->count, each);
    if (!steps || !queries)
        return heed_tape_fail(s->tape, HEED_MEMORY, "out of memory for a search");
    return pointer_decode(s->tape, s->net, b, &s->memory, shown, steps, queries, &start, &s->state);
}

/* ---- choosing ---- */

static bool seen(const struct path *p, int32_t at)
{
    for (; p && p->at >= 0; p = p->before)
        if (p->at == at)
            return true;
    return false;
}

/* Puts a candidate in its place among the best so far. */
static void insert(struct path *best, int64_t *count, int64_t most, struct path candidate)
{
    int64_t i = *count < most ? (*count)++ : most;
    for (; i > 0 && best[i - 1].score < candidate.score; i--)
        if (i < most)
            best[i] = best[i - 1];
    if (i < most)
        best[i] = candidate;
}

/* The best continuations of one example's hypotheses. log_p has a row for each of them. */
static bool choose(struct search *s, int64_t example, const heed_real *log_p)
{
    const pointer_example *e = &s->batch->examples[example];
    struct beam *b = &s->beams[example];
    int64_t places = e->n + pointer_ends(s->task), longest = pointer_longest(s->task, e->n), n = 0;
    struct path *before = room(s, b->count, sizeof *before);
    struct path *best = room(s, s->width, sizeof *best);
    if (!before || !best)
        return false;
    memcpy(before, b->alive, (size_t)b->count * sizeof *before);
    for (int64_t i = 0; i < b->count; i++)
        for (int32_t at = 0; at < places; at++)
            if (!s->once || !seen(&before[i], at))
                insert(best, &n, s->width,
                       (struct path){.before = &before[i],
                                     .at = at,
                                     .length = before[i].length + 1,
                                     .score = before[i].score + (double)log_p[i * places + at],
                                     .row = before[i].row});
    b->count = 0;
    for (int64_t i = 0; i < n; i++) {
        bool ends = best[i].at == e->n || best[i].length == longest;
        if (!ends)
            b->alive[b->count++] = best[i];
        else if (!b->done || best[i].score > b->done->score)
            b->done = &best[i];
    }
    if (b->done && b->count && b->done->score >= b->alive[0].score)
        b->count = 0;
    return true;
}

static int64_t running(const struct search *s)
{
    int64_t n = 0;
    for (int64_t k = 0; k < s->batch->count; k++)
        n += s->beams[k].count;
    return n;
}

static bool advance(struct search *s)
{
    heed_tensor *log_p = step(s, running(s));
    const heed_real *at = heed_tensor_data(log_p);
    for (int64_t k = 0; at && k < s->batch->count; k++) {
        int64_t rows = s->beams[k].count;
        if (rows && !choose(s, k, at))
            return false;
        at += rows * (s->batch->shown->offset[k + 1] - s->batch->shown->offset[k]);
    }
    return at;
}

/* The answer of one example, without its end. */
static bool collect(struct search *s, int64_t example, pointer_found *found)
{
    const struct path *p = s->beams[example].done;
    if (p && p->at == s->batch->examples[example].n)
        p = p->before;
    found->answers = p ? p->length : 0;
    found->answer = room(s, found->answers, sizeof *found->answer);
    for (int64_t i = found->answers; found->answer && i > 0; p = p->before)
        found->answer[--i] = p->at;
    return found->answer;
}

heed_status pointer_search(heed_tape *t, const pointer_net *net, pointer_task task,
                           const pointer_batch *b, int64_t beam, bool once, pointer_found *found)
{
    struct search s = {
        .tape = t, .net = net, .batch = b, .task = task, .width = beam, .once = once};
    bool fine = begin(&s);
    while (fine && running(&s))
        fine = advance(&s);
    for (int64_t k = 0; fine && k < b->count; k++)
        fine = collect(&s, k, &found[k]);
    return heed_tape_error(t)->status;
}
