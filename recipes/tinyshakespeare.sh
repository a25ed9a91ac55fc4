#!/bin/sh
# tinyshakespeare.sh MODEL [OPTION...]: a language model of characters on tiny Shakespeare (Karpathy 2015:
# 1,115,394 bytes; the last tenth validates, as in nanoGPT).
#   as it stands  nanoGPT's setting for a processor: 4 layers, d 128, 64 characters at once, 2000
#                 updates of 12 x 64; its README has 1.88 nats a character on the validation text
#   LONG=1        6 layers, d 256, 256 characters at once, rotary positions, RMSNorm, gated SiLU: for
#                 at most three hours of two cores
# DATA=dir has tinyshakespeare/input.txt; both parts of it go into MODEL-text.  HEED names another program than build/heed.
set -eu
heed=${HEED:-build/heed}
model=${1:?the model directory to make}
shift
text=${DATA:?the directory of the data}/tinyshakespeare/input.txt
size=$(wc -c <"$text")
cut=$((size * 9 / 10))
work=$model-text # where an interrupted run finds it again
mkdir -p "$work"
head -c "$cut" "$text" >"$work/train.txt"
tail -c +"$((cut + 1))" "$text" >"$work/valid.txt"
if [ -n "${LONG:-}" ]; then
    set -- --preset llama --tokens characters --context 256 --decoder-layers 6 --d 256 --ff 704 --heads 4 \
        --kv-heads 4 --dropout 0.2 --batch-tokens 4096 --max-updates 10000 --rate 0.001 \
        --rate-floor 0.0001 --warmup 200 --beta2 0.99 --valid-every 500 --average 4 "$@"
else
    set -- --preset char "$@"
fi
"$heed" train --arch decoder --model "$model" --text "$work/train.txt" --valid-text "$work/valid.txt" "$@"
"$heed" score --model "$model" --text "$work/valid.txt"
"$heed" generate --model "$model" --prompt 'ROMEO:' --max-tokens 200
