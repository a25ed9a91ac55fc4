#!/bin/sh
# wikitext2.sh MODEL [OPTION...]: a language model of words on WikiText-2 (Merity et al. 2016), from
# scratch: words as they stand, an end mark behind each line, 33,278 kinds.  An LSTM has 99.3 test
# perplexity (Grave et al. 2016).
# DATA=dir has wikitext-2/{train,valid,test}.txt.gz.  TEST=1 also scores the test text, once.
# HEED names another program than build/heed.
set -eu
heed=${HEED:-build/heed}
model=${1:?the model directory to make}
shift
data=${DATA:?the directory of the data}/wikitext-2
"$heed" train --arch decoder --model "$model" --text "$data/train.txt.gz" --valid-text "$data/valid.txt.gz" \
    --preset llama --tokens whitespace --context 128 --decoder-layers 4 --d 256 --ff 704 --heads 4 \
    --kv-heads 4 --tying all --dropout 0.4 --batch-tokens 2048 --max-updates 20000 --rate 0.001 \
    --rate-floor 0.00005 --warmup 500 --beta2 0.99 --weight-decay 0.1 --valid-every 1000 --average 4 "$@"
"$heed" score --model "$model" --text "$data/valid.txt.gz"
if [ -n "${TEST:-}" ]; then
    "$heed" score --model "$model" --text "$data/test.txt.gz"
fi
