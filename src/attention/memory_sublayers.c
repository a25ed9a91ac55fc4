/* memory_sublayers.c: memories that are sublayers of their own (src/model/sublayer_isab.c,
 * sublayer_luna.c): what stands in the slot chooses the class. */
#include "attention/attend.h"

const heed__slot_row heed__memory_isab = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "isab",
             .form = "isab:M",
             .formula = "H = MAB(I, X), I M learned points, then attention of X over H",
             .paper = "Lee et al. 2019",
             .cost = "2 M pairs a query",
             .can = HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .sublayer = "isab",
    .any_score = true,
};

const heed__slot_row heed__memory_luna = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "luna",
             .form = "luna:L",
             .formula =
                 "Y = attention of P over X, then of X over Y; norm(Y + P) goes on to the next "
                 "layer",
             .paper = "Ma et al. 2021",
             .cost = "2 L pairs a query",
             .can = HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 1,
             .takes = 1,
             .number = {{1, 65536, 0, NULL}}},
    .sublayer = "luna",
    .any_score = true,
};

const heed__slot_row heed__memory_poolingformer = {
    .info = {.slot = HEED_SLOT_MEMORY,
             .name = "poolingformer",
             .form = "poolingformer:W:POOL",
             .formula = "Y = a band of W, then Y + attention of Y over W of its keys and values, "
                        "each the mean of POOL",
             .paper = "Zhang et al. 2021",
             .cost = "2 W pairs a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 2,
             .takes = 2,
             .number = {{1, INT32_MAX, 0, NULL}, {1, 65536, 0, NULL}}},
    .sublayer = "poolingformer",
};
