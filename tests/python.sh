#!/bin/sh
# Catches a public struct or function that examples/translate.py, which has their layout by heart, no longer
# fits: what it prints is what the program prints; a model that is not there is an error, not a crash.
python3 -c 'import ctypes' 2>/dev/null || { echo 'python.sh: skipped: there is no python3 with ctypes'; exit 77; }
. "$(dirname "$0")/case.inc"
LIBHEED=$(dirname "$(readlink -f "$heed")")/libheed.so
export LIBHEED
[ -f "$LIBHEED" ] || { echo 'python.sh: skipped: this flavour has no shared library'; exit 77; }

cut -f 1 "$tree/recipes/en-de/letters.tsv" | head -n 20 >in
printf '\nLast.\n' >>in
run translate --model "$tree/models/en-de"
exits 0
mv out wanted
what='translate.py'
python3 "$tree/examples/translate.py" "$tree/models/en-de" >out 2>err <in
rc=$?
exits 0
quiet_err
same wanted out
# By its name: the library knows where it is, the program that runs it is another one.
what='translate.py en-de'
head -n 2 wanted >two
head -n 2 in >first
python3 "$tree/examples/translate.py" en-de >out 2>err <first
rc=$?
exits 0
same two out
what='translate.py nowhere'
python3 "$tree/examples/translate.py" nowhere >out 2>err <in
rc=$?
exits 1
quiet_out
mentions "cannot open the model 'nowhere'"
finish
