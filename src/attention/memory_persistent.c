/* memory_persistent.c: persistent vectors (Sukhbaatar et al. 2019, "Augmenting Self-attention with
 * Persistent Memory"): N learned keys and values in every head, which every query of every segment
 * sees besides its own keys, in the same softmax.  They have no position, so no pattern, causality
 * or bias by position is over them. */
#include "attention/attend.h"

#include "nn/params.h"

static void build(heed_attend_layer *l, heed_scope s)
{
    const heed_attend_options *o = &l->options;
    const heed_init normal = {HEED_INIT_NORMAL, 1};
    const int64_t n = o->memory.term[0].number[0];
    s = heed_scope_enter(s, "persistent");
    l->shared_k = heed_param(s, "k", HEED_SHAPE(n, o->key_d), normal);
    l->shared_v = heed_param(s, "v", HEED_SHAPE(n, o->value_d), normal);
}

const heed__slot_row heed__memory_persistent = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "persistent",
             .form = "persistent:N",
             .formula = "K = [H; M_k], V = [H; M_v], N learned rows M in one softmax with H",
             .paper = "Sukhbaatar et al. 2019",
             .cost = "N pairs a query",
             .can = (HEED__CAN_USUAL & ~HEED_CAN_LOGS) | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .memory = &(const heed__memory_form){.build = build},
};
