/* moments.c: an optimiser's moments as a safetensors file, by name: the moment "mean" of the
 * parameter "encoder.0.ffn.in.weight" is "encoder.0.ffn.in.weight.mean", of the same shape.  So
 * moments go with their weights, whatever the order in which a set declares them.  State has no
 * moments.  Loading refuses what is missing, surplus or of another shape, and changes nothing
 * then. */
#include "nn/params.h"
#include "train/trainer.h"
#include <heed/io.h>

#include <stdio.h>
#include <string.h>

#ifdef HEED_DOUBLE
#define OWN_DTYPE HEED_F64
#else
#define OWN_DTYPE HEED_F32
#endif

/* A parameter has a short path; one that has not is refused, never cut. */
typedef char stored_name[1024];

/* Moment k of entry e as it stands in the file. */
static heed_status stored_moment(const heed_optimizer *o, int k, const heed_param_info *e,
                                 stored_name name, heed_stored *s, heed_error *err)
{
    const heed_shape shape = heed_tensor_shape(e->tensor);
    const int n =
        snprintf(name, sizeof(stored_name), "%s.%s", e->name, heed_optimizer_moment_name(o, k));
    if (n < 0 || (size_t)n >= sizeof(stored_name))
        return heed__fail(err, HEED_ARGUMENT, "the name of the parameter '%.200s...' is too long",
                          e->name);
    *s = (heed_stored){.name = name,
                       .dtype = OWN_DTYPE,
                       .rank = shape.rank,
                       .data = heed_optimizer_moment(o, k) + e->offset,
                       .bytes = (size_t)heed_tensor_count(e->tensor) * sizeof(heed_real)};
    for (int i = 0; i < shape.rank; i++)
        s->dim[i] = shape.dim[i];
    return HEED_OK;
}

heed_status heed__moments_save(const heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err)
{
    heed_error own = {0};
    heed_safetensors_writer *w = heed_safetensors_writer_new(heed__params_allocator(p), &own);
    for (int k = 0; w && k < heed_optimizer_moments(o); k++)
        for (int i = 0; !own.status && i < heed_params_count(p); i++) {
            const heed_param_info e = heed_params_entry(p, i);
            stored_name name;
            heed_stored s;
            if (!e.is_state && !stored_moment(o, k, &e, name, &s, &own))
                heed_safetensors_writer_add(w, &s, &own);
        }
    if (!own.status)
        heed_safetensors_writer_write(w, path, &own);
    heed_safetensors_writer_free(w);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}

static bool same_shape(const heed_stored *a, const heed_stored *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank) == 0;
}

/* Checks moment k of entry i; copies it if `copy`. */
static heed_status take(const heed_safetensors *f, const heed_optimizer *o, int k,
                        const heed_param_info *e, bool copy, const char *path, heed_error *err)
{
    stored_name name;
    heed_stored wanted;
    heed_status status = stored_moment(o, k, e, name, &wanted, err);
    const heed_stored *s = status ? NULL : heed_safetensors_find(f, name);
    if (status)
        return status;
    if (!s || !same_shape(s, &wanted))
        return heed__fail(err, HEED_FORMAT, "cannot load '%.200s': moment '%.200s' is %s", path,
                          name, s ? "of another shape" : "missing");
    return copy ? heed_stored_read(s, heed_optimizer_moment(o, k) + e->offset, 0,
                                   heed_tensor_count(e->tensor), err)
                : HEED_OK;
}

heed_status heed__moments_load(heed_optimizer *o, const heed_params *p, const char *path,
                               heed_error *err)
{
    heed_error own = {0};
    heed_safetensors *f = heed_safetensors_open(path, heed__params_allocator(p), &own);
    for (int copy = 0; f && copy < 2; copy++) {
        int found = 0;
        for (int k = 0; k < heed_optimizer_moments(o); k++)
            for (int i = 0; !own.status && i < heed_params_count(p); i++) {
                const heed_param_info e = heed_params_entry(p, i);
                if (!e.is_state && !take(f, o, k, &e, copy, path, &own))
                    found++;
            }
        if (!own.status && found != heed_safetensors_count(f))
            heed__fail(&own, HEED_FORMAT, "cannot load '%.200s': %d moments, expected %d", path,
                       heed_safetensors_count(f), found);
    }
    heed_safetensors_close(f);
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
