/* params.h (internal): what layers and optimisers need beyond the public calls.
 *
 * An optimiser updates range by range: a range is a part of the flat buffers whose entries are
 * treated alike, padding included (values and gradients there are zero and stay zero).  A set
 * without groups or frozen entries is one range.  They are computed when something changes, not per
 * step. */
#ifndef HEED_NN_PARAMS_H
#define HEED_NN_PARAMS_H

#include <heed/nn.h>

typedef struct heed__param_range {
    int64_t begin, end; /* elements of the flat buffers */
    bool frozen;
    bool has_weight_decay; /* a group set it: weight_decay replaces the optimiser's own */
    double rate_factor, weight_decay;
} heed__param_range;

/* In order, without gaps, from 0 to heed_params_size.  No ranges before heed_params_finish or in a
 * set without parameters. */
int heed__params_ranges(const heed_params *p);
heed__param_range heed__params_range(const heed_params *p, int i);

/* heed_params_finish for values that are loaded next: all are zero, which is faster than
 * drawing. */
heed_status heed__params_finish_zero(heed_params *p, heed_error *err);

/* While it is held, no parameter of the set gets a gradient; then those again that are not
 * frozen.  Costs nothing but a flag of each. */
void heed__params_hold(heed_params *p, bool hold);

/* What passes have added for the state since it was folded in, in one piece: so that passes of
 * several processes can be put together.  add: total and then one, as if their passes had followed
 * each other. */
double *heed__params_moved(heed_params *p, int64_t *count);
void heed__params_add_moved(const heed_params *p, double *total, const double *one);

/* The set's own allocator. */
const heed_allocator *heed__params_allocator(const heed_params *p);

/* Writes the values of a (rows,cols) tensor. */
typedef void heed__fill(heed_real *values, int64_t rows, int64_t cols);
/* heed_param for initial values that heed_init does not have. */
heed_tensor *heed__param_filled(heed_scope scope, const char *name, heed_shape shape,
                                heed__fill *fill);
/* heed_state that is drawn. */
heed_tensor *heed__state_drawn(heed_scope scope, const char *name, heed_shape shape,
                               heed_init init);
/* A table computed from its shape, such as sinusoids: neither trained nor saved nor listed; it has
 * values after heed_params_finish. */
heed_tensor *heed__param_derived(heed_scope scope, heed_shape shape, heed__fill *fill);

/* heed_sinusoid from position `first` on. */
void heed__sinusoid_rows(heed_real *out, int64_t first, int64_t count, int64_t d,
                         heed_positions layout);

/* For errors found by builders: sets the set's error, if it has none yet. */
void heed__scope_fail(heed_scope scope, heed_status status, const char *format, ...)
    HEED_PRINTF(3, 4);

#endif
