#!/bin/sh
# Everyday sentences of Tatoeba, en to de, preset small: two hours of two cores.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB German).
# Scores and times: README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --model "$model" --preset small --pre-norm \
    --tsv "$DATA/train.tsv.gz" --valid-tsv "$DATA/dev.tsv" \
    --vocab-size 8000 --batch-tokens 2048 --clip 1 \
    --schedule linear --rate 0.0015 --warmup 1000 --max-updates 13000 --valid-every 1300 "$@"

score() {
    cut -f 1 "$DATA/$1.tsv" >"$model/$1.source"
    cut -f 2 "$DATA/$1.tsv" >"$model/$1.reference"
    "$heed" evaluate --model "$model" --source "$model/$1.source" \
        --reference "$model/$1.reference" --metric bleu,chrf
}
score dev
[ -z "${TEST:-}" ] || score test
