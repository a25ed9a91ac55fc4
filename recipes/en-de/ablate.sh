#!/bin/sh
# ablate.sh FOLDER [OPTION...]: what each way of changing pairs (heed train --join, --protect, --invent, --vary) does,
# alone.  A small model learns Tatoeba's sentences as they are; then six models go on from it for the same
# number of updates, one as before, one with each of the options, one with all; each is measured on the lines that
# the options are for.
#   takes: a quarter of an hour of one core
# DATA: the folder with train.tsv.gz, dev.tsv (English TAB German).  The options go to `heed train`.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
room=${1:?usage: DATA=dir $0 FOLDER [options of heed train]}
shift
heed=${HEED:-build/heed}
here=$(dirname "$0")
mkdir -p "$room"

learn() { # MODEL UPDATES OPTION...
    name=$1 updates=$2
    shift 2
    [ -d "$room/$name" ] || "$heed" train --model "$room/$name" --recipe paper --tsv "$DATA/train.tsv.gz" --valid-tsv "$DATA/dev.tsv" \
        --batch-tokens 512 --clip 1 --beta2 0.99 --schedule linear --max-updates "$updates" \
        --valid-every "$updates" --valid-lines 200 --valid-beam 1 --average 1 "$@"
}
learn base 4000 --preset tiny --pre-norm --vocab-size 8000 --rate 0.003 --warmup 300 "$@"
on="--from $room/base --rate 0.0015 --warmup 100"
# shellcheck disable=SC2086
{
    learn none 1000 $on "$@"
    learn join 1000 $on --join 0.1 "$@"
    learn vary 1000 $on --vary 0.1 "$@"
    learn protect 1000 $on --protect 0.15 "$@"
    learn invent 1000 $on --invent 0.25 "$@"
    learn all 1000 $on --join 0.1 --vary 0.1 --protect 0.15 --invent 0.25 "$@"
}

cut -f 1 "$DATA/dev.tsv" >"$room/dev.en"
cut -f 2 "$DATA/dev.tsv" >"$room/dev.de"
for side in en de; do
    paste -sd '   \n' "$room/dev.$side" >"$room/joined.$side"
    cp "$room/dev.$side" "$room/small.$side"
    cut -f "$([ $side = en ] && echo 1 || echo 2)" "$here/letters.tsv" "$here/news.tsv" "$here/instructions.tsv" >"$room/outside.$side"
done
awk '{ print tolower(substr($0, 1, 1)) substr($0, 2) }' "$room/dev.en" >"$room/small.en"
awk -F '\t' '$1 ~ /[^.][.]$/ && $2 ~ /[^.][.]$/ { sub(/[.]$/, "", $1); sub(/[.]$/, "", $2); print $1 "\t" $2 }' \
    "$DATA/dev.tsv" >"$room/open.tsv"
cut -f 1 "$room/open.tsv" >"$room/open.en"
cut -f 2 "$room/open.tsv" >"$room/open.de"

# BLEU of a set; how many of the words of `outside` that must be copied are there, without any help by placeholders.
bleu() {
    "$heed" translate --model "$room/$1" --threads 1 "$room/$2.en" >"$room/out"
    "$heed" evaluate --reference "$room/$2.de" --metric bleu "$room/out" | awk '{ printf "%s\t", $2 }'
}
printf 'model\tdev\tjoined by four\tsmall letter\tno full stop\tcopied\tspans kept\n'
for model in none join vary protect invent all; do
    printf '%s\t' $model
    for set in dev joined small open; do bleu $model $set; done
    "$heed" translate --model "$room/$model" --threads 1 --no-protect "$room/outside.en" >"$room/out"
    paste "$room/outside.en" "$room/outside.de" "$room/out" | LC_ALL=C awk -F '\t' '
    function clean(text) { gsub(/[^A-Za-z0-9\200-\377]+/, " ", text); return " " text " " }
    {
        n = split(clean($1), word, " ")
        for (i = 2; i <= n; i++) if (word[i] ~ /^[A-Z].|[0-9]/ && index(clean($2), " " word[i] " ")) {
            all++; copied += index(clean($3), " " word[i] " ") > 0
        }
    }
    END { printf "%d of %d\t", copied, all }'
    "$here/spans.sh" "$room/$model" --threads 1 2>/dev/null | sed -n 's/ with every span//p' | sed -n 1p
done
