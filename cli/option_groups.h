/* option_groups.h: the groups of options in the help of train, translate and evaluate. */
#ifndef HEED_CLI_OPTION_GROUPS_H
#define HEED_CLI_OPTION_GROUPS_H

#include <heed/options.h>

/* Groups that every kind of training has; of their options a set may lack some. */
#define TRAIN_GROUP_ATTENTION                                                                      \
    {                                                                                              \
        "attention",                                                                               \
            "attention-score attention-pattern attention-normaliser attention-queries "            \
            "attention-memory position-bias adaptive-span span-penalty attention-beta "            \
            "attention-dropout attention-bias "                                                    \
            "scale-scores rope-base",                                                              \
            false                                                                                  \
    }
#define TRAIN_GROUP_OPTIMISER                                                                      \
    {                                                                                              \
        "optimiser",                                                                               \
            "batch-tokens accumulate optimizer beta1 beta2 eps momentum weight-decay schedule "    \
            "rate rate-floor warmup clip clip-value ema shard-optimizer",                          \
            false                                                                                  \
    }
#define TRAIN_GROUP_LIMITS                                                                         \
    {                                                                                              \
        "limits and validation",                                                                   \
            "max-epochs patience valid-every valid-minutes valid-beam valid-lines valid-metric "   \
            "valid-tokenize",                                                                      \
            false                                                                                  \
    }
#define TRAIN_GROUP_SAVES                                                                          \
    {                                                                                              \
        "saves and logs", "average average-kind save-every save-minutes keep log-every", false     \
    }

extern const heed_option_group train_groups[], translate_groups[], evaluate_groups[];

#endif
