#!/bin/sh
# Everyday sentences of Tatoeba, en to de, preset small: half an hour of one core.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB German).
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --model "$model" --recipe paper --preset small --pre-norm \
    --tsv "$DATA/train.tsv.gz" --valid-tsv "$DATA/dev.tsv" \
    --vocab-size 8000 --batch-tokens 384 --clip 1 \
    --schedule linear --rate 0.0011 --warmup 800 --max-updates 9500 --valid-every 9500 --average 1 "$@"

score() {
    cut -f 1 "$DATA/$1.tsv" >"$model/$1.source"
    cut -f 2 "$DATA/$1.tsv" >"$model/$1.reference"
    "$heed" evaluate --model "$model" --source "$model/$1.source" \
        --reference "$model/$1.reference" --metric bleu,chrf --length-penalty 1
}
score dev
[ -z "${TEST:-}" ] || score test
