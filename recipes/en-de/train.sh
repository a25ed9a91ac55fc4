#!/bin/sh
# A general translator, en to de, small enough to ship: a deep encoder and a shallow decoder (6+2 layers,
# d 256), trained on Tatoeba's everyday sentences (DATA/train.tsv.gz) and LibreOffice's help (help.sh),
# with joined, protected, invented and varied pairs, in two courses: the second starts from the weights of the
# first, with a smaller rate and more invented names; then as int8, with a report.  TEST=1: on the test set.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB German).
# MODEL.text holds the help's pairs, which a resumed run reads again; MODEL.first is the first course.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}
here=$(dirname "$0")
text=$model.text

mkdir -p "$text"
"$here/help.sh" >"$text/help.tsv"
# One pair in fifty is for the report.
awk 'NR % 50 == 0' "$text/help.tsv" >"$text/help-dev.tsv"
awk 'NR % 50 != 0' "$text/help.tsv" >"$text/help-train.tsv"

course() { # MODEL OPTION...
    name=$1
    shift
    [ -d "$name" ] || "$heed" train --model "$name" --recipe paper \
        --tsv "$DATA/train.tsv.gz" --tsv "$text/help-train.tsv" --valid-tsv "$DATA/dev.tsv" \
        --join 0.1 --protect 0.15 --vary 0.1 --batch-tokens 512 --clip 1 --beta2 0.99 \
        --schedule linear --average 1 "$@"
}
course "$model.first" --preset deep --pre-norm --vocab-size 8000 --invent 0.05 \
    --rate 0.0012 --warmup 1000 --max-updates 25000 --valid-every 2500 "$@"
course "$model" --from "$model.first" --invent 0.25 \
    --rate 0.0009 --warmup 500 --max-updates 19000 --valid-every 1900 --seed 2 "$@"
"$heed" convert "$model" "$model-int8"
"$here/report.sh" "$model-int8"
cut -f 1 "$text/help-dev.tsv" >"$text/help-dev.en"
cut -f 2 "$text/help-dev.tsv" >"$text/help-dev.de"
echo "paragraphs of the help: $(wc -l <"$text/help-dev.en") lines"
"$heed" evaluate --model "$model-int8" --source "$text/help-dev.en" --reference "$text/help-dev.de" \
    --metric bleu,chrf
