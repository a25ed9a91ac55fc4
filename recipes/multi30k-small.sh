#!/bin/sh
# Multi30k captions as raw text, preset small, SentencePiece: FROM=en TO=de (or de en, or en fr).
# DATA: the folder with train.en, train.de, train.fr, val.*, test_2016_flickr.*.
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir FROM=en TO=de $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}
from=${FROM:-en} to=${TO:-de}

"$heed" train --model "$model" --recipe paper --preset small --pre-norm --dropout 0.1 \
    --source "$DATA/train.$from" --target "$DATA/train.$to" \
    --valid-source "$DATA/val.$from" --valid-target "$DATA/val.$to" \
    --vocab-size 8000 --batch-tokens 384 --clip 1 \
    --schedule linear --rate 0.0012 --warmup 600 --max-updates 7000 --valid-every 7000 --average 1 "$@"

score() {
    "$heed" evaluate --model "$model" --source "$DATA/$1.$from" --reference "$DATA/$1.$to" \
        --length-penalty 1
}
score val
[ -z "${TEST:-}" ] || score test_2016_flickr
