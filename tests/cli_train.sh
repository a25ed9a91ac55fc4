#!/bin/sh
# cli_train.sh: `heed train` from outside: two text files to a translator, copy and reverse, an
# overfitted corpus, signals, resume, and what is said about bad input.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

complains() { grep -qxF -- "$1" err; verdict $? "stderr lacks the line '$1'"; }
quiet_out() { [ ! -s out ]; verdict $? "stdout is not empty"; }
nothing_left() { [ ! -e m ] && [ -z "$(ls -d m.heed-* 2>/dev/null)" ]; verdict $? "something is left of m"; }

# pairs FILE COUNT SEED reverse|copy: lines of 10 of 10 words, and their copies or reversals.
pairs() {
    awk -v n="$2" -v seed="$3" -v how="$4" -v name="$1" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            a = b = ""
            for (k = 0; k < 10; k++) {
                w = "w" int(10 * rand())
                a = a (k ? " " : "") w
                b = how == "copy" ? b (k ? " " : "") w : w (k ? " " : "") b
            }
            print a > (name ".s"); print b > (name ".t")
        }
    }'
}
small="--tokens whitespace --encoder-layers 1 --decoder-layers 1 --d 32 --ff 64 --heads 2 --threads 1"

# exact NAME: how many of 50 lines are translated as they should be.
exact() {
    "$heed" translate --model m --beam 1 --threads 1 "$1.s" >hypothesis 2>err
    paste -d'|' hypothesis "$1.t" | awk -F'|' '$1 == $2 { n++ } END { print n + 0 }'
}

# Catches a training that does not lead to a translator: the copy and the reversal task are learned.
for task in copy reverse; do
    pairs train 2000 1 $task
    pairs test 50 2 $task
    layers=$([ $task = copy ] && echo 1 || echo 2)
    # shellcheck disable=SC2086
    run train --model m $small --encoder-layers $layers --decoder-layers $layers --d 64 --ff 128 \
        --heads 4 --source train.s --target train.t --batch-tokens 1024 --schedule linear \
        --rate 0.003 --warmup 50 --max-updates 400 --dropout 0 --label-smoothing 0 \
        --valid-every 200 --valid-lines 50 --valid-beam 1 --average 1 --seed 1
    exits 0
    says '^done: --max-updates reached after 400 updates'
    mentions 'pairs are held out for validation'
    n=$(exact test)
    what="$task task"
    [ "$n" -ge 49 ]; verdict $? "$n of 50 exact"
    rm -rf m
done

# Catches a loop that cannot even learn 200 pairs by heart: SentencePiece, all the way through.
awk 'BEGIN {
    srand(3)
    split("the a one my his her this that no every", d); split("red old big small dark round cold dry", j)
    split("house tree dog stone river door boat lamp", n); split("sees finds wants keeps leaves opens", v)
    split("das ein eins mein sein ihr dies jenes kein jedes", D)
    split("rote alte grosse kleine dunkle runde kalte trockene", J)
    split("Haus Baum Hund Stein Fluss Tor Boot Licht", N)
    split("sieht findet will hat verlaesst oeffnet", V)
    for (i = 0; i < 200; i++) {
        a = int(10 * rand()) + 1; b = int(8 * rand()) + 1; c = int(8 * rand()) + 1
        e = int(6 * rand()) + 1; f = int(10 * rand()) + 1; g = int(8 * rand()) + 1
        print d[a], j[b], n[c], v[e], d[f], n[g] "." "\t" D[a], J[b], N[c], V[e], D[f], N[g] "."
    }
}' >two-hundred.tsv
cut -f 1 two-hundred.tsv >two-hundred.s
cut -f 2 two-hundred.tsv >two-hundred.t
run train --model m --encoder-layers 2 --decoder-layers 2 --d 64 --ff 128 --heads 4 --threads 1 \
    --tsv two-hundred.tsv --valid-tsv two-hundred.tsv --vocab-size 150 --batch-tokens 1024 \
    --schedule linear --rate 0.003 --warmup 30 --max-updates 300 --dropout 0 --label-smoothing 0 \
    --valid-every 150 --valid-beam 1
exits 0
n=$(exact two-hundred)
what='200 pairs by heart'
[ "$n" -ge 198 ]; verdict $? "$n of 200 exact"

# Catches files of a model directory that are missing, and pictures that are none.
what='the model directory'
for file in config.json model.safetensors shared.spm training/options.json training/log.jsonl \
    training/curves.svg training/latest/state.json training/best.safetensors; do
    [ -s "m/$file" ]; verdict $? "there is no $file"
done
grep -q '^<svg' m/training/curves.svg; verdict $? 'curves.svg is not an SVG'

# Catches a finished run that cannot go on, and an option that changes without a word.
run train --resume m --max-updates 302 --schedule linear
exits 2
mentions "--max-updates cannot change on resume: the learning rate of 'm' depends on it"
run train --resume m
exits 0; says '^done: --max-updates reached after 300 updates'
run train --resume m --d 128
exits 2; complains "heed: --d cannot change on resume; leave it out, or train 'm' anew"
run train --resume m --preset tiny
exits 2; complains "heed: --preset cannot change on resume; leave it out, or train 'm' anew"
run train --model m --tsv two-hundred.tsv
exits 2; mentions "'m' is there already: go on with --resume 'm', or remove it"
rm -rf m

# Catches a signal that loses work, and a resumed run that ends elsewhere.
pairs train 300 1 copy
pairs valid 10 2 copy
base="$small --source train.s --target train.t --valid-source valid.s --valid-target valid.t \
    --batch-tokens 256 --valid-every 50 --valid-metric loss --valid-lines 2 --max-updates 300"
# shellcheck disable=SC2086
run train --model whole $base
exits 0
for signal in INT TERM; do
    what="heed train and SIG$signal"
    # Started from a shell without job control, a program in the background ignores SIGINT.
    # shellcheck disable=SC2086
    perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$heed" train --model m $base >out 2>err &
    child=$!
    while [ ! -d m/training/step-50 ] && kill -0 $child 2>/dev/null; do sleep 0.02; done
    kill -$signal $child
    wait $child
    rc=$?
    exits 130
    mentions 'and saved; go on with: heed train --resume m'
    run train --resume m
    exits 0
    what="bits after SIG$signal"
    cmp -s whole/model.safetensors m/model.safetensors; verdict $? 'the models differ'
    cmp -s whole/training/step-300/moments.safetensors m/training/step-300/moments.safetensors
    verdict $? 'the moments differ'
    rm -rf m
done

# Catches a dry run that leaves something behind or says nothing.
# shellcheck disable=SC2086
run train --model m $base --dry-run
exits 0; says '^parameters  *[0-9]'; says '^memory  *[0-9]'; says '^epoch  *[0-9]'; nothing_left
# shellcheck disable=SC2086
run train --model m $base --dry-run --json
exits 0; says '^{"pairs": 300, "validation_pairs": 10, .*"parameters": [0-9]'; nothing_left

# Catches bad input that is taken, described badly, or leaves something behind.
bad() { # CODE TEXT ARGUMENT...
    code=$1 text=$2
    shift 2
    run train "$@"
    exits "$code"; mentions "$text"; quiet_out; nothing_left
}
printf 'one line\n' >short.t
head -c 3000 /dev/urandom >binary.t
printf '\n\n' >empty.s
mkdir -p sealed
ok="--source train.s --target train.t --max-updates 1"
bad 2 "missing option '--model'" --source train.s --target train.t
bad 2 'nothing to learn from: give --source and --target, or --tsv' --model m
bad 1 "'nowhere.s': No such file or directory" --model m --source nowhere.s --target train.t
bad 1 "'short.t': 1 lines, expected 300 as in 'train.s'" --model m --source train.s --target short.t
bad 1 "binary.t'" --model m --source train.s --target binary.t
bad 1 'no usable sentence pair' --model m --source empty.s --target empty.s
# shellcheck disable=SC2086
{
    bad 2 "option '--threads' is '0', expected a whole number from 1 to 64" --model m $ok --threads 0
    bad 2 '--heads 7 does not divide --d 512: use --heads 4 or 8' --model m $ok --heads 7
    bad 1 'million parameters take' --model m $ok --d 65536 --ff 1048576 --encoder-layers 256
    bad 2 "unknown option '--sorce'; did you mean '--source'?" --model m $ok --sorce x
    bad 1 "'nowhere.spm': No such file or directory" --model m $ok --vocab nowhere.spm
    bad 2 "is a list of words: use --tokens whitespace" --model m $ok --vocab whole/shared.vocab
    bad 1 "'nowhere/m'" --model nowhere/m $ok --tokens whitespace
    bad 1 "raise --max-tokens" --model m $ok --tokens whitespace --max-tokens 2
}
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
