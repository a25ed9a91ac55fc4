#!/bin/sh
# A student for Firefox: a teacher translates the text that it was trained on, a smaller model with an
# SSRU decoder learns from the translations, gets a shortlist, and is written as Firefox opens it.
# Multi30k captions, en to de, raw text.  The teacher is multi30k-race.sh's, made if it is not there.
# DATA: the folder with train.en, train.de, val.en, val.de, test_2016_flickr.*.
# Not measured yet; see ../docs/FOUND.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
teacher=${1:?usage: DATA=dir $0 TEACHER STUDENT [options of heed train]}
student=${2:?usage: DATA=dir $0 TEACHER STUDENT [options of heed train]}
shift 2
heed=${HEED:-build/heed}

[ -d "$teacher" ] || HEED=$heed "$(dirname "$0")/multi30k-race.sh" "$teacher"
"$heed" translate --model "$teacher" --beam 4 "$DATA/train.en" >"$student.de"

# The student learns what the teacher says, which is more regular than what people say: without dropout
# or smoothing it becomes sure of its words.
"$heed" train --model "$student" --recipe paper --preset student --encoder-layers 4 --d 128 --ff 256 \
    --heads 4 --dropout 0 --label-smoothing 0 --source "$DATA/train.en" --target "$student.de" \
    --valid-source "$DATA/val.en" --valid-target "$DATA/val.de" \
    --vocab-size 8000 --batch-tokens 384 --clip 1 \
    --schedule linear --rate 0.0015 --warmup 600 --max-updates 9000 --valid-every 3000 --average 1 "$@"
"$heed" shortlist --model "$student" --source "$DATA/train.en" --target "$student.de"
"$heed" convert "$student" "$student-firefox" --to firefox

score() {
    for model in "$teacher" "$student" "$student-firefox"; do
        echo "$model, $1"
        "$heed" evaluate --model "$model" --source "$DATA/$1.en" --reference "$DATA/$1.de"
    done
}
score val
[ -z "${TEST:-}" ] || score test_2016_flickr
