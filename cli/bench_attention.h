/* bench_attention.h: `heed bench attention`, for cmd_bench.c. */
#ifndef HEED_CLI_BENCH_ATTENTION_H
#define HEED_CLI_BENCH_ATTENTION_H

int bench_attention_run(int argc, const char *const *argv);

#endif
