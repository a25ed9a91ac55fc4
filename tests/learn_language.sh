#!/bin/sh
# learn_language.sh: language models from the command line: every kind of tokens is trained, resumed
# to the same bits and killed without loss; what cannot be trained is refused with a reason.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=400 | cut -f1 >text.txt
gzip -c text.txt >text.gz
small='--context 16 --decoder-layers 1 --d 32 --ff 64 --heads 2 --batch-tokens 128 --threads 1'
# train FOLDER OPTION...
# shellcheck disable=SC2086
train() {
    folder=$1
    shift
    run train --arch decoder --model "$folder" $small --text text.txt "$@"
}
loss_of() { sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' "$1/training/log.jsonl" | sed -n '$p'; }

# Catches a kind of tokens that cannot be trained, or whose model does not open.
for tokens in sentencepiece whitespace characters bytes wordpiece; do
    train "$tokens" --tokens $tokens --vocab-size 300 --max-updates 40 --rate 0.01 --json
    exits 0; says '"metric": "loss"'
    run inspect --model $tokens
    exits 0; says 'decoder'
done

# Catches anything random, and a .gz that is other text.
train again --tokens characters --vocab-size 300 --max-updates 40 --rate 0.01
exits 0; same characters/model.safetensors again/model.safetensors
# shellcheck disable=SC2086
run train --arch decoder --model zipped $small --text text.gz --tokens characters --vocab-size 300 \
    --max-updates 40 --rate 0.01
exits 0; same characters/model.safetensors zipped/model.safetensors
train other --tokens characters --vocab-size 300 --max-updates 40 --rate 0.01 --seed 2
exits 0; ! cmp -s characters/model.safetensors other/model.safetensors
verdict $? 'another seed gives the same model'

# Catches a second file that is not read, however it is named.
head -n 200 text.txt >first
tail -n +201 text.txt >second
# shellcheck disable=SC2086
run train --arch decoder --model both $small --text first second --valid-text text.txt --tokens characters \
    --max-updates 5 --dry-run
exits 0; says "$(wc -c <text.txt) bytes"

# wait_for FOLDER UPDATE: its log has come to this update.
wait_for() {
    tries=0
    until grep -q "\"update\": $2," "$1/training/log.jsonl" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 2400 ] || break
        sleep 0.05
    done
}
# interrupt SIGNAL FOLDER UPDATE COMMAND...
interrupt() {
    signal=$1 at="$2 $3"
    shift 3
    what="heed $*, $signal"
    "$heed" "$@" >out 2>err <in &
    # shellcheck disable=SC2086
    wait_for $at
    kill -"$signal" $!
    wait $!
    rc=$?
}

# Catches a state that is not saved whole: moments, the place in the text, dropout's numbers.
long='--tokens bytes --vocab-size 280 --dropout 0.1 --accumulate 2 --max-updates 500 --valid-every 50
    --log-every 1 --rate 0.003 --average 0'
# shellcheck disable=SC2086
train whole $long
exits 0
# shellcheck disable=SC2086
interrupt INT part 60 train --arch decoder --model part $small --text text.txt $long
exits 130; mentions 'go on with: heed train --resume part'
interrupt KILL part 130 train --resume part
run train --resume part --threads 1
exits 0; same whole/model.safetensors part/model.safetensors
run train --resume part --tokens characters
exits 2; mentions '--tokens cannot change on resume'

# Catches a resume on another text.
cp -r whole moved
sed -i 's/text.txt/other.txt/' moved/training/options.json
sed '7s/e/a/' text.txt >other.txt
run train --resume moved
exits 1; mentions 'text checksum'

# Catches presets and parts of a decoder that do not train: rotary, RMSNorm, gates, shared heads.
train llama --preset llama --tokens characters --kv-heads 1 --max-updates 20
exits 0
run inspect --model llama
exits 0; says 'gated'
train gpt --preset gpt2 --vocab-size 300 --recipe paper --warmup 5 --max-updates 20 --optimizer adamw
exits 0
train alibi --tokens characters --positions none --position-bias alibi --attention-pattern band:8 \
    --max-updates 20
exits 0

# Catches --from that does not take shape, vocabulary and weights along.
run train --arch decoder --model more --text text.txt --from characters --max-updates 1 --rate 1e-9 \
    --warmup 0 --schedule constant --threads 1
exits 0; same characters/shared.vocab more/shared.vocab
before=$(loss_of characters) after=$(loss_of more)
what="--from: loss $before, then $after"
awk -v a="$before" -v b="$after" 'BEGIN { exit !(b < a + 0.05) }' && [ -n "$after" ]
verdict $? 'the weights were not taken along'
run train --model bad --text text.txt --from characters --d 64 --max-updates 1
exits 2; complains "heed: --d is the model's: not with --from"
run train --model bad --text text.txt --from characters --vocab-size 300 --max-updates 1
exits 2; mentions 'is for a vocabulary that is learned'

# Catches choices that are not made, not said or not stored.
run train --arch decoder --text text.txt --tokens characters --max-minutes 0.1 --threads 1 --print-config
exits 0; says '"arch": "decoder"'; mentions 'times through the text'
! grep -q encoder-layers out
verdict $? 'a decoder has layers of an encoder'
cp out options.json
run train --config options.json --model dry --dry-run --max-updates 5 --warmup 1
exits 0; says 'tokens to learn'; [ ! -e dry ]; verdict $? 'a dry run left something'

# Catches rubbish that is trained on, or a reason that does not help.
bad() { # TEXT OPTION...
    text=$1
    shift
    run train --arch decoder --model bad --max-updates 2 --threads 1 "$@"
    [ $rc = 1 ] || [ $rc = 2 ]; verdict $? "exit $rc"
    mentions "$text"; quiet_out; [ ! -e bad ]; verdict $? 'something was left behind'
}
: >empty
head -c 3000 /dev/zero >zeros
printf 'one\n\377\376broken\ntwo words here\n' >broken
printf '\377\376a\000b\000' >utf16
echo hello >hello
echo >line
bad 'nothing to learn from: give --text'
bad "cannot read 'nowhere'" --text nowhere
bad "'empty' is empty, expected text" --text empty
bad 'byte 1 is NUL, expected text' --text zeros
bad 'it is UTF-16' --text utf16
bad 'give --valid-text' --text hello --tokens characters
bad "the validation text has 1 tokens, expected 2 at least" --text text.txt --valid-text line --tokens whitespace
bad 'expected at most half' --text text.txt --hold-out 999999
bad "unknown option '--source'" --source text.txt
bad 'needs --tokens whitespace' --text text.txt --tokens bytes --vocab-min-count 3
bad "expected transformer" --text text.txt --arch decodre
run train --arch decoder --model left $small --text text.txt --text broken --tokens characters --max-updates 2
exits 0; mentions "'broken' line 2 is not UTF-8: left out"

finish
