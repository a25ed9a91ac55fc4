/* check.c: which configurations are refused, whatever the architecture; each refusal says what
 * would work.  Values from the command line have passed their ranges already; an embedder's or a
 * file's have not, and are held against the same table. */
#include "model/model_class.h"

#include "base/error.h"
#include <string.h>
#include <unistd.h>

struct holder {
    heed_model_config model;
};
static const heed_option fields[] = {HEED_MODEL_OPTIONS(struct holder, model)};
#define N_FIELDS ((int)(sizeof fields / sizeof *fields))

static heed_status check_whole(const heed_option *o, int64_t value, int64_t least, int64_t most,
                               heed_error *err)
{
    if (value >= least && value <= most)
        return HEED_OK;
    return heed__fail(err, HEED_ARGUMENT,
                      "option '--%s' is %lld, expected a whole number from %lld to %lld", o->name,
                      (long long)value, (long long)least, (long long)most);
}

static heed_status check_range(const heed_option *o, const void *value, heed_error *err)
{
    int64_t words = 0;
    while (o->choices && o->choices[words])
        words++;
    switch (o->type) {
    case HEED_OPTION_TYPE_INT:
        return check_whole(o, *(const int64_t *)value, o->least, o->most, err);
    case HEED_OPTION_TYPE_CHOICE:
        return check_whole(o, *(const int *)value, 0, words - 1, err);
    case HEED_OPTION_TYPE_REAL:
        if (*(const double *)value >= o->low && *(const double *)value <= o->high)
            return HEED_OK;
        return heed__fail(err, HEED_ARGUMENT,
                          "option '--%s' is %g, expected a number from %g to %g", o->name,
                          *(const double *)value, o->low, o->high);
    default:
        return HEED_OK;
    }
}

#define LEAST_PIECES 3
static heed_status check_vocabulary(const char *side, bool reads, int64_t size, heed_error *err)
{
    if (reads && (size < LEAST_PIECES || size > INT32_MAX))
        return heed__fail(err, HEED_ARGUMENT,
                          "the %s vocabulary has %lld pieces, expected at least %d: unknown, "
                          "begin, end",
                          side, (long long)size, LEAST_PIECES);
    if (!reads && size)
        return heed__fail(err, HEED_ARGUMENT,
                          "the %s vocabulary has %lld pieces, expected 0: this model reads none of "
                          "them",
                          side, (long long)size);
    return HEED_OK;
}

/* What the data decide. */
static heed_status check_data(const heed_model_config *c, heed_side sides, heed_error *err)
{
    const bool encoder = sides == HEED_SOURCE;
    if (c->features < 0 || c->labels < 0 || c->features > INT32_MAX || c->labels > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT,
                          "%lld features and %lld labels, expected 0 to %ld of each",
                          (long long)c->features, (long long)c->labels, (long)INT32_MAX);
    if (!encoder && (c->features || c->labels))
        return heed__fail(err, HEED_ARGUMENT, "%lld features and %lld labels need --arch encoder",
                          (long long)c->features, (long long)c->labels);
    heed_status status =
        check_vocabulary("source", sides & HEED_SOURCE && !c->features, c->source_vocabulary, err);
    if (!status)
        status = check_vocabulary("target", sides & HEED_TARGET, c->target_vocabulary, err);
    if (!status && sides == HEED_BOTH && c->tying == HEED_TIE_ALL &&
        c->source_vocabulary != c->target_vocabulary)
        status = heed__fail(
            err, HEED_ARGUMENT,
            "--tying all needs one vocabulary for both sides, found %lld source and %lld target "
            "pieces: use a joint vocabulary, or --tying target",
            (long long)c->source_vocabulary, (long long)c->target_vocabulary);
    return status;
}

/* Without this, a machine that lends more memory than it has would kill the process instead. */
static heed_status check_memory(heed__model_size size, heed_error *err)
{
    const double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double count = size.trained + size.table_d * size.table_rows;
    const double bytes = (2 * count + size.fixed) * sizeof(heed_real);
    if (bytes <= there)
        return HEED_OK;
    return heed__fail(err, HEED_MEMORY,
                      "%.4g million parameters take %.4g GB with their gradients, this machine has "
                      "%.3g GB: choose a smaller --d, %s--longest, vocabulary or fewer layers",
                      count / 1e6, bytes / 1e9, there / 1e9, size.widths);
}

double heed__two_sided_rows(const heed_model_config *c)
{
    return (double)c->target_vocabulary * (c->tying == HEED_TIE_NONE ? 2 : 1) +
           (c->tying == HEED_TIE_ALL ? 0 : (double)c->source_vocabulary);
}

/* ---- which options have an effect ---- */

#define BIT(arch) (1u << HEED_ARCH_##arch)
#define STACKS (BIT(TRANSFORMER) | BIT(DECODER) | BIT(ENCODER))
#define TRANSLATORS (BIT(TRANSFORMER) | BIT(RNN))
static const struct {
    const char *option;
    unsigned archs; /* those that listen; options that are not here have an effect in all */
} listeners[] = {
    {"encoder-layers", TRANSLATORS | BIT(ENCODER)},
    {"decoder-layers", TRANSLATORS | BIT(DECODER)},
    {"ff", STACKS},
    {"heads", STACKS},
    {"kv-heads", STACKS},
    {"attention-queries", STACKS},
    {"position-bias", STACKS},
    {"adaptive-span", STACKS},
    {"span-penalty", STACKS},
    {"d-k", STACKS},
    {"d-v", STACKS},
    {"ff-dropout", STACKS},
    {"activation", STACKS},
    {"ff-gated", STACKS},
    {"ff-bias", STACKS},
    {"pre-norm", STACKS},
    {"norm", STACKS},
    {"norm-eps", STACKS},
    {"residual", STACKS},
    {"scale-scores", STACKS},
    {"positions", STACKS},
    {"rope-base", STACKS},
    {"attention-bias", STACKS},
    {"embedding-scale", STACKS},
    {"embedding-norm", STACKS},
    {"types", STACKS},
    {"head-transform", STACKS},
    {"output-bias", STACKS},
    {"decoder-unit", BIT(TRANSFORMER) | BIT(DECODER)},
    {"zero-start", BIT(TRANSFORMER)},
    {"cell", BIT(RNN)},
    {"attend", BIT(RNN)},
    {"embedding", BIT(RNN)},
    {"bidirectional", BIT(RNN)},
    {"reverse", BIT(RNN)},
    {"input-feeding", BIT(RNN)},
};

bool heed__model_listens(int arch, const char *option)
{
    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++)
        if (strcmp(listeners[i].option, option) == 0)
            return listeners[i].archs >> arch & 1;
    return true;
}

/* ---- the whole ---- */

/* The first field is the architecture, on which the others depend: those that have no effect may be
 * anything. */
heed_status heed__model_check(const heed_model_config *config, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < N_FIELDS; i++)
        if (i == 0 || heed__model_listens(config->arch, fields[i].name))
            status = check_range(&fields[i], (const char *)config + fields[i].offset, err);
    if (status)
        return status;
    const heed__model_class *class = heed__model_class_of(config->arch);
    status = check_data(config, class->sides, err);
    if (!status)
        status = class->check(config, err);
    return status ? status : check_memory(class->size(config), err);
}

heed_status heed_model_defaults(heed_model_config *config, heed_error *err)
{
    if (!config)
        return heed__missing(err, "model config");
    static const heed_option_set set = {.command = "model", .fields = fields, .count = N_FIELDS};
    struct holder h = {0};
    heed_option_result result;
    heed_arena *arena = heed_arena_new(NULL, err);
    heed_status status =
        arena ? heed_option_parse(&set, 0, NULL, &h, arena, &result, err) : HEED_MEMORY;
    heed_arena_free(arena);
    *config = h.model;
    return status;
}

void heed__model_reads_text(heed_model_config *config, int64_t source_vocabulary,
                            int64_t target_vocabulary)
{
    config->source_vocabulary = source_vocabulary;
    config->target_vocabulary = target_vocabulary;
    config->features = config->labels = 0;
}
