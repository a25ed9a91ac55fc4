/* option_groups.c: which options stand together in the help of the commands that have many. */
#include "option_groups.h"

#define SEARCH_GROUP                                                                               \
    {                                                                                              \
        "search",                                                                                  \
            "length-penalty penalty-form patience extra-length max-length max-ratio min-length "   \
            "min-ratio no-repeat allow-loops suppress-unk ban",                                    \
            false                                                                                  \
    }

const heed_option_group train_groups[] = {
    {"what people need",
     "model source target tsv valid-source valid-target valid-tsv from resume recipe dry-run "
     "max-minutes "
     "max-updates vocab-size threads seed json",
     true},
    {"data", "hold-out rehearse sample-pairs max-tokens join protect invent vary", false},
    {"vocabulary",
     "tokens vocab-type vocab-min-count vocab-coverage joint vocab source-vocab target-vocab "
     "bpe-joiner subword-sampling sampling-sides",
     false},
    {"model",
     "arch encoder-layers decoder-layers d ff heads d-k d-v kv-heads dropout ff-dropout activation "
     "ff-gated head-transform ff-bias output-bias pre-norm norm norm-eps residual positions tying "
     "longest "
     "label-smoothing types embedding-norm embedding-scale decoder-unit zero-start cell attend "
     "embedding bidirectional "
     "reverse input-feeding",
     false},
    TRAIN_GROUP_ATTENTION,
    TRAIN_GROUP_OPTIMISER,
    TRAIN_GROUP_LIMITS,
    TRAIN_GROUP_SAVES,
    {NULL, NULL, false},
};

const heed_option_group translate_groups[] = {
    {"what people need",
     "model to beam n-best scores json alignments prefix sample temperature seed threads", true},
    SEARCH_GROUP,
    {"sampling", "top-k top-p", false},
    {"text", "protect capitals alignment-head", false},
    {"speed", "shortlist workers batch", false},
    {NULL, NULL, false},
};

const heed_option_group evaluate_groups[] = {
    {"what people need",
     "reference metric model source compare sentence by-length tsv conll tag-column images idx "
     "output json "
     "beam threads",
     true},
    {"metrics",
     "tokenize lowercase tokenized compound-split ter-normalized ter-no-punct ter-asian-support "
     "ter-case-sensitive resamples seed",
     false},
    SEARCH_GROUP,
    {"translations", "n-best", false},
    {NULL, NULL, false},
};
