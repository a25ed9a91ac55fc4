/* normaliser_elu.c: attention without weights (Katharopoulos et al. 2020): exp(q.k) is replaced by
 * phi(q).phi(k), phi = elu + 1, and the sums over the keys are done once for all queries. */
#include "attention/attend.h"

#include "base/error.h"

const heed__slot_row heed__normaliser_elu = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "elu",
             .form = "elu",
             .formula = "phi(q) sum phi(k)^T v / (phi(q) sum phi(k) + 1e-6), phi = elu + 1",
             .paper = "Katharopoulos et al. 2020",
             .cost = "Dk Dv a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_CACHE | HEED_CAN_HEADS | HEED_CAN_STACKS},
};

heed_status heed__elu_check(const heed_attend_options *o, heed_error *err)
{
    const char *why = NULL;
    if (heed__slot_kind(&o->normaliser) != HEED_NORMALISE_ELU)
        return HEED_OK;
    if (o->score != HEED_SCORE_SCALED_DOT && o->score != HEED_SCORE_DOT)
        why = "it replaces the scores scaled-dot and dot";
    else if (!heed__pattern_is_whole(&o->pattern))
        why = "it sums over all keys, as the pattern global has them";
    else if (heed__slot_kind(&o->position_bias) != HEED_BIAS_NONE)
        why = "there is nothing that a position bias could be added to";
    else if (heed__slot_kind(&o->memory) != HEED_MEMORY_STATES)
        why = "its memory is the states alone";
    else if (o->dropout > 0)
        why = "there are none to drop out";
    else if (o->single || !o->projected)
        why = "it is for layers of stacks, not for recurrent translators";
    return why ? heed__fail(err, HEED_ARGUMENT, "attention: elu forms no weights: %s", why)
               : HEED_OK;
}

heed_tensor *heed__attend_elu(heed_tape *t, const heed_attend_options *o, heed_tensor *q,
                              const heed_memory *m, const heed_segments *queries, bool causal)
{
    return heed_linear_attention(t, q, m->keys, m->values, queries, m->segments,
                                 &(heed_linear_attention_options){
                                     .heads = o->heads, .kv_heads = o->kv_heads, .causal = causal});
}
