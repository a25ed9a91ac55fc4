#!/bin/sh
# Everyday sentences of Tatoeba, en to zh, preset small, BLEU with the tokeniser for Chinese: half an
# hour of one core.  Many small updates do more for few sentences than few large ones.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB Chinese, simplified).
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --model "$model" --recipe paper --preset small --pre-norm --dropout 0.15 \
    --tsv "$DATA/train.tsv.gz" --valid-tsv "$DATA/dev.tsv" --valid-tokenize zh \
    --vocab-size 8000 --vocab-coverage 0.9995 --batch-tokens 256 --clip 1 \
    --schedule linear --rate 0.0009 --warmup 800 --max-updates 12000 --valid-every 6000 --average 1 "$@"

score() {
    cut -f 1 "$DATA/$1.tsv" >"$model/$1.source"
    cut -f 2 "$DATA/$1.tsv" >"$model/$1.reference"
    "$heed" evaluate --model "$model" --source "$model/$1.source" \
        --reference "$model/$1.reference" --metric bleu,chrf --tokenize zh
}
score dev
[ -z "${TEST:-}" ] || score test
