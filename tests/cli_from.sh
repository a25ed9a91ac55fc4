#!/bin/sh
# cli_from.sh: `heed train --from` from outside: another model's shape, vocabulary and weights.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=300 >pairs.tsv
cut -f 1 pairs.tsv | head -n 20 >some.en
cut -f 2 pairs.tsv | head -n 20 >some.de
learn="--tsv pairs.tsv --threads 1 --valid-beam 1 --valid-lines 5"
# shellcheck disable=SC2086
run train --model m $learn --encoder-layers 1 --decoder-layers 2 --d 32 --ff 64 --heads 2 --pre-norm \
    --schedule linear --rate 0.005 --warmup 10 --max-updates 100 --protect 0.2
exits 0

# Catches weights, a shape or a vocabulary that do not come along: one update of no size leaves the
# model as it was.
still="--recipe paper --schedule constant --rate 1e-30 --max-updates 1"
# shellcheck disable=SC2086
run train --model n --from m $learn $still --dropout 0.3
exits 0
same m/model.safetensors n/model.safetensors
same m/shared.spm n/shared.spm
grep -q '"protects": true' n/config.json; verdict $? 'placeholders are forgotten'
grep -q '"dropout": 0.3' n/config.json; verdict $? '--dropout is not what was asked for'
# Catches a few short lines after which long ones are cut into pieces, and the rate of untrained weights.
printf 'the man\tder Mann\nthe dog\tder Hund\na cat\teine Katze\n' >short.tsv
run train --model s --from m --tsv short.tsv --threads 1 --max-updates 1 --valid-beam 1
exits 0
grep -h '"trained-l' m/config.json >before
grep -h '"trained-l' s/config.json >after
same before after
grep -q '"schedule": "linear"' s/training/options.json; verdict $? 'it starts from a rate of nothing'
# Catches a schedule that is asked for and not had.
schedule() { # "SCHEDULE RATE WARMUP" OPTION...
    expected=$1
    shift
    rm -rf s
    run train --model s --from m --tsv short.tsv --threads 1 --max-updates 1 --valid-beam 1 "$@"
    exits 0
    found=$(sed -n 's/^  "\(schedule\|rate\|warmup\)": "*\([^",]*\).*/\2/p' s/training/options.json |
        paste -sd ' ')
    [ "$found" = "$expected" ]; verdict $? "it is $found, expected $expected"
}
schedule 'linear 0.0002 0'
schedule 'constant 0.001 5' --schedule constant --warmup 5
schedule 'linear 0.003 0' --rate 0.003
schedule 'linear 0.001 0' --rate 0
schedule 'noam 1 4000' --schedule noam
schedule 'noam 1 4000' --schedule noam --rate 0 --warmup 4000
schedule 'noam 0.5 4000' --schedule noam --rate 0.5
schedule 'inverse-sqrt 0.001 4000' --schedule inverse-sqrt
echo '{"schedule": "noam", "warmup": 30}' >noam.json
schedule 'noam 1 30' --config noam.json
# Catches a resumed run that starts from the other model again, or needs it, or knows it no more by
# the name it was given.
run train --resume n --from m --max-updates 1
exits 0
mkdir -p share/heed/models bin
cp -R m share/heed/models/mine
cp "$heed" bin/heed
what='heed train --from mine'
# shellcheck disable=SC2086
bin/heed train --model i --from mine $learn $still >out 2>err
rc=$?
exits 0
what='heed train --resume i --from mine'
bin/heed train --resume i --from mine >out 2>err
rc=$?
exits 0
rm -rf i share bin
mv m elsewhere
run train --resume n --max-updates 2
exits 0; says 'after 2 updates'
mv elsewhere m

# Catches a resumed run that validates differently from one that was not stopped: without placeholders,
# or with lines cut elsewhere.
awk -F '\t' -v OFS='\t' '{ url = "http://x.org/" NR; sub(/\.$/, " " url ".", $1); sub(/\.$/, " " url ".", $2) } 1' \
    pairs.tsv | tail -n 20 >links.tsv
short="--from m --recipe paper --schedule constant --rate 0.0002 --warmup 0 --tsv short.tsv --valid-tsv links.tsv --threads 1 --valid-beam 1 --valid-every 2"
# shellcheck disable=SC2086
{
    run train --model whole $short --max-updates 4
    exits 0; grep '^update 4:' err >before
    run train --model stopped $short --max-updates 2
    exits 0
}
run train --resume stopped --max-updates 4
exits 0; grep '^update 4:' err >after
same before after
same whole/model.safetensors stopped/model.safetensors

# Catches a model that keeps nothing of its text, what it keeps not mixed with the new pairs, or another
# mixture after a stop.
[ "$(wc -l <m/sample.tsv)" = 285 ]; verdict $? "m/sample.tsv has $(wc -l <m/sample.tsv) lines, expected the 285 pairs"
head -n 40 links.tsv >new.tsv
mixed="--from m --tsv new.tsv --valid-tsv links.tsv --threads 1 --valid-beam 1 --batch-tokens 100"
# shellcheck disable=SC2086
{
    run train --model mixed $mixed --max-updates 6 --save-every 3
    exits 0; mentions 'an epoch has your 20 pairs 14 times, and what the model makes of '
    same m/model.safetensors mixed/training/start.safetensors
    mv mixed/training/sample.tsv rehearsed
    [ "$(wc -l <rehearsed)" -ge 200 ]; verdict $? "of 285 lines $(wc -l <rehearsed) are rehearsed"
    cut -f 1 m/sample.tsv | sort >sources
    [ -z "$(cut -f 1 rehearsed | sort | comm -23 - sources)" ]; verdict $? 'something else is rehearsed'
    sed 's/[^\t]*\t//' rehearsed >own
    cut -f 1 rehearsed >in
    run translate --model m --no-protect
    exits 0; same own out
    mv rehearsed mixed/training/sample.tsv
    : >in
    run train --model alone $mixed --max-updates 6 --rehearse 0 --sample-pairs 0
    exits 0
}
! grep -q 'an epoch has your' err; verdict $? 'it rehearses all the same'
[ ! -e alone/sample.tsv ]; verdict $? 'there is a sample that nobody asked for'
grep -q 'x.org' mixed/sample.tsv; verdict $? 'the new sample has nothing of the new pairs'
cp -R mixed again
rm -rf again/training/step-6
run train --resume again
exits 0; same mixed/model.safetensors again/model.safetensors
rm -rf mixed alone again

# Catches a sample that is translated without a word of how far it is, and Ctrl-C that waits for its end.
cp -R m large
i=0
while [ $i -lt 400 ]; do cat m/sample.tsv; i=$((i + 1)); done >large/sample.tsv
what='heed train --from large, stopped'
"$heed" train --model cut --from large --tsv new.tsv --valid-tsv links.tsv --threads 1 >out 2>err &
i=0
while ! grep -q '^translated [0-9]*%' err && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done
kill -INT $!
wait $!
rc=$?
exits 130; mentions 'translated '; mentions 'stopping ...'
! grep -q 'an epoch has' err; verdict $? 'all of it was translated first'
[ ! -e cut ]; verdict $? 'it leaves a folder'
rm -rf large

# Catches new sentences that are not rehearsed with other words, as if their own were not new.
cp -R m rarer
printf 'Today, the zebra sees a glacier.\tx\n' >>rarer/sample.tsv
printf 'Today, the blorvet sees the man.\tHeute sieht der Krumpel den Mann.\nToday, the man sees it.\tHeute sieht es der Mann.\n' >term.tsv
run train --model term --from rarer --tsv term.tsv --valid-tsv links.tsv --threads 1 --valid-beam 1 --batch-tokens 100 --max-updates 2
exits 0; mentions 'translating 296 lines first'
! grep -q 'blorvet.*blorvet\|^[^\t]*blorvet' term/training/sample.tsv; verdict $? 'a new word is rehearsed'
rm -rf rarer term

# Catches a model that has learned nothing yet and cannot be started from, since it has no translations to rehearse.
# shellcheck disable=SC2086
run train --model raw $learn --encoder-layers 1 --decoder-layers 1 --d 16 --ff 16 --heads 2 --recipe paper --max-updates 1
exits 0
run train --model begun --from raw --tsv new.tsv --valid-tsv links.tsv --threads 1 --max-updates 2 --valid-beam 1
exits 0; mentions "warning: 'raw' translates no line of its sample: nothing is rehearsed"
run train --resume begun
exits 0; says 'after 2 updates'
rm -rf raw begun

# Catches a validation that spells the names that `heed translate` copies.
for name in Quorvik Brzezno Tazolmir Welgunde; do
    printf 'Today, the man sees %s.\tHeute sieht der Mann %s.\n' $name $name
done >names.tsv
cut -f 1 names.tsv >names.en
cut -f 2 names.tsv >names.de
[ -e m/names.txt ]; verdict $? 'there is no names.txt: this proves nothing'
# shellcheck disable=SC2086
run train --model named --from m --tsv pairs.tsv --valid-tsv names.tsv --threads 1 --valid-beam 1 --rehearse 0 $still --json
exits 0
sed 's/.*"best": \([0-9.]*\),.*/\1/' out >before
run evaluate --model named --source names.en --reference names.de --beam 1 --metric bleu --json
exits 0
sed 's/.*"score":\([0-9.]*\).*/\1/' out >after
paste before after | awk '{ exit !($1 > 0 && ($1 - $2) ^ 2 < 1e-4) }'
verdict $? "validation says BLEU $(cat before), evaluate $(cat after)"

# Catches matrices of bytes that are read as something else: their numbers give the same scores, but
# for the bytes of activations.
rm -rf n
run convert m m8
exits 0
same m/sample.tsv m8/sample.tsv
# shellcheck disable=SC2086
run train --model n --from m8 $learn $still
exits 0
for model in m8 n; do
    "$heed" score --model $model --source some.en --target some.de >$model.scores
done
paste m8.scores n.scores |
    awk '{ off = $1 - $2; if (off * off > 0.0001 * $1 * $1 || $1 >= 0) bad = 1 } END { exit bad || NR != 20 }'
verdict $? "scores differ: $(paste m8.scores n.scores | head -n 3 | tr '\n' ';')"
run translate --model m some.en
[ "$(sort -u out | wc -l)" -gt 3 ]; verdict $? 'all translations are alike: this proves nothing'
rm -rf n

# Catches what cannot be had with --from, taken without a word.
refuses() { # CODE TEXT ARGUMENT...
    code=$1 text=$2
    shift 2
    # shellcheck disable=SC2086
    run train --model n $learn --max-updates 1 "$@"
    exits "$code"; mentions "$text"; quiet_out
    [ ! -e n ]; verdict $? 'something is left'
}
refuses 2 "--d is not what the model 'm' has: with --from, leave it out" --from m --d 64
refuses 2 "--encoder-layers is not what the model 'm' has" --from m --preset small
# Also where they are the defaults.
refuses 2 "--encoder-layers is not what the model 'm' has" --from m --preset base
refuses 2 "--d is not what the model 'm' has" --from m --d 512
refuses 2 "--pre-norm is not what the model 'm' has" --from m --no-pre-norm
echo '{"heads": 8}' >heads.json
refuses 2 "--heads is not what the model 'm' has" --from m --config heads.json
refuses 2 "--tokens is not what the model 'm' has" --from m --tokens whitespace
refuses 2 "--joint is not what the model 'm' has" --from m --no-joint
refuses 2 "--vocab-type is not what the model 'm' has" --from m --vocab-type bpe
refuses 2 '--from brings its own vocabulary' --from m --vocab-coverage 0.99
refuses 2 '--from brings its own vocabulary' --from m --vocab-size 500
# Also where they are the defaults.
refuses 2 '--from brings its own vocabulary' --from m --vocab-size 0
refuses 2 '--from brings its own vocabulary' --from m --vocab-min-count 1
refuses 2 '--from brings its own vocabulary' --from m --vocab-coverage 1
# Catches what is asked for and what the model has anyway, refused.
# shellcheck disable=SC2086
run train --model n --from m $learn $still --tokens sentencepiece --vocab-type unigram --joint --tying all \
    --longest 1024 --d 32 --pre-norm
exits 0; rm -rf n
echo '{"vocab-size": 0, "vocab-min-count": 1, "vocab-coverage": 1, "joint": true}' >none.json
# shellcheck disable=SC2086
run train --model n --from m $learn $still --config none.json
exits 0; rm -rf n
refuses 1 "cannot open the model 'nowhere'" --from nowhere
head -c 1000 m/model.safetensors >short && mv short m/model.safetensors
refuses 1 "m/model.safetensors'" --from m
finish
