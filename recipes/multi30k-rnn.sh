#!/bin/sh
# Multi30k captions as raw text with a recurrent translator, MODELKIND=bahdanau (or luong, sutskever):
# the same data, subwords, batches and number of updates for all three, and for the Transformer beside
# them, multi30k-small.sh with FROM=de TO=en.  Attention pictures: heed inspect --model MODEL --attention 'Ein Satz.'
# DATA: the folder with train.de, train.en, val.*, test_2016_flickr.*.
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir MODELKIND=bahdanau FROM=de TO=en $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}
from=${FROM:-de} to=${TO:-en}

"$heed" train --model "$model" --recipe paper --preset "${MODELKIND:-bahdanau}" \
    --source "$DATA/train.$from" --target "$DATA/train.$to" \
    --valid-source "$DATA/val.$from" --valid-target "$DATA/val.$to" \
    --d 256 --dropout 0.2 --vocab-size 8000 --batch-tokens 384 --clip 1 --beta2 0.999 \
    --schedule linear --rate 0.0015 --warmup 600 --max-updates 7000 --valid-every 7000 --average 1 "$@"

# Translations are left for `heed evaluate --by-length`.
score() {
    "$heed" translate --model "$model" --length-penalty 1 "$DATA/$1.$from" >"$model/$1.$to"
    "$heed" evaluate --reference "$DATA/$1.$to" "$model/$1.$to"
    "$heed" evaluate --reference "$DATA/$1.$to" --source "$DATA/$1.$from" --by-length 10,15,20 \
        --metric bleu "$model/$1.$to"
}
score val
[ -z "${TEST:-}" ] || score test_2016_flickr
