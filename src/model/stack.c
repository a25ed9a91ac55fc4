/* stack.c: sublayers one after the other, and what stands around each: norm, residual, dropout.
 *
 * x (N,D) -> (N,D).  A stack is a list that is appended to one by one, so sublayers of one stack
 * may differ in class, heads and widths.  Parameters are declared in the order of the calls: a
 * sublayer's own, then its norm's. */
#include <heed/stack.h>

#include "nn/params.h"
#include <string.h>

/* ---- around a sublayer ---- */

static heed_tensor *norm(heed_tape *t, const heed_around *a, heed_tensor *x)
{
    return heed_norm_apply(t, &a->norm, x);
}

static heed_tensor *apply_sublayer(heed_tape *t, const heed_sublayer *s, heed_flow *flow)
{
    heed_tensor *(*const f)(heed_tape *, const heed_sublayer *, heed_tensor *, heed_flow *) =
        s->kind->apply;
    const heed_around *a = &s->around;
    const double rate = a->options.dropout;
    heed_tensor *x = flow->x;
    if (!a->options.residual)
        switch (a->options.place) {
        case HEED_NORM_BEFORE: /* f(norm(x)) */
            return heed_dropout(t, f(t, s, norm(t, a, x), flow), rate);
        case HEED_NORM_AFTER: /* norm(f(x)) */
            return norm(t, a, heed_dropout(t, f(t, s, x, flow), rate));
        case HEED_NORM_NONE: /* f(x) */
            return heed_dropout(t, f(t, s, x, flow), rate);
        }
    switch (a->options.place) {
    case HEED_NORM_BEFORE: /* x + f(norm(x)) */
        return heed_add_dropout(t, x, f(t, s, norm(t, a, x), flow), rate);
    case HEED_NORM_AFTER: /* norm(x + f(x)) */
        return heed_norm_residual(t, &a->norm, x, f(t, s, x, flow), rate);
    case HEED_NORM_NONE: /* x + f(x) */
        return heed_add_dropout(t, x, f(t, s, x, flow), rate);
    }
    return heed_tape_fail(t, HEED_ARGUMENT, "sublayer: the norm's place is %d, expected 0 to %d",
                          (int)a->options.place, (int)HEED_NORM_NONE);
}

static void build_around(heed_around *a, heed_scope s, const heed_around_options *o, int64_t d)
{
    *a = (heed_around){.options = *o};
    if (o->place != HEED_NORM_NONE)
        heed_norm_build(&a->norm, heed_scope_enter(s, "norm"), o->norm, d, o->eps);
}

/* ---- the list ---- */

void heed_stack_init(heed_stack *s, heed_arena *arena, int64_t d)
{
    if (!s)
        return;
    *s = (heed_stack){.d = d, .arena = arena};
}

static bool reserve(heed_stack *s)
{
    if (s->count < s->capacity)
        return true;
    const int capacity = s->capacity ? 2 * s->capacity : 8;
    heed_sublayer *grown = heed_arena_allocate(s->arena, (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    if (s->count)
        memcpy(grown, s->sublayer, (size_t)s->count * sizeof *grown);
    s->sublayer = grown;
    s->capacity = capacity;
    return true;
}

void heed_stack_append(heed_stack *s, heed_scope scope, const heed_sublayer_class *kind,
                       const heed_sublayer_options *options)
{
    if (!kind) {
        heed__scope_fail(scope, HEED_ARGUMENT, "stack: '%s' has no sublayer class", scope.path);
        return;
    }
    if (!reserve(s)) {
        heed__scope_fail(scope, HEED_MEMORY, "no memory for sublayer %d", s->count + 1);
        return;
    }
    heed_sublayer_options o = *options;
    o.mha.d = o.ffn.d = s->d;
    heed_sublayer *added = &s->sublayer[s->count++];
    *added = (heed_sublayer){.kind = kind, .layer = o.layer};
    kind->build(added, scope, &o, s->arena);
    build_around(&added->around, scope, &o.around, s->d);
}

heed_tensor *heed_stack_apply(heed_tape *t, const heed_stack *s, heed_flow *flow)
{
    if (!t)
        return NULL;
    for (int i = 0; i < s->count; i++)
        flow->x = apply_sublayer(t, &s->sublayer[i], flow);
    if (s->norm.gain)
        flow->x = heed_norm_apply(t, &s->norm, flow->x);
    return flow->x; /* (N,D) */
}

heed_sublayer_cost heed_stack_cost(const heed_stack *s)
{
    if (!s)
        return (heed_sublayer_cost){0};
    heed_sublayer_cost all = {0, 0};
    for (int i = 0; i < s->count; i++) {
        const heed_sublayer_cost c = s->sublayer[i].kind->cost(&s->sublayer[i]);
        all.row_weights += c.row_weights;
        all.memory_weights += c.memory_weights;
    }
    return all;
}

unsigned heed_stack_can(const heed_stack *s)
{
    if (!s)
        return 0;
    unsigned can = ~0u;
    for (int i = 0; i < s->count; i++)
        can &= s->sublayer[i].kind->can(&s->sublayer[i]);
    return can;
}

/* ---- attention recorder ---- */

heed_attention_record *heed_attention_recorder_add(heed_attention_recorder *recorder, heed_tape *t,
                                                   heed_attention_record r)
{
    if (!recorder)
        return NULL;
    heed_attention_record *added = heed_arena_allocate(heed_tape_arena(t), sizeof *added);
    if (!added) {
        heed_tape_fail(t, HEED_MEMORY, "no memory to record attention");
        return NULL;
    }
    *added = r;
    added->next = NULL;
    if (recorder->last)
        recorder->last->next = added;
    else
        recorder->first = added;
    recorder->last = added;
    recorder->count++;
    return added;
}
