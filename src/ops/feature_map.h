/* feature_map.h (internal): what operators of attention without weights share about features. */
#ifndef HEED_OPS_FEATURE_MAP_H
#define HEED_OPS_FEATURE_MAP_H

#include <heed/ops.h>

#include "kernel/features.h"
#include "tensor/op.h"

static inline heed__features heed__features_of(const heed_features *f, int64_t d_k)
{
    const heed_tensor *w = f->directions;
    return (heed__features){.kind = (int)f->kind,
                            .d = d_k,
                            .count = w ? w->rows : f->count,
                            .direction = w ? w->data : NULL,
                            .unit_sum = f->unit_sum};
}

static inline heed_status heed__features_check(heed_opcall *c, const heed_features *f, int64_t d_k)
{
    const bool drawn = f->kind == HEED_FEATURES_POSITIVE || f->kind == HEED_FEATURES_WAVES;
    const heed_tensor *w = f->directions;
    if ((int)f->kind < 0 || f->kind > HEED_FEATURES_DPFP)
        return heed__op_fail(c, HEED_ARGUMENT, "there are no features %d", (int)f->kind);
    if (drawn != !!w)
        return heed__op_fail(c, HEED_ARGUMENT, "these features %s directions",
                             drawn ? "need" : "have no");
    if (w && (w->cols != d_k || w->ld != w->cols))
        return heed__op_shape_fail(c, "directions", w, "(M,%lld)", (long long)d_k);
    if (f->kind == HEED_FEATURES_DPFP && (f->count < 1 || f->count > 2 * d_k))
        return heed__op_fail(c, HEED_ARGUMENT, "nu of DPFP is %lld, expected 1 to 2 Dk = %lld",
                             (long long)f->count, (long long)(2 * d_k));
    return HEED_OK;
}

static inline bool heed__same_segments(const heed_segments *a, const heed_segments *b)
{
    bool same = a->count == b->count;
    for (int64_t i = 0; same && i <= a->count; i++)
        same = a->offset[i] == b->offset[i];
    return same;
}

/* Of gradient cases: (count,d), about as long as drawn ones. */
static inline heed_tensor *heed__case_directions(heed_tape *t, int64_t count, int64_t d)
{
    heed_tensor *w = heed_input(t, HEED_SHAPE(count, d), NULL);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 5});
    for (int64_t i = 0; w && i < count * d; i++)
        heed_tensor_data(w)[i] = (heed_real)heed_rng_normal(&rng, (uint64_t)i);
    return w;
}

#endif
