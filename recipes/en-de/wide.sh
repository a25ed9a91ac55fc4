#!/bin/sh
# wide.sh MODEL [OPTION...]: the translator of train.sh trained on, from its int8 weights, with text of many kinds:
# parliament, stories, news of a foundation, web pages, letters, encyclopedia, guides, projects for children, help.
# Kinds are weighed: of a file with a share an epoch has that share of the pairs.  openings.tsv has 387 openings
# and closings of letters written for this, five times an epoch; none is among the forty of greetings.tsv.
# What models/en-de took of it stands in its MODEL.md.
# DATA: the folder with Tatoeba's train.tsv.gz; WIDE: the folder with europarl.tsv.gz and the others, dev/ in it.
# MODEL.text holds the help's pairs, which a resumed run reads again.
set -eu
: "${DATA:?is not set; see recipes/README.md}" "${WIDE:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir WIDE=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}
here=$(dirname "$0")
text=$model.text

mkdir -p "$text"
"$here/help.sh" | awk 'NR % 50 != 0' >"$text/help.tsv"
cat "$here/openings.tsv" "$here/openings.tsv" "$here/openings.tsv" "$here/openings.tsv" "$here/openings.tsv" >"$text/openings.tsv"
# A part of every kind, to see when it no longer improves.
{
    awk 'NR % 5 == 0' "$DATA/dev.tsv"
    awk 'NR % 6 == 0' "$WIDE/dev/flores-dev.tsv"
    for kind in europarl books fsfe-web mozilla-web xquad guides raspberrypi-projects gnome-help mozilla; do
        awk 'NR % 12 == 0' "$WIDE/dev/kind-$kind.tsv"
    done
} >"$text/valid.tsv"
"$heed" train --model "$model" --from "$here/../../models/en-de" --rehearse 0 --recipe paper \
    --tsv "$DATA/train.tsv.gz:0.4" --tsv "$WIDE/europarl.tsv.gz:0.35" --tsv "$WIDE/books.tsv.gz:0.25" \
    --tsv "$WIDE/fsfe-web.tsv.gz:0.6" --tsv "$WIDE/mozilla-web.tsv.gz" --tsv "$WIDE/refugee-phrasebook.tsv.gz" \
    --tsv "$WIDE/xquad.tsv.gz" --tsv "$WIDE/guides.tsv.gz" --tsv "$WIDE/raspberrypi-projects.tsv.gz" \
    --tsv "$WIDE/gnome-help.tsv.gz" --tsv "$WIDE/mozilla.tsv.gz:0.5" --tsv "$text/help.tsv:0.4" \
    --tsv "$text/openings.tsv" --valid-tsv "$text/valid.tsv" --valid-metric loss \
    --join 0.1 --protect 0.15 --invent 0.15 --vary 0.1 --dropout 0.05 --batch-tokens 512 --clip 1 --beta2 0.99 \
    --schedule linear --rate 0.0007 --warmup 400 --average 1 --max-tokens 128 --max-updates 32000 \
    --valid-every 2000 --seed 3 "$@"
"$heed" convert "$model" "$model-int8"
"$here/greetings.sh" "$model-int8"
"$here/report.sh" "$model-int8"
