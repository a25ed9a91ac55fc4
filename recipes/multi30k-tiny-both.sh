#!/bin/sh
# Transformer-tiny as in multi30k-tiny.sh, with cosine scores, in two courses on the same pairs: first both
# directions at once (the source's language says which is meant; Ding et al., "Improving Neural Machine
# Translation by Bidirectional Training", EMNLP 2021), then en-de alone, with pieces taken apart at random
# (as BPE-dropout does, Provilkov et al., ACL 2020), at a rate that falls to zero.
# About 85 minutes of two cores.  MODEL-both is the model of the first course.
# DATA: the folder with en-de.train.en, en-de.train.de, en-de.valid.*, en-de.test.2016.*.
# Scores and times: ../README.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train, for both courses]}
shift
heed=${HEED:-build/heed}

course() {
    "$heed" train --valid-source "$DATA/en-de.valid.en" --valid-target "$DATA/en-de.valid.de" \
        --source "$DATA/en-de.train.en" --target "$DATA/en-de.train.de" --dropout 0.3 --eps 1e-8 \
        --batch-tokens 1024 --accumulate 4 --valid-beam 5 --average 1 "$@"
}
course --model "$model-both" --source "$DATA/en-de.train.de" --target "$DATA/en-de.train.en" \
    --preset tiny --attention-score cosine --tokens whitespace --bpe-joiner '@@ ' \
    --schedule inverse-sqrt --rate 0.005 --warmup 1500 --max-updates 2700 --valid-every 1350 "$@"
course --model "$model" --from "$model-both" --subword-sampling 0.1 \
    --schedule linear --rate 0.004 --warmup 100 --max-updates 5300 --valid-every 1060 "$@"

. "$(dirname "$0")/multi30k-tiny-score.inc"
