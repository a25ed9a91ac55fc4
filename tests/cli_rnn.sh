#!/bin/sh
# cli_rnn.sh: recurrent translators go through the same commands as the Transformer: train and resume,
# translate, score, evaluate, inspect; and what goes together is said before anything is made.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
# shellcheck disable=SC2086
. "$(dirname "$0")/case.inc"
i=0
while [ $i -lt 60 ]; do
    echo "w$((i % 7)) w$((i % 5)) w$((i % 3))	v$((i % 7)) v$((i % 3))"
    i=$((i + 1))
done >pairs.tsv
cut -f 1 pairs.tsv >source
cut -f 2 pairs.tsv >target
small='--tsv pairs.tsv --hold-out 10 --tokens whitespace --batch-tokens 60 --warmup 5 --threads 1'
small="$small --recipe paper --encoder-layers 1 --decoder-layers 1 --d 16 --average 1 --valid-beam 1"

# Catches a command that asks which architecture it has.
for kind in sutskever bahdanau luong; do
    run train --model $kind --preset $kind --embedding 16 $small --max-updates 20 --valid-every 10
    exits 0; says '^done: --max-updates reached after 20 updates'
    run train --resume $kind --max-updates 30
    exits 0; says '^done: --max-updates reached after 30 updates'
    run translate --model $kind --beam 3 source
    exits 0; quiet_err; [ "$(wc -l <out)" = 60 ]; verdict $? 'not a line out for each line in'
    run score --model $kind --source source --target target
    exits 0; [ "$(grep -c '^-' out)" = 60 ]; verdict $? 'not a score for each pair'
    run evaluate --model $kind --source source --reference target --metric chrf --threads 1
    exits 0; says '^chrF2 '
    run inspect --model $kind
    exits 0; says "^$kind: rnn, 1+1 layers of [lg][sr][tu]"
done
# Catches layers that are counted though they do not attend.
run train --model three --preset luong --embedding 16 $small --decoder-layers 3 --max-updates 5 \
    --valid-every 5
exits 0
run translate --model three --alignments source
exits 0; says ' ||| '
run inspect --model bahdanau
says ', d 16, embedding 16, both directions, attends before the step: additive, global, soft$'
run inspect --model bahdanau --attention 'w1 w2 w3' --json
exits 0; says '"maps":\[{"kind":"cross","layer":1,"head":1,'
run inspect --model luong --attention 'w1 w2 w3' --target 'v1 v2'
exits 0; says '^1 w1  2 w2  3 w3  4 </s>$'
run inspect --model sutskever --attention 'w1 w2 w3'
exits 1; quiet_out; complains 'heed: this model has no attention to look at'

# Catches a resumed run of another model, and an option of the one that changes the other.
run train --resume luong --no-input-feeding
exits 2; mentions 'heed: --input-feeding cannot change on resume'

# Catches combinations that are found out late, or refused without saying what would work.
refuses() { # LINE OPTION...
    line=$1
    shift
    run train --model never $small --arch rnn --max-updates 20 "$@"
    exits 2; complains "heed: $line"; [ ! -e never ]; verdict $? 'a directory was made'
}
refuses 'attention: the dot score needs queries and keys of one width, found 16 and 32: use general, additive or location' \
    --bidirectional --attention-score dot
refuses '--input-feeding feeds what --attend after makes: use both, or neither' \
    --attend before --input-feeding
refuses '--tying all makes the embedding of the target the output projection, which sees 16 columns: use --embedding 16, or --tying none' \
    --embedding 8
run train --model never $small --max-updates 20 --attention-pattern local-p --ff 16 --heads 2
exits 2
complains "heed: --attention-pattern local-p follows a decoder from step to step: use --arch rnn, or another one of 'heed list attention'"

finish
