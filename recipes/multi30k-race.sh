#!/bin/sh
# The race: Multi30k captions as raw text, en to de, preset small, from nothing (vocabulary training
# included) to 35.5 BLEU on the validation set, by the clock.  Few updates must do, so: pre-norm, small
# batches, a linear decay to zero, no dropout, which pays only later, and cosine scores, which learn
# faster than products.
# DATA: the folder with train.en, train.de, val.en, val.de.
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

start=$(date +%s)
"$heed" train --model "$model" --recipe paper --preset small --pre-norm --dropout 0 \
    --source "$DATA/train.en" --target "$DATA/train.de" \
    --valid-source "$DATA/val.en" --valid-target "$DATA/val.de" \
    --vocab-size 8000 --batch-tokens 256 --clip 1 --beta2 0.99 --attention-score cosine \
    --schedule linear --rate 0.0012 --warmup 600 --max-updates 5000 --valid-every 5000 --average 1 "$@"
echo "$(($(date +%s) - start)) seconds" >&2
"$heed" evaluate --model "$model" --source "$DATA/val.en" --reference "$DATA/val.de" \
    --penalty-form power --length-penalty 1
