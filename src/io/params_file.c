/* params_file.c: a parameter set as one safetensors file, one tensor per parameter and state.
 * Saved as F32 (F64 in the double build), loaded from any dtype.  Loading is all or nothing: every
 * tensor is checked before the first is copied. */
#include "base/error.h"
#include "io/safetensors.h"
#include "nn/params.h"
#include "tensor/tensor_fields.h"

#ifdef HEED_DOUBLE
#define OWN_DTYPE HEED_F64
#else
#define OWN_DTYPE HEED_F32
#endif

static heed_status check_finished(const heed_params *p, const char *what, const char *path,
                                  heed_error *err)
{
    if (!p || !heed_params_values(p))
        return heed__fail(err, HEED_STATE, "cannot %s '%s': the parameter set is not finished",
                          what, path);
    return HEED_OK;
}

heed_status heed_params_save(const heed_params *p, const char *path, heed_error *err)
{
    heed_error own = {0}; /* the status is needed even if err is NULL */
    if (check_finished(p, "save", path, &own) != HEED_OK)
        return heed__fail(err, own.status, "%s", own.text);
    heed_safetensors_writer *w = heed_safetensors_writer_new(heed__params_allocator(p), &own);
    for (int i = 0; w && own.status == HEED_OK && i < heed_params_count(p); i++) {
        heed_param_info e = heed_params_entry(p, i);
        heed_shape shape = heed_tensor_shape(e.tensor);
        heed_stored s = {.name = e.name, .dtype = OWN_DTYPE, .rank = shape.rank};
        for (int k = 0; k < shape.rank; k++)
            s.dim[k] = shape.dim[k];
        s.data = heed_tensor_data(e.tensor);
        s.bytes = (size_t)heed_tensor_count(e.tensor) * sizeof(heed_real);
        heed_safetensors_writer_add(w, &s, &own);
    }
    if (own.status == HEED_OK)
        heed_safetensors_writer_write(w, path, &own);
    heed_safetensors_writer_free(w);
    return own.status == HEED_OK ? HEED_OK : heed__fail(err, own.status, "%s", own.text);
}

/* ---- loading ---- */

/* A scalar in the file is a (1) here. */
static bool same_shape(const heed_stored *s, heed_shape shape)
{
    if (s->rank == 0)
        return shape.rank == 1 && shape.dim[0] == 1;
    bool same = s->rank == shape.rank;
    for (int i = 0; same && i < s->rank; i++)
        same = s->dim[i] == shape.dim[i];
    return same;
}

static heed_status check_entry(const heed_safetensors *f, heed_param_info e, const char *path,
                               heed_error *err)
{
    char found[HEED_DIMS_SHOWN], wanted[HEED_SHAPE_TEXT], shown[HEED_SHOWN];
    const heed_stored *s = heed_safetensors_find(f, e.name);
    heed__shown(e.name, shown);
    if (!s)
        return heed__fail(err, HEED_FORMAT, "cannot load '%.255s': tensor '%s' is missing", path,
                          shown);
    heed_shape shape = heed_tensor_shape(e.tensor);
    if (!same_shape(s, shape))
        return heed__fail(err, HEED_FORMAT, "cannot load '%.255s': tensor '%s' is %s, expected %s",
                          path, shown, heed__dims_shown(s->dim, s->rank, found),
                          heed__dims_text(shape, wanted));
    return HEED_OK;
}

static heed_status check_all(const heed_params *p, const heed_safetensors *f, const char *path,
                             heed_error *err)
{
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_status status = check_entry(f, heed_params_entry(p, i), path, err);
        if (status != HEED_OK)
            return status;
    }
    char shown[HEED_SHOWN];
    for (int i = 0; i < heed_safetensors_count(f); i++) {
        const heed_stored *s = heed_safetensors_at(f, i);
        if (!heed_params_find(p, s->name))
            return heed__fail(err, HEED_FORMAT, "cannot load '%.255s': tensor '%s' is not expected",
                              path, heed__shown(s->name, shown));
    }
    return HEED_OK;
}

heed_status heed_params_load(heed_params *p, const char *path, heed_error *err)
{
    heed_error own = {0};
    heed_safetensors *f = NULL;
    if (check_finished(p, "load", path, &own) == HEED_OK)
        f = heed_safetensors_open(path, heed__params_allocator(p), &own);
    if (f && check_all(p, f, path, &own) == HEED_OK)
        for (int i = 0; i < heed_params_count(p); i++) {
            heed_param_info e = heed_params_entry(p, i);
            heed_stored_read(heed_safetensors_find(f, e.name), heed_tensor_data(e.tensor), 0,
                             heed_tensor_count(e.tensor), &own);
        }
    heed_safetensors_close(f);
    return own.status == HEED_OK ? HEED_OK : heed__fail(err, own.status, "%s", own.text);
}
