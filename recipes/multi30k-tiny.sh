#!/bin/sh
# Transformer-tiny on Multi30k en-de (4+4 layers, d 128, ff 256, 4 heads), the set-up of Wu et al.,
# "Good for Misconceived Reasons" (ACL 2021), whose README reports 41.02 tokenised BLEU on test 2016
# (71.0/47.5/34.3/24.5): dropout .3, label smoothing .1, Adam .9/.98/1e-8, inverse square root to
# .005 in 2,000 updates, at most 8,000 updates of about 8,192 target tokens, stopped when the
# validation loss has not fallen for ten epochs, mean of the last ten epochs, beam 5, log P / length,
# first come, first served (both theirs by default).  41.74 with seed 1, which stopped after 3,822
# updates: 77 minutes of two cores.  Other courses, and what they reach: ../docs/PERFORMANCE.md.
# DATA: the folder with en-de.train.en, en-de.train.de, en-de.valid.*, en-de.test.2016.*.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --model "$model" --recipe paper --preset tiny \
    --source "$DATA/en-de.train.en" --target "$DATA/en-de.train.de" \
    --valid-source "$DATA/en-de.valid.en" --valid-target "$DATA/en-de.valid.de" \
    --tokens whitespace --bpe-joiner '@@ ' --dropout 0.3 \
    --schedule inverse-sqrt --rate 0.005 --warmup 2000 --eps 1e-8 \
    --batch-tokens 1024 --accumulate 8 --max-updates 8000 \
    --valid-every 49 --valid-metric loss --valid-lines 0 --patience 10 \
    --average 10 --average-kind last --valid-beam 5 "$@"

score() {
    sed 's/@@ //g' "$DATA/$1.de" >"$model/$1.reference"
    "$heed" evaluate --model "$model" --source "$DATA/$1.en" --reference "$model/$1.reference" \
        --tokenized --beam 5 --penalty-form power --length-penalty 1 --patience 1
}
score en-de.valid
[ -z "${TEST:-}" ] || score en-de.test.2016
