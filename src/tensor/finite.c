/* finite.c: of a step whose loss is not finite, the first call on the tape whose result is not. */
#include "tensor/finite.h"
#include "tensor/tape.h"

#include <math.h>

static bool is_finite(const heed_tensor *x)
{
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t i = 0; i < x->cols; i++)
            if (!isfinite(heed__row(x, r)[i]))
                return false;
    return true;
}

heed__origin heed__tape_not_finite(const heed_tape *t)
{
    const heed_opcall *first = NULL;
    for (const heed_opcall *c = t->last; c; c = c->previous)
        for (int i = 0; i < c->n_out; i++)
            if (!is_finite(c->out[i]))
                first = c;
    heed__origin o = {first ? first->op->name : NULL, NULL};
    for (int i = 0; first && !o.parameter && i < first->n_in; i++)
        o.parameter = first->in[i] ? first->in[i]->name : NULL;
    return o;
}
