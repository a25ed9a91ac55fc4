#!/bin/sh
# copy.sh [--reverse] [FOLDER [OPTION...]]: learn to copy ten numbers, the first task of the Annotated
# Transformer (Rush 2018, "A First Example"): numbers from 1 to 10, two layers, 400 updates of 80
# sequences.  It trains d 512 and shows one sequence copied; here d is 64, all ten numbers are
# random, and a thousand held-out sequences are counted.
#   reached: 1000 of 1000 exact, greedy, with each of five seeds, and the same with --reverse, where
#            the target is the source backwards
#   takes:   8 seconds of one core
# Makes its data itself, and leaves it in FOLDER (build/copy or build/reverse) with FOLDER/model.  The
# options go to `heed train`; HEED names another program than build/heed.
set -eu
heed=${HEED:-build/heed}
task=copy
if [ "${1:-}" = --reverse ]; then
    task=reverse
    shift
fi
room=${1:-build/$task}
[ $# = 0 ] || shift
# 400 batches of 80, each sequence seen once, with 200 to validate; and what is held out.
train=32200 test=1000

rm -rf "$room/model"
mkdir -p "$room"
# The minimal standard generator of Park and Miller: the same numbers from every awk.
awk -v lines=$((train + test)) -v reverse="$([ $task = copy ] || echo 1)" 'BEGIN {
    x = 1
    for (i = 0; i < lines; i++) {
        s = t = ""
        for (k = 0; k < 10; k++) {
            x = x * 16807 % 2147483647
            w = 1 + int(x / 2147483647 * 10)
            s = s (k ? " " : "") w
            t = reverse ? w (k ? " " : "") t : s
        }
        print s "\t" t
    }
}' >"$room/all.tsv"
head -n $train "$room/all.tsv" >"$room/train.tsv"
tail -n $test "$room/all.tsv" >"$room/test.tsv"
cut -f 1 "$room/test.tsv" >"$room/test.source"
cut -f 2 "$room/test.tsv" >"$room/test.target"
rm "$room/all.tsv"

case " $* " in
*' --arch rnn '*) shape= ;; # has neither
*) shape='--ff 128 --heads 4' ;;
esac
# shellcheck disable=SC2086
"$heed" train --model "$room/model" --tsv "$room/train.tsv" --hold-out 200 --tokens whitespace \
    --encoder-layers 2 --decoder-layers 2 --d 64 $shape --dropout 0 \
    --label-smoothing 0 --batch-tokens 880 --schedule linear --rate 0.004 --warmup 100 --clip 1 \
    --max-updates 400 --valid-every 200 --valid-beam 1 --average 1 --threads 1 "$@"

"$heed" translate --model "$room/model" --beam 1 --threads 1 "$room/test.source" >"$room/test.out"
right=$(paste "$room/test.out" "$room/test.target" |
    awk -F '\t' '$1 == $2 { n++ } END { print n + 0 }')
echo "$right of $test exact"
