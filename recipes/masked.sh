#!/bin/sh
# What pre-training on masked words gains: question types from 500 examples, three draws, from scratch and from a
# model that read plain text.  DATA: the folder with trec/, wikitext-2/ and brown/.  Scores: docs/CLASSIFY.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
folder=${1:?usage: DATA=dir $0 FOLDER [options of heed train for the pre-training]}
shift
heed=${HEED:-build/heed}
mkdir -p "$folder"

[ -d "$folder/bert" ] || "$heed" train --model "$folder/bert" --arch encoder --task mlm --preset bert-tiny \
    --text "$DATA/wikitext-2/train.txt.gz" --text "$DATA/brown/train.txt.gz" \
    --valid-text "$DATA/brown/valid.txt.gz" "$@"
for draw in 1 2 3; do
    awk -v seed=$draw 'BEGIN { srand(seed) } { print rand() "\t" $0 }' "$DATA/trec/train.tsv" |
        LC_ALL=C sort | head -n 500 | cut -f 2- >"$folder/few-$draw.tsv"
    for from in scratch bert; do
        more=; [ $from = scratch ] || more="--from $folder/bert"
        rm -rf "$folder/$from-$draw"
        # shellcheck disable=SC2086
        "$heed" train --model "$folder/$from-$draw" --arch encoder --task classify --seed $draw $more \
            --tsv "$folder/few-$draw.tsv" --valid-tsv "$DATA/trec/valid.tsv" --max-epochs 40
        echo "$from, draw $draw: $("$heed" evaluate --model "$folder/$from-$draw" --tsv "$DATA/trec/valid.tsv" | head -n 1)"
    done
done
