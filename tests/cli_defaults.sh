#!/bin/sh
# cli_defaults.sh: `heed train` with nothing but a text: what is chosen, said, stored and resumed.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=1200 >pairs.tsv
head -n 400 pairs.tsv >few.tsv
stored() { sed -n "s/^  \"$2\": \"*\([^\",]*\).*/\1/p" "$1/training/options.json"; }
# has FOLDER OPTION VALUE: what training/options.json says.
has() { [ "$(stored "$1" "$2")" = "$3" ]; verdict $? "$2 is '$(stored "$1" "$2")', expected '$3'"; }

# Catches a choice that is not said, not stored, or not made.
run train --model m --tsv pairs.tsv --max-minutes 0.05 --threads 1
exits 0
mentions '50 of the pairs are held out for validation'
mentions '1150 pairs, about '
mentions 'preset tiny'
mentions 'what --max-minutes leaves time for'
mentions 'learning rate: rises to 0.0017 in '
[ "$(sed -n '/^1150 pairs/,/^dropout/p' err | wc -l)" = 4 ]; verdict $? 'the choice is not said in four lines'
for pair in 'd 128' 'pre-norm true' 'attention-score cosine' 'schedule linear' 'rate 0.0017' 'batch-tokens 256' \
    'clip 1' 'beta2 0.99' 'recipe auto'; do
    has m "${pair% *}" "${pair#* }"
done
updates=$(stored m max-updates)
[ "$updates" -ge 20 ]; verdict $? "max-updates is $updates, expected 20 or more"

# Catches a choice that is made again by a run that was given all of it, or that changes the numbers.
run train --model again --config m/training/options.json --max-minutes 0
exits 0
run train --model thrice --config again/training/options.json
exits 0
same again/model.safetensors thrice/model.safetensors
same again/training/options.json thrice/training/options.json
has again max-updates "$updates"
rm -rf again thrice

# Catches a printed configuration that is not what a run would do.
run train --model printed --tsv pairs.tsv --max-minutes 0.05 --threads 1 --print-config
exits 0; says '"schedule": "linear"'; says '"d": 128'; says '"batch-tokens": 256'
[ ! -e printed ]; verdict $? '--print-config trains'
cp out printed.json
updates=$(sed -n 's/^  "max-updates": \([0-9]*\),/\1/p' printed.json)
run train --config printed.json --print-config
exits 0; same printed.json out
run train --tsv nowhere.tsv --print-config
exits 0; mentions "nothing is chosen: cannot read 'nowhere.tsv'"; says '"schedule": "noam"'

# Catches a resumed run that chooses anew.
cp m/training/options.json before
run train --resume m
exits 0; same before m/training/options.json
rm -rf m

# Catches a share of a file that is lost on the way: to the facts that choices rest on, to a run resumed from
# elsewhere, to the sample that is kept, and one of a validation file.
cp few.tsv all.tsv
sed 's/^/q /' pairs.tsv >part.tsv
run train --model m --tsv all.tsv --tsv part.tsv:0.25 --threads 1 --max-updates 4 --vocab-size 90 --batch-tokens 100 \
    --valid-every 2 --valid-beam 1 --preset tiny --sample-pairs 70
exits 0
mentions 'an epoch has 700 of the 1600 pairs, drawn anew each time'
mentions '35 of the pairs are held out for validation'
mentions '676 pairs, about '
[ "$(grep -c '^q ' m/sample.tsv)" = 30 ]; verdict $? "the sample has $(grep -c '^q ' m/sample.tsv) pairs of the share, expected 30 of 70"
(mkdir -p elsewhere && cd elsewhere && "$heed" train --resume ../m) >out 2>err
verdict $? "a run with a share is not resumed from elsewhere: $(cat err)"
run train --model n --tsv all.tsv --valid-tsv part.tsv:0.25
exits 1; mentions "cannot read 'part.tsv:0.25': No such file or directory"
run train --model n --tsv part.tsv:2
exits 2; mentions "'part.tsv:2': the share of a file's pairs that an epoch has is above 0 and at most 1"
rm -rf m elsewhere

# Catches a given value that is replaced, and a rule for what is held out that is another one.
run train --model m --tsv few.tsv --threads 1 --max-updates 6 --vocab-size 90 --batch-tokens 100 --dropout 0.25 \
    --warmup 3 --rate 0.002 --valid-every 3 --valid-beam 1 --preset tiny --no-pre-norm --attention-score dot
exits 0
mentions '20 of the pairs are held out for validation'
for pair in 'd 128' 'pre-norm false' 'attention-score dot' 'batch-tokens 100' 'warmup 3' 'rate 0.002' 'vocab-size 90' \
    'valid-every 3' 'dropout 0.25' 'max-updates 6' 'schedule linear'; do
    has m "${pair% *}" "${pair#* }"
done
! grep -q measured err; verdict $? 'the speed is measured for nothing'
rm -rf m

# Catches a model that was described by hand and is changed.
run train --model m --tsv few.tsv --threads 1 --max-updates 2 --valid-beam 1 --d 32 --ff 64 --heads 2 \
    --encoder-layers 1 --decoder-layers 1
exits 0; mentions 'the model as given'
has m pre-norm false
has m attention-score scaled-dot
rm -rf m

# Catches times that make no sense together and are not told.
run train --model m --tsv pairs.tsv --threads 1 --recipe paper --preset tiny --max-minutes 0.02 --dry-run
exits 0; mentions 'warning: the learning rate peaks after '; mentions '; --max-minutes is 0.02'
mentions 'a part of the text is never read'
run train --model m --tsv few.tsv --threads 1 --recipe paper --preset tiny --max-updates 10 --max-tokens 20 --dry-run
exits 0; mentions 'warning: the learning rate peaks at update 4000; --max-updates is 10'
run train --model m --tsv few.tsv --threads 1 --max-updates 10 --dry-run
exits 0; ! grep -q '^warning: the learning' err; verdict $? 'it warns of its own choice'

# Catches the paper's settings that are not.
run train --model m --tsv few.tsv --threads 1 --recipe paper --preset tiny --max-updates 1 --valid-beam 1
exits 0
for pair in 'schedule noam' 'warmup 4000' 'rate 1' 'batch-tokens 4096' 'pre-norm false' 'beta2 0.98' 'vocab-size 8000' \
    'valid-every 500' 'dropout 0.1'; do
    has m "${pair% *}" "${pair#* }"
done
! grep -q 'learning rate' err; verdict $? 'something is chosen'
rm -rf m

# Catches Chinese that is scored as if it had spaces between words.
awk 'BEGIN {
    n = split("我 你 他 她 是 在 有 这 那 不 了 人 天 书 水 火 山 日 月 好", c, " ")
    for (i = 0; i < 200; i++) print "w" i "\t" c[1 + i % n] c[1 + int(i / n)] c[1 + i * 7 % n] "。"
}' >zh.tsv
run train --model m --tsv zh.tsv --threads 1 --max-updates 1 --valid-beam 1
exits 0
has m valid-tokenize zh
has m vocab-coverage 0.9995
finish
