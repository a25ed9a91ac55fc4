/* pattern_sublayers.c: patterns that are sublayers of their own (src/model/sublayer_longformer.c):
 * what stands in the slot chooses the class. */
#include "attention/attend.h"

const heed__slot_row heed__pattern_longformer = {
    .info = {.slot = HEED_SLOT_PATTERN,
             .name = "longformer",
             .form = "longformer:W:G",
             .formula = "a band of W and the first G positions, which see all with queries, keys "
                        "and values of their own",
             .paper = "Beltagy et al. 2020",
             .cost = "W + G pairs a query",
             .can = HEED_CAN_CAUSAL | HEED_CAN_HEADS | HEED_CAN_STACKS | HEED_CAN_FUSED,
             .needs = 2,
             .takes = 2,
             .number = {{1, INT32_MAX, 0, NULL}, {1, 65536, 0, NULL}}},
    .sublayer = "longformer",
};
