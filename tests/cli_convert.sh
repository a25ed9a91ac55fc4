#!/bin/sh
# cli_convert.sh: `heed convert` and `heed shortlist` from outside, and what `heed translate`, `score`
# and `inspect` make of their models: small letters become capitals.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

awk 'BEGIN {
    srand(7)
    for (i = 0; i < 2000; i++) {
        n = 1 + int(rand() * 12); s = ""; t = ""
        for (k = 0; k < n; k++) {
            w = int(rand() * 12)
            s = s (k ? " " : "") sprintf("%c", 97 + w); t = t (k ? " " : "") sprintf("%c", 65 + w)
        }
        print s "\t" t
    }
}' >pairs.tsv
run train --model m --tsv pairs.tsv --tokens whitespace --encoder-layers 1 --decoder-layers 2 \
    --d 64 --ff 128 --heads 2 --dropout 0 --batch-tokens 400 --max-updates 500 \
    --schedule linear --rate 0.005 --warmup 50 --threads 1 --average 1
[ "$rc" = 0 ] || { cat err; echo "0 passed, 1 failed"; exit 1; }
bytes() { wc -c <"$1/model.safetensors"; }

# Catches a kind of numbers that translates otherwise, or is not as small as it says.
head -n 60 pairs.tsv | cut -f 1 >source
head -n 60 pairs.tsv | cut -f 2 >target
for kind in fp32 fp16 int8; do
    run convert m "$kind" --quantize "$kind"
    exits 0; quiet_out; mentions "'$kind': "
    run translate --model "$kind" --threads 1 source
    exits 0; same out target
done
what='sizes of converted models'
[ $((100 * $(bytes fp16))) -lt $((52 * $(bytes m))) ]; verdict $? 'fp16 is larger than half'
# Biases, gains and names weigh more in a model this small than in a real one.
[ $((100 * $(bytes int8))) -lt $((36 * $(bytes m))) ]; verdict $? 'int8 is larger than it should be'

# Catches commands that a model of bytes leaves without an answer.
run score --model int8 --source source --target target
exits 0; quiet_err
[ "$(wc -l <out)" = 60 ]; verdict $? 'not one score a line'
run inspect --model int8
exits 0; says 'parameters'
run inspect --model int8 --attention 'a b c' --output heads.svg
exits 0; grep -q '<svg' heads.svg; verdict $? 'there is no picture'

# Catches alignments that are not of the words, or that a wrong head passes for.
printf 'a b c\n\nl\n' >in
run translate --model int8 --alignments --alignment-head 2
exits 0; quiet_err
sed -n 1p out | grep -qx 'A B C ||| [0-2]-0 [0-2]-1 [0-2]-2'
verdict $? 'no alignment behind the translation'
[ "$(sed -n 2p out)" = '' ]; verdict $? 'an empty line has become something'
[ "$(sed -n 3p out)" = 'L ||| 0-0' ]; verdict $? 'one word is not aligned with the other'
cut -f 1 pairs.tsv | head -n 500 >some
for head in 1 2 2.1 2.2; do
    run translate --model int8 --alignments --alignment-head $head some
    exits 0; mv out by.$head
done
for two in 'by.1 by.2' 'by.2.1 by.2.2' 'by.2 by.2.1'; do
    # shellcheck disable=SC2086
    ! cmp -s $two; verdict $? "two heads give the same alignments: $two"
done
# Catches a head that is not the one that aligns best: here each word comes from the word in its place.
for head in 1.1 1.2; do
    run translate --model int8 --alignments --alignment-head $head some
    exits 0; mv out by.$head
done
right() { sed 's/.* ||| //' "$1" | tr ' ' '\n' | awk -F- '$1 == $2 { n++ } END { print n + 0 }'; }
run translate --model int8 --alignments some
exits 0; mv out by.default
best=$(right by.default)
for head in 1.1 1.2 2.1 2.2; do
    [ "$((97 * $(right by.$head)))" -le "$((100 * best))" ]
    verdict $? "head $head has $(right by.$head) words right, the default $best"
done
mv int8/sample.tsv kept
run translate --model int8 --alignments some # of two layers the last
exits 0; same out by.2
printf 'no tab\n' >int8/sample.tsv
run translate --model int8 --alignments some
exits 1; mentions "no usable sentence pair in 'int8/sample.tsv'"
mv kept int8/sample.tsv
run translate --model int8 --alignments --n-best 2
exits 0; [ "$(grep -c '^0 .*||| .*||| .*||| ' out)" = 1 ]
verdict $? 'not the best alone is aligned'
run translate --model int8 --alignments --json
exits 0; says '"alignment":"'
run translate --model m --alignments --alignment-head 3
exits 1; mentions 'there is no layer 3: the decoder has 2'
run translate --model m --alignments --alignment-head 1.9
exits 1; mentions 'layer 1, head 9'
run translate --model m --alignment-head x
exits 2; mentions "option '--alignment-head' is 'x'"

# Catches a shortlist that is not used, not found, or changes what is clear.
run translate --model int8 --shortlist source
exits 1; mentions 'shortlist.safetensors'; quiet_out
run shortlist --model int8 --tsv pairs.tsv --translations 3 --frequent 2
exits 0; quiet_out; quiet_err
run translate --model int8 --shortlist --threads 1 source
exits 0; same out target
run shortlist --model m --tsv pairs.tsv --translations 3 --frequent 2
exits 0
run convert m with-list
exits 0; same with-list/shortlist.safetensors m/shortlist.safetensors
run shortlist --model int8
exits 2; mentions 'there is no text'
run shortlist --model int8 --source source
exits 2; mentions "1 '--source' and 0 '--target'"

# Catches a directory that is overwritten, half written, or a wrong kind that passes.
run convert m int8
exits 1; complains "heed: 'int8' holds a model already: choose another name"
run convert m other --to firefox
exits 1; mentions 'is no SentencePiece model'; [ ! -e other ]; verdict $? 'something was written'
run convert m other --to opennmt
exits 2; mentions 'expected heed, marian, firefox or hugging-face'
run convert m other --quantize int4
exits 2; [ ! -e other ]; verdict $? 'something was written'
run convert nowhere other
exits 1; mentions "cannot open the model 'nowhere'"; [ ! -e other ]; verdict $? 'something was written'
run convert m
exits 2
run convert int8 again
exits 1; mentions "'int8' is converted already"; [ ! -e again ]; verdict $? 'something was written'
# Catches a file of another layout that is read as if it were of this one.
cp -r int8 older && LC_ALL=C sed -i 's/panels-16x16/panels-16x99/' older/model.safetensors
run translate --model older source
exits 1; mentions "laid out as 'panels-16x99' of '8' bits, expected 'panels-16x16' of 8: convert the model"
cp -r int8 broken && truncate -s 5000 broken/model.safetensors
run translate --model broken source
exits 1; mentions "'broken/model.safetensors'"; quiet_out

finish
