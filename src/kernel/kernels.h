/* kernels.h: raw loops over plain pointers, one table per instruction set.
 *
 * Each family declares its kernels in its own header as an X-macro list, X(result, name,
 * (arguments)); the sources are compiled once per instruction set with HEED_ISA set to its name,
 * and define K(name).  Arguments: outputs, inputs, sizes.  A kernel is serial and allocates
 * nothing; operators divide the work into ranges (base/parallel.h). */
#ifndef HEED_KERNEL_KERNELS_H
#define HEED_KERNEL_KERNELS_H

#include <heed/base.h>

#include "kernel/additive.h"
#include "kernel/attention_head.h"
#include "kernel/bias_rows.h"
#include "kernel/conv_rows.h"
#include "kernel/delta_head.h"
#include "kernel/dropout_mask.h"
#include "kernel/elementwise.h"
#include "kernel/gemm.h"
#include "kernel/linear_head.h"
#include "kernel/norm_rows.h"
#include "kernel/ntm_rows.h"
#include "kernel/optimizer_step.h"
#include "kernel/panels.h"
#include "kernel/pool_rows.h"
#include "kernel/probe.h"
#include "kernel/reduce_rows.h"
#include "kernel/rnn_gates.h"
#include "kernel/rotary_rows.h"
#include "kernel/screen_rows.h"
#include "kernel/softmax_rows.h"

#define HEED_KERNEL_LIST(X)                                                                        \
    HEED_KERNELS_ADDITIVE(X)                                                                       \
    HEED_KERNELS_ATTEND(X)                                                                         \
    HEED_KERNELS_CONV(X)                                                                           \
    HEED_KERNELS_DELTA_HEAD(X)                                                                     \
    HEED_KERNELS_DROPOUT(X)                                                                        \
    HEED_KERNELS_ELEMENTWISE(X)                                                                    \
    HEED_KERNELS_GEMM(X)                                                                           \
    HEED_KERNELS_HEAD(X)                                                                           \
    HEED_KERNELS_LINEAR(X)                                                                         \
    HEED_KERNELS_LINEAR_HEAD(X)                                                                    \
    HEED_KERNELS_MEMORY(X)                                                                         \
    HEED_KERNELS_NORM(X)                                                                           \
    HEED_KERNELS_OPTIMIZER(X)                                                                      \
    HEED_KERNELS_PACKED(X)                                                                         \
    HEED_KERNELS_PANELS(X)                                                                         \
    HEED_KERNELS_POOL(X)                                                                           \
    HEED_KERNELS_PROBE(X)                                                                          \
    HEED_KERNELS_RECURRENT(X)                                                                      \
    HEED_KERNELS_REDUCE(X)                                                                         \
    HEED_KERNELS_ROTARY(X)                                                                         \
    HEED_KERNELS_SCREEN(X)                                                                         \
    HEED_KERNELS_SOFTMAX(X)

typedef struct heed_kernels {
    const char *isa;
#define HEED_KERNEL_FIELD(result, name, arguments) result(*name) arguments;
    HEED_KERNEL_LIST(HEED_KERNEL_FIELD)
#undef HEED_KERNEL_FIELD
} heed_kernels;

/* The sets this build has, best last.  Adding one: a name here, whether the processor has
 * it in dispatch.c, its name and flags in the Makefile (ISAS, ISA_FLAGS_...). */
#define HEED_ISA_LIST(X) X(baseline) X(avx2) X(avx512)

/* The table chosen at start-up: the best tested set that the processor has, or the one HEED_ISA
 * names. */
const heed_kernels *heed__kernels(void);
/* By name, or NULL if this build or this processor does not have it.  For tests and benchmarks. */
const heed_kernels *heed__kernels_named(const char *isa);
/* i-th set that runs here, or NULL: for tests that try all. */
const heed_kernels *heed__kernels_at(int i);

#endif
