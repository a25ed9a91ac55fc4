#!/bin/sh
# learn_resume.sh: the same command gives the same bits; so does one that was interrupted by Ctrl-C
# and resumed.  With all that draws random numbers: dropout, subword sampling, shuffled epochs.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=200 >pairs.tsv
options='--tsv pairs.tsv --hold-out 10 --vocab-type bpe --vocab-size 110 --subword-sampling 0.1
    --encoder-layers 1 --decoder-layers 1 --d 32 --ff 64 --heads 2 --dropout 0.1
    --attention-dropout 0.1 --ff-dropout 0.1 --batch-tokens 400 --accumulate 2 --ema 0.9
    --schedule linear --rate 0.003 --warmup 10 --max-updates 120 --valid-every 30 --valid-beam 1
    --average 2 --average-kind last --log-every 1'
# train FOLDER OPTION...
# shellcheck disable=SC2086
train() {
    folder=$1
    shift
    run train --model "$folder" $options "$@"
}

# Catches anything that is random, or that hangs on time, addresses or which thread came first.
for threads in 1 2; do
    train "a$threads" --threads $threads
    exits 0
    train "b$threads" --threads $threads
    exits 0
    for file in model.safetensors config.json shared.spm; do
        same a$threads/$file b$threads/$file
    done
done

# Catches a seed that changes nothing, and so a test above that proves nothing.
train other --threads 1 --seed 2
exits 0; ! cmp -s a1/model.safetensors other/model.safetensors
verdict $? 'another seed gives the same model'

# wait_for FOLDER UPDATE: its log has come to this update.
wait_for() {
    tries=0
    until grep -q "\"update\": $2," "$1/training/log.jsonl" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 2400 ] || break
        sleep 0.05
    done
}

# interrupt FOLDER UPDATE COMMAND...: Ctrl-C once its log has come to this update.
interrupt() {
    at="$1 $2"
    shift 2
    what="heed $*, interrupted"
    "$heed" "$@" >out 2>err <in &
    # shellcheck disable=SC2086
    wait_for $at
    kill -INT $!
    wait $!
    rc=$?
}

# Catches a state that is not saved whole: moments, averages, the place in the epoch, the generator.
# It is stopped twice: a resumed run is saved as whole as one from the start.
# shellcheck disable=SC2086
interrupt c 25 train --model c $options --threads 1
exits 130; mentions 'go on with: heed train --resume c'
interrupt c 70 train --resume c
exits 130; mentions 'go on with: heed train --resume c'
run translate --model c --threads 1 pairs.tsv
exits 0; [ "$(wc -l <out)" = 200 ]; verdict $? 'what is stopped does not translate'
run train --resume c
exits 0; same a1/model.safetensors c/model.safetensors

finish
