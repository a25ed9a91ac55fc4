#!/bin/sh
# Encoders from scratch, nothing given but the task, the files and 15 minutes.
# KIND: trec, sst (with phrases), intents, slots (snips), chunks (words alone, no part of speech), upos.
# DATA: the folder with train, valid and test of that set.  Scores: docs/CLASSIFY.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
kind=${1:?usage: DATA=dir $0 KIND MODEL [options of heed train]}
model=${2:?usage: DATA=dir $0 KIND MODEL [options of heed train]}
shift 2
heed=${HEED:-build/heed}

case $kind in
trec) task=classify train=train.tsv valid=valid.tsv test=test.tsv ;;
sst) task=classify train=train-phrases.tsv.gz valid=valid.tsv test=test.tsv ;;
intents) task=classify train=train.tsv.gz valid=valid.tsv test=test.tsv ;;
slots | chunks) task=tag train=train.conll.gz valid=valid.conll test=test.conll ;;
upos) task=tag train=train.conllu.gz valid=valid.conllu.gz test=test.conllu.gz ;;
*) echo "$0: unknown kind '$kind'" >&2; exit 2 ;;
esac
case $task in classify) files=tsv ;; *) files=conll ;; esac

"$heed" train --model "$model" --arch encoder --task $task --max-minutes 15 \
    --$files "$DATA/$train" --valid-$files "$DATA/$valid" "$@"
"$heed" evaluate --model "$model" --$files "$DATA/$valid"
[ -z "${TEST:-}" ] || "$heed" evaluate --model "$model" --$files "$DATA/$test"
