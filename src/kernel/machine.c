/* machine.c: what this process runs on, in words, for `heed --version` and for reports. */
#include "base/parallel.h"
#include "kernel/blas.h"
#include "kernel/kernels.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char cpu[3 * 16 + 1] = "unknown"; /* written once */

/* The brand string: three leaves of four registers, padded with blanks or zeros. */
static void read_cpu(void)
{
#if defined(__x86_64__)
    unsigned words[3][4];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &words[i][0], &words[i][1], &words[i][2], &words[i][3]))
            return;
    memcpy(cpu, words, sizeof words);
    cpu[sizeof words] = '\0';
    for (size_t n = strlen(cpu); n > 0 && cpu[n - 1] == ' '; n--)
        cpu[n - 1] = '\0';
#endif
}

void heed_machine_describe(heed_machine *machine)
{
    if (!machine)
        return;
    pthread_once(&once, read_cpu);
    machine->cpu = cpu;
    machine->instruction_set = heed__kernels()->isa;
    machine->blas = heed__blas_name();
    machine->threads = heed__processors();
}
