#!/bin/sh
# Catches a public function that a library does not export, and an internal one that it does;
# a libheed.so that needs a library for pictures.
set -eu
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for of in '' -files; do
    nm -D --defined-only "build/gcc/libheed$of.so" | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' |
        LC_ALL=C sort >"$list"
    diff "tests/abi$of.txt" "$list"
done
! readelf -d build/gcc/libheed.so | grep -E 'libpng|libjpeg'
