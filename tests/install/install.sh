#!/bin/sh
# Catches an installation that lacks something: a program outside the tree is built from what was
# installed alone, by pkg-config, with the shared libheed and with libheed.a, as C and as C++;
# uninstall leaves nothing.
# And a first page that does not work: the programs in the comments that open heed.h and translate.h are
# cut out of the installed headers and built as they stand.
set -eu
unset MAKEFLAGS MFLAGS MAKELEVEL
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
version=$(sed -n 's/^VERSION := //p' Makefile)
passed=0 failed=0

# check WHAT COMMAND...: one test.
check() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "failed: $what"
        failed=$((failed + 1))
    fi
}

prefix=/opt/heed
make -s install DESTDIR="$stage" PREFIX=$prefix
at=$stage$prefix
export PKG_CONFIG_PATH="$at/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR=
# Staged, so the prefix that heed.pc names is not there yet.
package() { pkg-config --define-variable=prefix="$at" --define-variable=libdir="$at/lib" "$@" heed; }

expected="heed $version loss 5 gradient 2 4"
# says PROGRAM: run it, compare what it prints.
says() {
    found=$(LD_LIBRARY_PATH=$at/lib "$1") && [ "$found" = "$expected" ] ||
        { echo "found '$found', expected '$expected'"; return 1; }
}
# build PROGRAM COMPILER LIBRARIES: from what was installed; then see what it says.
build() {
    program=$1 compiler=$2 libraries=$3
    # shellcheck disable=SC2046,SC2086
    $compiler -Wall -Wextra -Werror -o "$program" tests/install/outside.c -x none \
        $(package --cflags) $libraries && says "$program"
}
# libheed.a inside, the libraries it stands on shared: SentencePiece comes as a shared one only.
static=$(package --static --libs | sed 's/-lheed /-l:libheed.a /')
check 'C, shared' build "$stage/c-shared" 'gcc -std=c11 -x c' "$(package --libs)"
check 'C++, shared' build "$stage/cc-shared" 'g++ -std=c++17 -x c++' "$(package --libs)"
check 'C, static' build "$stage/c-static" 'gcc -std=c11 -x c' "$static"
check 'C++, static' build "$stage/cc-static" 'g++ -std=c++17 -x c++' "$static"
check 'static needs no libheed.so' sh -c "! readelf -d '$stage/c-static' | grep libheed"

# program HEADER: the lines of its first comment that are set in, without what sets them in.
program() { sed -n '1,/\*\/$/{s/^ \*     //p;s/^ \*$//p;}' "$at/include/heed/$1"; }
program heed.h >"$stage/xor.c"
program translate.h >"$stage/say.c"
# learns COMPILER: the program in the comment builds without a warning and ends with a small loss.
learns() {
    # shellcheck disable=SC2046,SC2086
    $1 -Wall -Wpedantic -Werror -o "$stage/xor" "$stage/xor.c" -x none $(package --cflags --libs) &&
        found=$(LD_LIBRARY_PATH=$at/lib "$stage/xor") &&
        case $found in 'loss 0.0'*) ;; *) echo "found '$found', expected 'loss 0.0...'"; false ;; esac
}
check "heed.h's program, C" learns 'gcc -std=c11 -x c'
check "heed.h's program, C++" learns 'g++ -std=c++20 -x c++'

# translates COMPILER: translate.h's program says what the program says, with a model of a second's
# training.
awk 'BEGIN { for (i = 0; i < 400; i++) print "w" i % 20 " w" i % 7 "\tv" i % 20 " v" i % 7 }' >"$stage/pairs"
"$at/bin/heed" train --model "$stage/m" --recipe paper --tsv "$stage/pairs" --hold-out 20 --tokens whitespace \
    --encoder-layers 1 --decoder-layers 1 --d 32 --ff 32 --heads 2 --warmup 50 --max-updates 60 \
    --valid-every 60 --threads 1 >"$stage/log" 2>&1 || cat "$stage/log"
expected_line=$(echo 'w3 w4' | "$at/bin/heed" translate --model "$stage/m")
translates() {
    # shellcheck disable=SC2046,SC2086
    $1 -Wall -Wpedantic -Werror -o "$stage/say" "$stage/say.c" -x none $(package --cflags --libs) &&
        found=$(LD_LIBRARY_PATH=$at/lib "$stage/say" "$stage/m" 'w3 w4') &&
        [ -n "$found" ] && [ "$found" = "$expected_line" ] ||
        { echo "found '$found', expected '$expected_line'"; return 1; }
}
check "translate.h's program, C" translates 'gcc -std=c11 -x c'
check "translate.h's program, C++" translates 'g++ -std=c++20 -x c++'

# The second library, shared and static: it brings what it needs of the first and of libpng, libjpeg.
cat >"$stage/pixel.c" <<'END'
#include <heed/image.h>
#include <stdio.h>
int main(void)
{
    heed_image image;
    if (heed_image_decode("P5 1 1 255\n*", 12, "pixel", NULL, &image, NULL))
        return 1;
    printf("%d\n", image.pixels[0]);
    heed_image_free(&image, NULL);
    return 0;
}
END
files() { pkg-config --define-variable=prefix="$at" --define-variable=libdir="$at/lib" "$@" heed-files; }
pixel() {
    # shellcheck disable=SC2046,SC2086
    gcc -Wall -Werror -o "$stage/pixel" "$stage/pixel.c" $(files --cflags) $1 &&
        [ "$(LD_LIBRARY_PATH=$at/lib "$stage/pixel")" = 42 ]
}
check 'libheed-files, shared' pixel "$(files --libs)"
check 'libheed-files, static' pixel "$(files --static --libs | sed 's/-lheed-files /-l:libheed-files.a /;s/-lheed /-l:libheed.a /')"

check 'pkg-config version' [ "$(package --modversion)" = "$version" ]
# The shared program depends on the name that stays compatible, not on this very version.
check 'soname' sh -c "readelf -d '$stage/c-shared' | grep -q 'NEEDED.*\[libheed.so.${version%%.*}\]'"
check 'program runs from where it was installed' sh -c \
    "[ ! -e build/heed ] || '$at/bin/heed' --version >'$stage/version'"
check 'it finds the model that was installed with it' sh -c \
    "[ \"\$(echo 'Good morning!' | '$at/bin/heed' translate)\" = 'Guten Morgen!' ]"

make -s uninstall DESTDIR="$stage" PREFIX=$prefix
left=$(find "$at" ! -type d)
check "uninstall left: $left" [ -z "$left" ]
echo "$passed passed, $failed failed"
[ $failed = 0 ]
