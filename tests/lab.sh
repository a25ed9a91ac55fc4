#!/bin/sh
# lab.sh: `heed lab`: the list, help, mistakes, and each lab's --quick from the first update to its
# figures.  Takes the program as its argument (build/heed otherwise); closes with `N passed, N
# failed`.
set -u
. "$(dirname "$0")/case.inc"

# figure NAME: the value of a figure of the last run.
figure() { sed -n "s/^$1  *\\([0-9.e-]*\\).*/\\1/p" out; }
# holds WHAT: a condition of awk on the value of a figure: holds 'n = 5, ...' '>= 95'
holds() {
    value=$(figure "$1")
    [ -n "$value" ] && awk "BEGIN { exit !($value $2) }" </dev/null
    verdict $? "'$1' is '${value:-missing}', expected $2"
}

# Catches a lab that is not listed, or listed without what it is.
run lab
exits 0; says '^ntm  *Neural Turing Machine'; says '^pointer  *Pointer Network'; says '^retrieve  *Pictures and texts'; says '^sagan  *SAGAN'
says '^caption  *Show, Attend and Tell'; says '^long  *Long sequences'; says '^lstmn  *LSTMN'; says '^snail  *SNAIL'; says '^vit  *Vision Transformer'; quiet_err

# Catches help that is missing or too wide.
for name in caption long lstmn ntm pointer retrieve sagan snail vit; do
    run lab $name --help
    exits 0; says "^usage: heed lab $name \[options\]"; says '^  --quick '; quiet_err
    [ -z "$(awk 'length($0) > 80' out)" ]; verdict $? 'a line is longer than 80 columns'
done
run lab --help
exits 0; says '^usage: heed lab \[options\] \[NAME \[options\]\]'; quiet_err

# Catches mistakes that pass, or that cost a training before they are told.
run lab ntn
exits 2; complains "heed: unknown lab 'ntn'; did you mean 'ntm'?"; quiet_out
run lab ntm
exits 2; complains "heed: missing option '--model': the directory to make"; quiet_out
complains "try 'heed lab ntm --help'"
run lab ntm --model m --quick --preset copy
exits 2; complains "heed: options '--quick' and '--preset' exclude each other"; quiet_out
run lab ntm --model m --task sorting
exits 2; mentions "option '--task' is 'sorting'"; quiet_out
run lab pointer --model m --least 9 --most 5
exits 2; complains "heed: option '--least' is 9, more than '--most', 5"; quiet_out
run lab pointer --model m --task tsp --most 20
exits 2; mentions "option '--most' is 20, expected at most 16"; quiet_out
run lab caption --model m --stages 5
exits 2; complains "heed: option '--stages' is 5, which leaves fewer than 3 places in a line"; quiet_out
run lab lstmn --model m --keys 5 --pairs 6
exits 2; complains "heed: option '--pairs' is 6, more than '--keys', 5"; quiet_out
run lab lstmn --model m --task text
exits 2; complains "heed: missing option '--data': the folder of the text"; quiet_out
run lab lstmn --model m --task text --data nowhere
exits 1; mentions "nowhere/train.txt"; quiet_out
run lab ntm --model m --task ngrams --longest 5
exits 2; mentions "option '--longest' is 5, expected 7 at least"; quiet_out
mkdir there && touch there/something
run lab ntm --model there
exits 2; complains "heed: 'there' is there already, and no training: choose another name for the model"; quiet_out
run lab ntm --model there --seeds 2
exits 1; complains "heed: cannot make the directory 'there': it is there already, choose another name"; quiet_out
run lab ntm --resume there
exits 2; complains "heed: cannot resume 'there': there is no lab in it"; quiet_out
run lab ntm --resume there --model m
exits 2; complains "heed: options '--resume' and '--model' exclude each other"; quiet_out
run lab ntm --quick --model none --weights missing.safetensors
exits 1; mentions "missing.safetensors"; quiet_out
[ ! -e m ] && [ ! -e none ]; verdict $? 'a mistake left a directory behind'

# Catches a machine that does not learn to copy in seconds, a head that does not walk, and a lab
# that does not leave what it says.
run lab ntm --quick --model ntm --threads 1
exits 0
holds 'length 6, wrong bits, %' '<= 1'
holds 'length 12, steps on which a write head moves by one, %' '>= 95'
holds 'length 12, steps on which a read head moves by one, %' '>= 95'
for file in config.json model.safetensors results.json training/curves.svg training/log.jsonl memory.svg; do
    [ -s ntm/$file ]; verdict $? "ntm/$file is missing"
done
cp out trained

# Catches weights that are not those that were measured, and a config that does not bring back what
# was in force.
run lab ntm --config ntm/config.json --model again --weights ntm/model.safetensors --updates 0 \
    --threads 1
exits 0
grep -v '^validation\|^trained' trained >first; grep -v '^validation\|^trained' out >second
same first second

# Catches a captioner that does not say which digits stand where, or whose words look elsewhere.
run lab caption --quick --model caption --threads 1
exits 0
holds 'test, sentences that are right, %' '>= 90'
holds "attention of a digit's word in its cell, %" '>= 80'
[ -s caption/looks.svg ]; verdict $? 'there is no picture'

# Catches a query that does not find what stands a whole w before it, and a band that finds it all the
# same: then the answer would be in the question.
run lab long --quick --model long --threads 1
exits 0
holds 'second half of 8 symbols, right, %' '>= 99'
grep -q 'class="frame"' long/pattern.svg; verdict $? 'there is no picture'
run lab long --quick --model near --threads 1 --attention-pattern band:5
exits 0
holds 'second half of 8 symbols, right, %' '<= 5'
# Catches a value that is not the key's last: the delta rule finds it where a sum of all that was written cannot.
keys='--task retrieval --writes 16 --heads 1 --d 16 --ff 0 --positions none --rate 0.01 --rate-end 0.001'
run lab long --quick $keys --attention-normaliser delta --model delta --threads 1
exits 0
holds '8 keys, half the squared error of a value' '<= 0.02'
run lab long --quick $keys --attention-normaliser elu --model sum --threads 1
exits 0
holds '8 keys, half the squared error of a value' '>= 0.1'
# Catches a set that is pooled without looking at it.
run lab long --quick --task sets --positions none --rate-end 0.0001 --model pma --threads 1
exits 0
holds 'the largest of up to 8 numbers, mean absolute error' '<= 3'
run lab long --quick --task sets --positions none --pooling mean --rate-end 0.0001 --model mean --threads 1
exits 0
holds 'the largest of up to 8 numbers, mean absolute error' '>= 6'
# Catches a forecast that is the last value once more, and one that sees what it is asked for.
mkdir hours
awk 'BEGIN { print "date,load,OT"; for (i = 0; i < 14400; i++)
    printf "h,%d,%.4f\n", i % 7, 20 + 5 * sin(6.2831853 * i / 24) + (i * 7919 % 1000) / 500 }' >hours/ETTh1.csv
run lab long --quick --task series --length 24 --updates 150 --batch 16 --test-examples 300 --data hours \
    --attention-queries probsparse:2 --model hours-ahead --threads 1
exits 0
holds '24 hours ahead, squared error' '<= 0.12'
holds 'the last value once more, squared error' '>= 0.5'
holds 'absolute error' '>= 0.05'
# Catches questions about characters that are answered without looking at them, and spans that are not there.
mkdir text
awk 'BEGIN { n = split("the quick brown fox jumps over lazy dogs and many more words stand here to be read again", w, " ")
    for (i = 0; i < 900; i++) { l = ""; for (k = 0; k < 9; k++) { r = (r * 1103515245 + 12345) % 2147483648
        l = l w[int(r / 65536) % n + 1] " " }; print l } }' >text/input.txt
run lab long --quick --task span --data text --adaptive-span 64 --model far --threads 1
exits 0
holds 'characters up to 8 before, right, %' '>= 90'
holds 'the longest span of 4 heads' '<= 64'
run lab long --quick --task span --data text --attention-pattern band:3 --model narrow --threads 1
exits 0
holds 'characters up to 8 before, right, %' '<= 70'
# Catches learned keys and values that are not as many weights as what they stand for, or learn nothing.
run lab long --quick --task persistent --data text --length 32 --updates 200 --ff 0 --attention-memory persistent:64 \
    --model all-attention --threads 1
exits 0
holds 'weights beside the projections' '== 4096'
holds '32 characters at a time, nats each' '<= 2.2'
run lab long --quick --task persistent --data text --length 32 --updates 1 --ff 64 --model with-ff --threads 1
exits 0
holds 'weights beside the projections' '== 4096'
# Catches options of one task that another takes.
run lab long --task sets --writes 4 --model x
exits 2; mentions "option '--writes' has no effect with '--task sets'"
run lab long --pooling max --model x
exits 2; mentions "option '--pooling' has no effect with '--task duplication'"
run lab long --task series --data text --model x
exits 1; mentions 'text/ETTh1.csv'
run lab long --position-bias span:9 --model x
exits 2; mentions 'span:9 is no position bias: use --adaptive-span 9'
# Catches lists that no model reads, and tasks that need data and start without it.
run lab long --task listops --model lists --updates 2 --valid-every 2 --test-examples 4 --batch 4 --threads 1 \
    --attention-pattern bigbird:4:1
exits 0; says '^lists of 21 to 199 tokens, right, %'
run lab long --task pixels --model x
exits 2; complains "heed: missing option '--data': the folder of pixels"
run lab long --task characters --data nowhere --model x
exits 1; mentions 'nowhere/input.txt'
run lab long --task listops --data there --model x
exits 2; mentions "option '--data' has no effect with '--task listops'"
run lab long --attention-pattern band:0 --model x
exits 2; mentions 'the number of band:W is 0'
run lab long --heads 5 --model x
exits 2; mentions "option '--heads' is 5, expected a divisor of --d, 64"
[ ! -e x ]; verdict $? 'a mistake left a directory behind'

# Catches pictures and texts that do not find each other.
run lab retrieve --quick --model retrieve --threads 1
exits 0
holds 'a text finds its picture of 100, recall@1, %' '>= 70'
holds 'a picture finds its text of 100, recall@1, %' '>= 70'
holds "attention of a digit's word in its cell, %" '>= 60'
[ -s retrieve/looks.svg ]; verdict $? 'there is no picture'

# Catches a generator that makes one glyph or none, or two that differ: without looking at the other
# corner they agree by chance.
run lab sagan --quick --model corners --threads 1
exits 0
holds 'corners that agree, %' '>= 25'
holds 'the same of real pictures, %' '>= 99'
holds 'kinds that come up, of 18' '>= 6'
holds "FID' in floors" '<= 40'
holds 'gamma of the discriminator' '> 0.5'
for file in samples.svg attention.svg attention-discriminator.svg gamma.svg judge.safetensors model-discriminator.safetensors; do
    [ -s corners/$file ]; verdict $? "corners/$file is missing"
done
run lab sagan --model blind --side 16 --middle residual --updates 4 --valid-every 2 --judge-updates 2 --test-pictures 20 \
    --seeds 2 --threads 1
exits 0; says "^seed 2, FID' in floors"; [ -s blind/gamma.svg ]; verdict $? 'there is no curve'
[ ! -e blind/attention.svg ]; verdict $? 'a picture of attention that is not there'
run lab sagan --model x --task fashion
exits 2; complains "heed: missing option '--data': the folder of pictures"
run lab sagan --model x --task fashion --data nowhere
exits 1; mentions 'nowhere/train-images-idx3-ubyte'
run lab sagan --model x --data there
exits 2; mentions "option '--data' has no effect with '--task corners'"
run lab sagan --model x --side 24
exits 2; complains "heed: option '--side' is 24, expected a power of 2"
run lab sagan --model x --at 32
exits 2; mentions "option '--at' is 32, expected a power of 2 up to half of the pictures' 32 pixels"

# Catches a memory network that does not recall, and a picture of where it looks that is not made.
run lab lstmn --quick --model lstmn --threads 1
exits 0
holds '4 pairs, right, %' '>= 90'
grep -q 'class="now"' lstmn/looks.svg; verdict $? 'there is no picture'

# Catches a pointer network that does not learn to sort in seconds.
run lab pointer --quick --model numbers --threads 1 --json
exits 0; says '"lab": "pointer"'; says '"finished": true'; same out numbers/results.json
[ -s numbers/points-5.svg ]; verdict $? 'there is no picture'
value=$(tr -d '\n' <out | sed -n 's/.*"n = 5, elements in place, %", *"value": \([0-9.]*\).*/\1/p')
awk "BEGIN { exit !(${value:-0} >= 95) }"; verdict $? "elements in place: ${value:-none} %"

# Catches a Vision Transformer that does not learn drawn digits in seconds, or that does not need to
# know where a patch stands.
run lab vit --quick --model digits --threads 1
exits 0
holds 'test, right, %' '>= 95'
holds 'test with the positions taken away, right, %' '<= 80'
for file in rollout.svg positions.svg results.json training/curves.svg; do
    [ -s digits/$file ]; verdict $? "digits/$file is missing"
done
run lab vit --model x --patch 5
exits 2; complains "heed: option '--patch' is 5, expected a divisor of the pictures' 28 pixels"
run lab vit --model x --data nowhere
exits 1; mentions 'nowhere/train-images-idx3-ubyte'

# Catches a learner that does not learn to compare a question with the examples.
run lab snail --quick --model shots --threads 1
exits 0
holds 'of the best possible, %' '>= 95'
[ -s shots/looks.svg ]; verdict $? 'there is no picture of what the question looks at'
run lab snail --model x --task omniglot
exits 2; complains "heed: missing option '--data': the folder of Omniglot"
run lab snail --model x --data there
exits 2; mentions "option '--data' has no effect with '--task prototypes'"
[ ! -e x ]; verdict $? 'a mistake left a directory behind'

# Catches labs that leave the LSTM's, the other tasks' or the other shift's ways untried.
small='--updates 3 --test-sequences 2 --threads 1'
for task in repeat-copy recall ngrams sort; do
    run lab ntm --model $task --task $task --units 8 --locations 20 --width 4 $small
    exits 0; [ -s $task/memory.svg ]; verdict $? "$task: there is no picture"
done
run lab ntm --model lstm --arch lstm --layers 2 --units 8 $small
exits 0; says '^length 80, wrong bits, % .*at least 25: met'
run lab ntm --model ff --arch ntm-ff --units 8 --shift number --reach 2 --read-first --read-heads 2 \
    --seeds 2 $small
exits 0; says '^seed 2, length 120, wrong bits'; [ -s ff/seed-2/training/curves.svg ]; verdict $? 'no curves'
for task in hull delaunay tsp; do
    run lab pointer --model $task --task $task --units 8 --updates 3 --test-examples 2 --beam 2 \
        --threads 1
    exits 0; [ -s $task/points-10.svg ]; verdict $? "$task: there is no picture"
done

# Catches an interrupt that is not told from an end, one that cannot be gone on from, and options
# that change what was trained or are refused though they do not.
what='heed lab ntm, interrupted'
rm err
options='--units 8 --locations 12 --longest 4 --valid-every 100 --test-sequences 2 --threads 1'
# shellcheck disable=SC2086
"$heed" lab ntm --model cut $options --updates 1000000 >out 2>err &
process=$!
while ! grep -q '^update 100:' err 2>/dev/null; do sleep 0.1; done
kill -INT $process
wait $process
rc=$?
exits 130; mentions "stopped and saved; go on with: heed lab ntm --resume cut"; quiet_out
[ -s cut/model.safetensors ]; verdict $? 'there are no weights'
run lab ntm --resume cut --units 9
exits 2; complains "heed: --units cannot change on resume; leave it out, or train 'cut' anew"; quiet_out
run lab ntm --resume cut --updates 1 --test-sequences 3
exits 0; says '^length 24, wrong bits'

# Catches several seeds of which one is not gone on with, or another than the best is kept.
run lab ntm --resume ff --updates 5 --threads 1
exits 0; says '^seed 1, length 120, wrong bits'; mentions 'seed 2, 2 of 2'; grep -q '"update": 5' ff/seed-2/training/log.jsonl; verdict $? 'not resumed'
best=$(sed -n 's/^seed \([12]\), validation.* \([0-9.]*\)$/\2 \1/p' out | sort -n | sed 's/.* //; q')
same ff/model.safetensors ff/seed-$best/model.safetensors

finish
