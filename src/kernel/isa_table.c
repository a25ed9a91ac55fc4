/* isa_table.c: the table of kernels of one instruction set.  Compiled once per set. */
#include "kernel/isa.h"
#include "kernel/kernels.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

#define DECLARE(result, name, arguments) result K(name) arguments;
HEED_KERNEL_LIST(DECLARE)

extern const heed_kernels K(kernels);
const heed_kernels K(kernels) = {.isa = TEXT(HEED_ISA),
#define FILL(result, name, arguments) .name = K(name),
                                 HEED_KERNEL_LIST(FILL)};
