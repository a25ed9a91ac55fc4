#!/bin/sh
# Catches a kernel that no test holds against plain loops on every instruction set: each name in the
# lists of src/kernel/*.h must be called, through a table, in a test that goes through all of them.
set -eu
tests=$(grep -l 'heed__kernels_at' tests/test_*.c)
names=$(sed -n 's/^    X([a-z_0-9 *]*, \([a-z_0-9]*\),.*/\1/p' src/kernel/*.h)
passed=0 failed=0
for name in $names; do
    # shellcheck disable=SC2086
    if grep -qE "(->|\.)$name\b" $tests; then
        passed=$((passed + 1))
    else
        echo "failed: no test calls the kernel '$name' on every set"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 40 ]
