#!/bin/sh
# all-MiniLM-L6-v2 as it is published, fine-tuned to tell good film reviews from bad ones.
# MINILM: its folder (config.json, tokenizer.json, .safetensors or ONNX).  DATA: SST-2's train.tsv, valid.tsv, test.tsv;
# STSB, if it is set: the STS benchmark's test.en.tsv.  Scores: docs/CLASSIFY.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}" "${MINILM:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir MINILM=dir $0 MODEL [options of heed train]}
shift
heed=${HEED:-build/heed}

[ -z "${STSB:-}" ] || "$heed" evaluate --model "$MINILM" --tsv "$STSB/test.en.tsv"
"$heed" train --model "$model" --arch encoder --task classify --from "$MINILM" \
    --tsv "$DATA/train.tsv" --valid-tsv "$DATA/valid.tsv" "$@"
"$heed" evaluate --model "$model" --tsv "$DATA/valid.tsv"
[ -z "${TEST:-}" ] || "$heed" evaluate --model "$model" --tsv "$DATA/test.tsv"
