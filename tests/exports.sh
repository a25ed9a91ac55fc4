#!/bin/sh
# Catches a public function that libheed.so does not export, and an internal one that it does.
set -eu
list=$(mktemp)
trap 'rm -f "$list"' EXIT
nm -D --defined-only build/gcc/libheed.so | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' |
    LC_ALL=C sort >"$list"
diff tests/abi.txt "$list"
