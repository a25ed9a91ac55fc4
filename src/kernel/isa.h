/* isa.h: names for the source that is compiled once per instruction set.  HEED_ISA is set on the
 * command line. */
#ifndef HEED_KERNEL_ISA_H
#define HEED_KERNEL_ISA_H

#define HEED_PASTE_(a, b, c) heed__##a##_##b##c
#define HEED_PASTE(a, b, c) HEED_PASTE_(a, b, c)
/* The name of a kernel in this set: K(dot) is heed__dot_avx2. */
#define K(name) HEED_PASTE(name, HEED_ISA, )

#endif
