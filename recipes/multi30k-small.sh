#!/bin/sh
# Multi30k captions as raw text, preset small, SentencePiece: FROM=en TO=de (or de en, or en fr).
# DATA: the folder with train.en, train.de, train.fr, val.*, test_2016_flickr.*.
# Scores and times: README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir FROM=en TO=de $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}
from=${FROM:-en} to=${TO:-de}

"$heed" train --model "$model" --preset small --dropout 0.2 \
    --source "$DATA/train.$from" --target "$DATA/train.$to" \
    --valid-source "$DATA/val.$from" --valid-target "$DATA/val.$to" \
    --vocab-size 8000 --batch-tokens 2048 --clip 1 \
    --schedule linear --rate 0.002 --warmup 400 --max-updates 4000 --valid-every 400 "$@"

score() {
    "$heed" evaluate --model "$model" --source "$DATA/$1.$from" --reference "$DATA/$1.$to"
}
score val
[ -z "${TEST:-}" ] || score test_2016_flickr
