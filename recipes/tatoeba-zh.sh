#!/bin/sh
# Everyday sentences of Tatoeba, en to zh, preset small, BLEU with the tokeniser for Chinese: half an
# hour of two cores.  There are few sentences, so dropout is higher.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB Chinese, simplified).
# Scores and times: README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --model "$model" --preset small --pre-norm --dropout 0.2 \
    --tsv "$DATA/train.tsv.gz" --valid-tsv "$DATA/dev.tsv" --valid-tokenize zh \
    --vocab-size 8000 --vocab-coverage 0.9995 --batch-tokens 1024 --clip 1 \
    --schedule linear --rate 0.0015 --warmup 400 --max-updates 6000 --valid-every 1000 "$@"

score() {
    cut -f 1 "$DATA/$1.tsv" >"$model/$1.source"
    cut -f 2 "$DATA/$1.tsv" >"$model/$1.reference"
    "$heed" evaluate --model "$model" --source "$model/$1.source" \
        --reference "$model/$1.reference" --metric bleu,chrf --tokenize zh
}
score dev
[ -z "${TEST:-}" ] || score test
