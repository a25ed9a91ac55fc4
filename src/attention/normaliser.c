/* normaliser.c: how scores become weights; and the rows of the other slots that leave attention as
 * it is: all queries, the states as memory, no bias. */
#include "attention/attend.h"

const heed__slot_row heed__normaliser_soft = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "soft",
             .form = "soft",
             .formula = "softmax over the keys that a query sees",
             .paper = "Bahdanau et al. 2015",
             .cost = "an exp a pair",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
};

const heed__slot_row heed__normaliser_hard = {
    .info = {.slot = HEED_SLOT_NORMALISER,
             .name = "hard",
             .form = "hard",
             .formula = "one key, drawn in training (gradient by REINFORCE, moving baseline), else "
                        "the likeliest",
             .paper = "Xu et al. 2015",
             .cost = "an exp a pair",
             .can = (HEED__CAN_USUAL & ~HEED_CAN_STACKS) | HEED_CAN_WIDTHS},
};

const heed__slot_row heed__queries_all = {
    .info = {.slot = HEED_SLOT_QUERIES,
             .name = "all",
             .form = "all",
             .formula = "every query looks for itself",
             .paper = "Bahdanau et al. 2015",
             .cost = "nothing",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
};

const heed__slot_row heed__memory_states = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "states",
             .form = "states",
             .formula = "K = V = H, or projections of them",
             .paper = "Bahdanau et al. 2015",
             .cost = "nothing",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
};

const heed__slot_row heed__bias_none = {
    .info = {.slot = HEED_SLOT_BIAS,
             .name = "none",
             .form = "none",
             .formula = "nothing is added to the scores",
             .paper = "Vaswani et al. 2017",
             .cost = "nothing",
             .can = HEED__CAN_USUAL | HEED_CAN_WIDTHS | HEED_CAN_FUSED},
};
