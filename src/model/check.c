/* check.c: which configurations are refused, whatever the architecture; each refusal says what
 * would work.  Values from the command line have passed their ranges already; an embedder's or a
 * file's have not, and are held against the same table. */
#include "model/model.h"

#include "base/error.h"
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

static heed_status check_vocabularies(const heed_model_config *c, heed_error *err)
{
    const int64_t sizes[2] = {c->source_vocabulary, c->target_vocabulary};
    static const char *const side[2] = {"source", "target"};
    for (int i = 0; i < 2; i++)
        if (sizes[i] <= HEED_EOS || sizes[i] > INT32_MAX)
            return heed__fail(err, HEED_ARGUMENT,
                              "the %s vocabulary has %lld pieces, expected at least %d: unknown, "
                              "begin, end",
                              side[i], (long long)sizes[i], HEED_EOS + 1);
    if (c->tying == HEED_TIE_ALL && sizes[0] != sizes[1])
        return heed__fail(err, HEED_ARGUMENT,
                          "--tying all needs one vocabulary for both sides, found %lld source and "
                          "%lld target pieces: use a joint vocabulary, or --tying target",
                          (long long)sizes[0], (long long)sizes[1]);
    return HEED_OK;
}

/* Without this, a machine that lends more memory than it has would kill the process instead. */
static heed_status check_memory(const heed_model_config *c, heed__model_size size, heed_error *err)
{
    const double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double tables = (double)c->target_vocabulary * (c->tying == HEED_TIE_NONE ? 2 : 1) +
                          (c->tying == HEED_TIE_ALL ? 0 : (double)c->source_vocabulary);
    const double count = size.trained + size.table_d * tables;
    const double bytes = (2 * count + size.fixed) * sizeof(heed_real);
    if (bytes <= there)
        return HEED_OK;
    return heed__fail(err, HEED_MEMORY,
                      "%.4g million parameters take %.4g GB with their gradients, this machine has "
                      "%.3g GB: choose a smaller --d, %s--longest, vocabulary or fewer layers",
                      count / 1e6, bytes / 1e9, there / 1e9, size.widths);
}

int heed__model_owner(size_t offset)
{
    const heed__model_class *class;
    for (int i = 0; (class = heed__model_class_of(i)); i++)
        if (offset >= class->config_at && offset < class->config_at + class->config_size)
            return i;
    return -1;
}

/* Whether a field is in the part of another architecture, which may be empty then. */
static bool is_foreign(const heed_option *o, int arch)
{
    int owner = heed__model_owner(o->offset);
    return owner >= 0 && owner != arch;
}

/* The first field is the architecture, on which the others depend. */
heed_status heed__model_check(const heed_model_config *config, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < N_FIELDS; i++)
        if (!is_foreign(&fields[i], config->arch))
            status = check_range(&fields[i], (const char *)config + fields[i].offset, err);
    if (!status)
        status = check_vocabularies(config, err);
    if (status)
        return status;
    const heed__model_class *class = heed__model_class_of(config->arch);
    status = class->check(config, err);
    return status ? status : check_memory(config, class->size(config), err);
}
