#!/bin/sh
# Captions for photographs, Show, Attend and Tell with convolutions trained from nothing, on Flickr8k at
# 96 x 96 pixels.  LOOK=soft, hard, mean (no attention) or blind (no picture: what the words alone give).
# DATA: the folder with train.tsv, train.tar.gz, valid.*, test.*: FILE TAB five captions, and the pictures.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir LOOK=soft $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

"$heed" train --arch caption --model "$model" --look "${LOOK:-soft}" \
    --captions "$DATA/train.tsv" --images "$DATA/train.tar.gz" \
    --valid-captions "$DATA/valid.tsv" --valid-images "$DATA/valid.tar.gz" \
    --dropout 0.5 --vocab-min-count 5 --max-updates 6000 --valid-every 500 "$@"

# BLEU against five captions each, in small letters.
score() {
    "$heed" caption --model "$model" --captions "$DATA/$1.tsv" --images "$DATA/$1.tar.gz" >"$model/$1.said"
    for column in 2 3 4 5 6; do
        cut -f"$column" "$DATA/$1.tsv" | tr '[:upper:]' '[:lower:]' >"$model/$1.reference.$column"
    done
    "$heed" evaluate --reference "$model/$1.reference.2" --reference "$model/$1.reference.3" \
        --reference "$model/$1.reference.4" --reference "$model/$1.reference.5" \
        --reference "$model/$1.reference.6" --tokenized --metric bleu,chrf "$model/$1.said"
}
score valid
[ -z "${TEST:-}" ] || score test
