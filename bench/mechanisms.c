/* mechanisms.c: what each mechanism of `heed list attention` costs in a recurrent step: 150
 * sentences of 13 words, one query each, 512 columns; forward and backward, from keys that are
 * there already.  The reference is the scaled dot product over all words. */
#include "measure.h"

#include <heed/attention.h>
#include <math.h>
#include <stdio.h>

#define SENTENCES 150
#define WORDS 13
#define COLUMNS 512
#define WINDOW 8 /* keys, where a pattern must be told */

struct step {
    bench_run *run;
    heed_attend_layer layer;
    heed_tensor *q, *keys, *values;
};

static double step_both(void *context)
{
    const struct step *s = context;
    heed_tape *t = s->run->work;
    int64_t one[SENTENCES], words[SENTENCES];
    for (int i = 0; i < SENTENCES; i++) {
        one[i] = 1;
        words[i] = WORDS;
    }
    heed_tape_reset(t);
    heed_arena *arena = heed_tape_arena(t);
    const heed_segments *queries = heed_segments_new(arena, SENTENCES, one);
    const heed_memory m = {.keys = s->keys,
                           .values = s->values,
                           .segments = heed_segments_new(arena, SENTENCES, words)};
    double start = heed_clock_seconds();
    heed_tensor *y = heed_attend(t, &s->layer, s->q, &m, queries, NULL);
    heed_backward(t, heed_sum(t, y, HEED_ALL));
    return heed_clock_seconds() - start;
}

static struct step step_of(bench_run *r, heed_params *p, const char *name, heed_attend_options o)
{
    struct step s = {.run = r};
    o.query_d = o.key_d = COLUMNS;
    o.longest = 64;
    o.single = true;
    heed_attend_build(&s.layer, heed_scope_enter(heed_params_scope(p), "%s", name), &o);
    return s;
}

static void measure(bench_run *r, heed_attention_info row, heed_attend_options o)
{
    char bench[64];
    heed_error err = {0};
    snprintf(bench, sizeof bench, "attend %s", row.name);
    if (!bench_wanted(r, bench))
        return;
    heed_params *p = heed_params_new(NULL, &err);
    if (!p) {
        heed_tape_fail(r->hold, err.status, "%s", err.text);
        bench_check(r, bench, r->hold);
        return;
    }
    struct step s[2] = {step_of(r, p, "it", o), step_of(r, p, "plain", (heed_attend_options){0})};
    if (heed_params_finish(p, 1, &err))
        heed_tape_fail(r->hold, err.status, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        s[i].q = bench_random(r, HEED_SHAPE(SENTENCES, COLUMNS), 1, BENCH_PARAMETER);
        s[i].keys = bench_random(r, HEED_SHAPE(SENTENCES * WORDS, COLUMNS), 1, BENCH_PARAMETER);
        s[i].values = bench_random(r, HEED_SHAPE(SENTENCES * WORDS, COLUMNS), 1, BENCH_PARAMETER);
    }
    double best[2];
    if (!bench_check(r, bench, r->hold)) {
        bench_alternate((bench_subject *[]){step_both, step_both}, (void *[]){&s[0], &s[1]}, 2,
                        r->budget / 2, best);
        bench_line line = {bench,         "150 of 13, 512",  best[0] * 1e6, "us",
                           best[1] * 1e6, best[1] / best[0], NAN,           NULL};
        if (!bench_check(r, bench, r->work))
            bench_report(r, &line);
    }
    heed_tape_reset(r->hold);
    heed_tape_reset(r->work);
    heed_params_free(p);
}

void bench_mechanisms(bench_run *r)
{
    int seen[HEED_SLOT_NORMALISER + 1] = {0};
    for (int i = 0; i < heed_attention_count(); i++) {
        heed_attention_info row = heed_attention_describe(i);
        const int kind = seen[row.slot]++;
        heed_attend_options o = {0};
        if (row.slot == HEED_SLOT_SCORE)
            o.score = kind;
        else if (row.slot == HEED_SLOT_PATTERN)
            o.pattern = (heed_slot_spec)HEED_ONE(kind, {row.needs ? WINDOW : 0});
        else if (row.slot == HEED_SLOT_NORMALISER && row.can & HEED_CAN_CROSS)
            o.normaliser = (heed_slot_spec)HEED_ONE(kind, {0});
        else
            continue; /* as they are in all the others */
        measure(r, row, o);
    }
}
