#!/bin/sh
# What int8 costs: a trained model (of multi30k-race.sh, say) and the same as int8: size, BLEU, and how
# far the log-probability of each token of the references moves.
# DATA: the folder with val.en, val.de; FROM=en TO=de, or what the model translates.
# Figures: ../docs/PERFORMANCE.md.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir FROM=en TO=de $0 MODEL}
heed=${HEED:-build/heed}
source=$DATA/val.${FROM:-en} target=$DATA/val.${TO:-de}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One log-probability a line, of all tokens in their order.
tokens() {
    "$heed" score --model "$1" --source "$source" --target "$target" --per-token |
        cut -f 2- | tr ' ' '\n' | sed 's/.*://'
}

size() {
    wc -c <"$1/model.safetensors"
}

report() {
    tokens "$2" | paste "$work/exact" - | awk -v name="$1" -v share="$(size "$2") $(size "$model")" '
        { d = $1 > $2 ? $1 - $2 : $2 - $1; sum += d; if (d > most) most = d }
        END {
            split(share, s)
            printf "%s: %.1f %% of the size; |delta log p| of %d tokens: mean %.4f, largest %.2f\n",
                name, 100 * s[1] / s[2], NR, sum / NR, most
        }'
    "$heed" evaluate --model "$2" --source "$source" --reference "$target"
}

tokens "$model" >"$work/exact"
report "$model" "$model"
"$heed" convert "$model" "$work/int8"
report int8 "$work/int8"
