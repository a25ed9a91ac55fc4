#!/bin/sh
# A general translator, en to de, small enough to ship: a deep encoder and a shallow decoder (6+2 layers,
# d 256), trained on Tatoeba's everyday sentences (DATA/train.tsv.gz) and LibreOffice's help (help.sh),
# with joined, protected, invented and varied pairs; then as int8, with a report.  TEST=1: on the test set.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB German).
# MODEL.text holds the help's pairs: a resumed run reads them again.
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

"$heed" train --model "$model" --preset deep --pre-norm \
    --tsv "$DATA/train.tsv.gz" --tsv "$text/help-train.tsv" --valid-tsv "$DATA/dev.tsv" \
    --vocab-size 8000 --join 0.1 --protect 0.15 --invent 0.05 --vary 0.1 \
    --batch-tokens 512 --clip 1 --beta2 0.99 \
    --schedule linear --rate 0.0012 --warmup 1000 --max-updates 25000 --valid-every 2500 --average 1 "$@"
"$heed" convert "$model" "$model-int8"
"$here/report.sh" "$model-int8"
cut -f 1 "$text/help-dev.tsv" >"$text/help-dev.en"
cut -f 2 "$text/help-dev.tsv" >"$text/help-dev.de"
echo "paragraphs of the help: $(wc -l <"$text/help-dev.en") lines"
"$heed" evaluate --model "$model-int8" --source "$text/help-dev.en" --reference "$text/help-dev.de" \
    --metric bleu,chrf
