#!/bin/sh
# Catches a lint check that lets its mistake through: each one is planted in a copy of the tree,
# alone, and must be found; what is allowed must not be.
set -eu
command -v git >/dev/null || { echo "no git"; exit 77; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R tools include tests/abi.txt tests/abi-files.txt .clang-format "$copy/"
cd "$copy"
mkdir -p tests src/base src/kernel src/ops src/nn cli bench
mv abi.txt abi-files.txt tests/
git init -q .
passed=0 failed=0

verdict() {
    if [ "$1" = ok ]; then
        passed=$((passed + 1))
    else
        echo "failed: $2"
        failed=$((failed + 1))
    fi
}
# finds CHECK FILE TEXT: the check must complain about FILE when it holds TEXT.
finds() {
    printf '%b\n' "$3" >"$2"
    git add -A
    if ! "tools/lint/$1" >out 2>&1 && grep -q "$2:" out; then
        verdict ok
    else
        verdict bad "$1 did not find '$3' in $2"
    fi
    rm "$2" out
}
# allows CHECK FILE TEXT: it must not.
allows() {
    printf '%b\n' "$3" >"$2"
    git add -A
    if "tools/lint/$1" >out 2>&1; then verdict ok; else verdict bad "$1: $(cat out)"; fi
    rm "$2" out
}

finds includes src/base/x.c '#include "kernel/kernels.h"'
finds includes src/kernel/x.c '#include <heed/nn.h>'
finds includes src/ops/x.c '#include "nn/rnn.h"'
finds includes src/ops/x.c '#include "x.h"'
finds includes src/nn/x.c '#include "heed/nn.h"'
finds includes cli/x.c '#include "base/error.h"'
finds includes bench/x.c '#include "ops/list.h"'
finds includes include/heed/x.h '#include "base/error.h"'
allows includes src/nn/x.c '#include "ops/x.h"\n#include <heed/nn.h>\n#include <stdio.h>'
allows includes bench/x.c '#include "kernel/kernels.h"'
allows includes cli/x.c '#include <heed/heed.h>\n#include "commands.h"'

finds calls src/ops/x.c 'exit(1);'
finds calls src/ops/x.c 'abort ();'
finds calls src/ops/x.c '#include <assert.h>'
finds calls src/ops/x.c '    assert(x);'
finds calls src/ops/x.c 'printf("x");'
finds calls src/ops/x.c 'perror("x");'
finds calls src/ops/x.c 'fprintf(stderr, "x");'
finds calls src/ops/x.c 'p = malloc(3);'
finds calls src/ops/x.c '#pragma omp parallel for \\\\\n    reduction(+ : sum)'
finds calls src/base/parallel.c '#pragma omp parallel for reduction(+ : sum)'
finds calls src/ops/x.c '#pragma omp parallel'
finds calls src/ops/x.c '#pragma omp atomic'
finds calls src/ops/x.c '_Atomic float sum;'
allows calls src/ops/x.c '/* no exit(1), no\n * printf() */ snprintf(s, n, "abort()"); // assert(1)'
allows calls src/ops/x.c '_Static_assert(1, "x");\n#pragma omp simd reduction(+ : sum)'
allows calls src/base/parallel.c '#pragma omp parallel num_threads(n)'

finds paths src/ops/x.c "/* see /wor""k/x */"
finds paths src/ops/x.c "see ../share""d/x"
allows paths src/ops/x.c '/* network/x */'

if command -v clang-format >/dev/null; then
    finds format src/ops/x.c 'int  x;'
    finds format src/ops/x.md 'a blank at the end '
    allows format src/ops/x.c 'int x;'
fi
if command -v clang++ >/dev/null; then
    finds headers include/heed/x.h 'heed_nothing heed_x(void);'
    finds headers include/heed/x.h 'int *heed_x(int *new, int class);'
    allows headers include/heed/x.h '#include <heed/base.h>\nheed_status heed_x(void);'
fi

printf 'int heed_surplus(void);\n' >include/heed/surplus.h
if ! tools/lint/abi >out 2>&1 && grep -q '^+heed_surplus$' out; then
    verdict ok
else
    verdict bad "abi did not find heed_surplus"
fi
rm include/heed/surplus.h
if tools/lint/abi >out 2>&1; then verdict ok; else verdict bad "abi: $(cat out)"; fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
