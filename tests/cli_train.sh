#!/bin/sh
# cli_train.sh: `heed train` from outside: what it leaves, signals, resume, and what is said about bad
# input.  Whether anything is learned, learn_*.sh test.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

nothing_left() { [ ! -e m ] && [ -z "$(ls -d m.heed-* 2>/dev/null)" ]; verdict $? "something is left of m"; }

# pairs FILE COUNT SEED: lines of 10 of 10 words, and their copies.
pairs() {
    awk -v n="$2" -v seed="$3" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            a = ""
            for (k = 0; k < 10; k++) a = a (k ? " " : "") "w" int(10 * rand())
            print a
        }
    }' >"$1.s"
    cp "$1.s" "$1.t"
}
small="--encoder-layers 1 --decoder-layers 1 --d 32 --ff 64 --heads 2 --threads 1"

awk -f "$tree/tests/sentences.awk" -v lines=200 >pairs.tsv
# shellcheck disable=SC2086
run train --model m $small --tsv pairs.tsv --schedule linear --warmup 2 --max-updates 10 \
    --valid-beam 1
exits 0; says '^done: --max-updates reached after 10 updates'
mentions '10 of the pairs are held out for validation'
mentions 'pieces, so that is the vocabulary instead of 500'

# Catches files of a model directory that are missing, and pictures that are none.
what='the model directory'
for file in config.json model.safetensors shared.spm training/options.json training/log.jsonl \
    training/curves.svg training/latest/state.json training/best.safetensors; do
    [ -s "m/$file" ]; verdict $? "there is no $file"
done
# What the sentences have, and what 90 in 100 of them have at most.
awk -F '[:,]' '/"trained-length"/ { n = $2 } /"trained-longest"/ { m = $2 }
    END { exit !(n > 5 && n <= m && m < 30) }' m/config.json
verdict $? 'config.json does not say how long the sentences are'
grep -q '^<svg' m/training/curves.svg; verdict $? 'curves.svg is not an SVG'

# Catches a finished run that cannot go on, and an option that changes without a word.
run train --resume m --max-updates 12 --schedule linear
exits 2
mentions "--max-updates cannot change on resume: the learning rate of 'm' depends on it; train on with --from"
run train --resume m
exits 0; says '^done: --max-updates reached after 10 updates'
run train --resume m --d 128
exits 2; complains "heed: --d cannot change on resume; leave it out, or train 'm' anew"
run train --resume m --preset tiny
exits 2; complains "heed: --preset cannot change on resume; leave it out, or train 'm' anew"
run train --model m --tsv pairs.tsv
exits 2; mentions "'m' is there already: go on with --resume, or remove it"
rm -rf m

# Catches a signal that loses work, and a resumed run that ends elsewhere.
pairs train 300 1
pairs valid 10 2
base="$small --recipe paper --tokens whitespace --source train.s --target train.t --valid-source valid.s --valid-target valid.t \
    --batch-tokens 256 --valid-every 50 --valid-metric loss --valid-lines 2 --max-updates 300"
# shellcheck disable=SC2086
run train --model whole $base
exits 0
for signal in TERM HUP; do
    what="heed train and SIG$signal"
    # shellcheck disable=SC2086
    "$heed" train --model m $base >out 2>err &
    while [ ! -d m/training/step-50 ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -$signal $!
    wait $!
    rc=$?
    exits 130
    mentions 'stopping ...'
    mentions 'and saved; go on with: heed train --resume m'
    run train --resume m
    exits 0
    same whole/model.safetensors m/model.safetensors
    same whole/training/step-300/moments.safetensors m/training/step-300/moments.safetensors
    rm -rf m
done
# Catches a training under nohup that ends with its terminal.
what='nohup heed train and SIGHUP'
# shellcheck disable=SC2086
nohup "$heed" train --model m $base --max-updates 60 >out 2>err &
while [ ! -d m/training/step-50 ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
kill -HUP $! 2>/dev/null
wait $!
rc=$?
exits 0
# Catches a limit on the size of files that ends the program without a word.
what='heed train and ulimit -f'
# shellcheck disable=SC2086
(ulimit -f 8; "$heed" train --resume m --max-updates 70 >out 2>err)
rc=$?
exits 1; mentions 'File too large'
rm -rf m

# Catches clocks that nobody looks at.
# shellcheck disable=SC2086
run train --model m $base --max-updates 0 --max-minutes 0.02 --valid-every 0 --valid-minutes 0.005 --save-minutes 0.008
exits 0; says '^done: --max-minutes reached after '
[ "$(grep -c '^update .*validation loss' err)" -ge 2 ]; verdict $? 'not validated in time'
rm -rf m

# Catches a Ctrl-C that is not heard while a vocabulary is learned, or that leaves something behind.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 20000; i++) {
        s = ""
        for (k = 0; k < 60; k++) s = s (k % 5 ? "" : " ") sprintf("%c", 97 + int(26 * rand()))
        print s "\t" s
    }
}' >long.tsv
what='heed train and Ctrl-C, learning a vocabulary'
: >err # what the last command said is not what is waited for
"$heed" train --model m --tsv long.tsv --threads 1 >out 2>err &
until grep -q '^learning' err || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
kill -INT $!
wait $!
rc=$?
exits 130; complains 'stopping ...'; quiet_out; nothing_left
rm long.tsv

# Catches a dry run that leaves something behind or says nothing.
# shellcheck disable=SC2086
run train --model m $base --dry-run
exits 0; says '^parameters  *[0-9]'; says '^memory  *[0-9]'; says '^epoch  *[0-9]'; nothing_left
# shellcheck disable=SC2086
run train --model m $base --dry-run --json
exits 0; says '^{"pairs": 300, "validation_pairs": 10, .*"parameters": [0-9]'; nothing_left

# Catches a vocabulary that is learned from all of a large text, and not from 2,000,000 of its lines.
awk 'BEGIN { for (i = 0; i < 1050000; i++) print i % 50 ? "a\tb" : "s" i "\tt" i }' >many.tsv
run train --model m --preset tiny --d 8 --ff 8 --heads 1 --tokens whitespace --tsv many.tsv --threads 1 --batch-tokens 256 \
    --dry-run --json
exits 0; nothing_left
awk -F '"source_vocabulary": ' '{ exit !($2 + 0 > 39000 && $2 + 0 < 41000) }' out
verdict $? 'not a sample of the words'
rm many.tsv

# Catches a vocabulary that is called what --vocab-type says, whatever it is.
run vocab train --output bpe.spm --type bpe --size 60 train.s
exits 0
# shellcheck disable=SC2086
run train --model m $small --source train.s --target train.t --vocab bpe.spm --max-updates 1 --valid-beam 1
exits 0
grep -q '"tokens": "bpe"' m/config.json; verdict $? 'config.json calls it something else'

rm -rf m

# Catches two vocabularies of which one is lost, exchanged, or learned anew.
apart="--recipe paper --no-joint --tying target --max-updates 3 --valid-beam 1"
# shellcheck disable=SC2086
run train --model m $small --tsv pairs.tsv --vocab-size 60 $apart
exits 0
what='two vocabularies'
[ -s m/source.spm ] && [ -s m/target.spm ] && [ ! -e m/shared.spm ]; verdict $? 'not both are there'
! cmp -s m/source.spm m/target.spm; verdict $? 'both are the same'
cp m/source.spm m/target.spm .
run train --resume m --max-updates 5
exits 0; same source.spm m/source.spm; same target.spm m/target.spm
cut -f 1 pairs.tsv | head -n 3 >in
run translate --model m in
exits 0
[ "$(wc -l <out)" = 3 ]; verdict $? 'not a line for each line'
# shellcheck disable=SC2086
run train --model given $small --tsv pairs.tsv --source-vocab source.spm --target-vocab target.spm \
    --tying target --max-updates 3 --valid-beam 1
exits 0; same source.spm given/source.spm; same target.spm given/target.spm
rm -rf m given

# Catches progress that goes on in a second line, or leaves out what a narrow terminal has room for.
# For so many seconds, however fast the machine is: several lines are shown, with a best loss from
# the third update on, and after two seconds with the time that is left.
what='heed train, progress on a terminal'
if command -v script >/dev/null; then
    # shellcheck disable=SC2086
    script -qec "stty cols 80; '$heed' train --model m $small --tsv pairs.tsv --tokens whitespace --max-minutes 0.05 \
        --valid-every 3 --valid-metric loss --valid-lines 0" err >/dev/null 2>&1 </dev/null
    tr '\r' '\n' <err | sed -n "s/$(printf '\033')\[K.*//; /^epoch .* tok\/s/p" >shown
    grep -q '^epoch [0-9]*  update [0-9]*  loss [0-9.]*  [0-9]* tok/s.*  best loss [0-9.]*' shown; verdict $? 'not what it should say'
    awk 'length > 79 { exit 1 }' shown; verdict $? 'wider than the terminal'
    awk '!/(tok\/s|best|left|ppl|rate|norm)[^ ]*( [^ ]+)*$/ { exit 1 }' shown; verdict $? 'a field is cut'
    # The widest field that may follow one of these is "  ppl 1.234e+15", "  rate 0.000123", "  norm 0.0123".
    awk '/  best loss / && !/  norm / && length < 79 - 15 { exit 1 }' shown; verdict $? 'a field that fits is left out'
    rm -rf m
fi

# shellcheck disable=SC2086
run train --model m $small --source train.s --target train.t --vocab bpe.spm --max-updates 1 --valid-beam 1

# Catches a score that there is not, as a number that JSON does not have.
sed '/"best": {/,/}/s/"value": [0-9.e-]*/"value": null/' m/training/latest/state.json >state && mv state m/training/latest/state.json
run train --resume m --json
exits 0; says '"best": null, '
rm -rf m

# Catches bad input that is taken, described badly, or leaves something behind.
bad() { # CODE TEXT ARGUMENT...
    code=$1 text=$2
    shift 2
    run train "$@"
    exits "$code"; mentions "$text"; quiet_out; nothing_left
}
printf 'one line\n' >short.t
printf '\n\n' >empty.s
head -n 2 train.s | tr '\n' ' ' >long.s
ok="--source train.s --target train.t --max-updates 1"
bad 2 "missing option '--model'" --source train.s --target train.t
bad 2 "option '--model' is empty, expected the directory to make" --model '' --tsv pairs.tsv
bad 2 'files with --source: 1, with --target: 0, expected as many' --model m --source train.s
bad 2 'nothing to learn from: give --source and --target, or --tsv' --model m
bad 1 "'nowhere.s': No such file or directory" --model m --source nowhere.s --target train.t
bad 1 "'short.t': 1 lines, expected 300 as in 'train.s'" --model m --source train.s --target short.t
head -n 300 train.t | tr '5' '\000' >binary.t
bad 1 "binary.t'" --model m --source train.s --target binary.t
mentions 'is NUL, expected text'
bad 1 "no usable sentence pair in 'empty.s' and its companions: 2 lines read, 2 skipped" --model m --source empty.s --target empty.s
bad 1 "no usable sentence pair in 'train.s': none of the 300 lines has a tab, expected source TAB target" --model m --tsv train.s
: >nothing.tsv
bad 1 "no usable sentence pair in 'nothing.tsv': empty" --model m --tsv nothing.tsv
[ "$(wc -l <err)" = 1 ]; verdict $? 'more than that is said'
# shellcheck disable=SC2086
{
    bad 2 "option '--threads' is '0', expected a whole number from 1 to 64" --model m $ok --threads 0
    bad 2 '--heads 7 does not divide --d 512: use --heads 4 or 8' --model m $ok --heads 7
    bad 1 'million parameters take' --model m $ok --d 65536 --ff 1048576 --encoder-layers 256
    bad 2 "unknown option '--sorce'; did you mean '--source'?" --model m $ok --sorce x
    bad 1 "'nowhere.spm': No such file or directory" --model m $ok --vocab nowhere.spm
    bad 2 "is a list of words: use --tokens whitespace" --model m $ok --vocab whole/shared.vocab
    bad 1 "'nowhere/m'" --model nowhere/m $ok --tokens whitespace
    bad 1 "raise --max-tokens" --model m $ok $small --tokens whitespace --max-tokens 2
    bad 1 "raise --longest" --model m $ok $small --tokens whitespace --longest 5
    bad 1 "validation set: none of the 1 pairs has at most 20 tokens on either side" --model m $ok $small \
        --tokens whitespace --longest 20 --valid-source long.s --valid-target long.s
    mentions 'raise --longest'
    bad 2 '--vocab-type bpe learns to cut words' --model m $ok --tokens whitespace --vocab-type bpe
    bad 2 '--vocab-min-count needs --tokens whitespace' --model m $ok --vocab-min-count 2
    bad 2 '--momentum needs --optimizer sgd or rmsprop' --model m $ok --momentum 0.9
    bad 2 '--rate-floor needs --schedule cosine or linear' --model m $ok --recipe paper --rate-floor 0.1
    bad 2 '--rate-floor is 0.1, expected at most the 0.001 of --rate' --model m $ok \
        --schedule linear --warmup 0 --rate-floor 0.1
    bad 2 '--subword-sampling is 3, expected at most 1 with --vocab-type bpe' --model m $ok \
        --vocab-type bpe --subword-sampling 3
    bad 2 '--subword-sampling is 3, expected at most 1 with --bpe-joiner' --model m $ok \
        --tokens whitespace --bpe-joiner '@@ ' --subword-sampling 3
    bad 2 "option '--ema' is '1', expected a number from 0 to 0.9999999" --model m $ok --ema 1
    bad 2 "option '--keep' is '200', expected a whole number from 1 to 100" --model m $ok --keep 200
    bad 2 '--vocab-size is 5, expected at least 14' --model m $ok --vocab-size 5
    bad 1 "cannot make the directory 'train.s/m': Not a directory" --model train.s/m $ok
}
if [ "$(id -u)" != 0 ]; then # whom nothing is forbidden
    mkdir sealed && chmod 555 sealed
    # shellcheck disable=SC2086
    bad 1 "'sealed/m': Permission denied" --model sealed/m $ok
fi
# Catches names that the stored options cannot hold, in the file's own name or above it.
wrong=$(printf 'w\377')
mkdir "$wrong" && cp train.s "$wrong.s" && cp train.s "$wrong/s"
bad 2 "', expected UTF-8: a run could not be resumed otherwise" --model m --source "$wrong.s" --target train.t
bad 2 "', expected UTF-8: a run could not be resumed otherwise" --model m --source "$wrong/s" --target train.t

# Catches an option that is taken and ignored.
vain() { # TEXT OPTION...
    text=$1
    shift
    # shellcheck disable=SC2086
    bad 2 "heed: $text" --model m $ok "$@"
}
vain '--cell needs --arch rnn' --cell lstm
vain '--reverse needs --arch rnn' --no-reverse
vain '--heads needs --arch transformer' --arch rnn --heads 8
vain '--ff-gated needs --arch transformer' --arch rnn --ff-gated
vain "option '--arch' is 'rn', expected transformer" --arch rn
vain '--residual needs --arch transformer' --preset luong --no-residual
vain '--attention-score needs --attend before or after' --preset sutskever --attention-score dot
vain '--attention-beta needs --attention-score cosine' --recipe paper --attention-beta 2
vain '--attention-pattern needs --attend before or after' --preset sutskever --attention-pattern band:4
vain '--position-bias needs --arch transformer' --preset luong --position-bias alibi
vain '--scale-scores needs --attention-score scaled-dot' --attention-score dot --no-scale-scores
vain '--vocab-type is for a vocabulary that is learned' --vocab v.spm --vocab-type bpe
vain '--vocab-size is for a vocabulary that is learned' --vocab v.spm --vocab-size 8000
vain '--vocab-coverage is for a vocabulary that is learned' --vocab v.spm --vocab-coverage 0.99
vain '--sampling-sides needs --subword-sampling' --sampling-sides source
vain '--hold-out is for training without validation files' --valid-tsv pairs.tsv --hold-out 5
vain '--beta1 needs --optimizer adam or adamw' --optimizer sgd --beta1 0.9
vain '--beta2 needs --optimizer adam or adamw' --optimizer rmsprop --beta2 0.9
vain '--eps needs --optimizer adam, adamw or rmsprop' --optimizer sgd --eps 1e-8
# Catches a preset, or the options of another run, refused because of what they do not mean.
# shellcheck disable=SC2086
run train --model m $ok --preset tiny --arch rnn --d 16 --optimizer sgd --print-config
exits 0
cp out options.json
# shellcheck disable=SC2086
run train --model m $ok --preset tiny --arch rnn --d 16 --optimizer sgd --dry-run
exits 0
run train --config options.json --dry-run
exits 0; nothing_left

run train --resume nowhere
exits 1; complains "heed: cannot resume 'nowhere': there is no training in it"

# Catches a foreign or damaged safetensors that is loaded.
# shellcheck disable=SC2086
run train --model m $base --max-updates 60
for step in 50 60; do head -c 200 whole/model.safetensors >m/training/step-$step/model.safetensors; done
run train --resume m
exits 1; mentions "no whole save in 'm/training'"; quiet_out
rm -rf m

finish
