#!/bin/sh
# cli_inspect.sh: `heed inspect` from outside, on a model that a few updates have made.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

holds() { grep -q -- "$2" "$1"; verdict $? "'$1' lacks '$2'"; }

i=0
while [ $i -lt 40 ]; do
    echo "the dog sees a green@@ ish apple@@ , $((i % 7))"
    i=$((i + 1))
done >a.en
sed 's/the dog/狗/; s/sees/看见/; s/a green@@ ish apple@@ ,/一个 绿@@ 苹果/' a.en >a.zh
run train --model m --source a.en --target a.zh --valid-source a.en --valid-target a.zh \
    --tokens whitespace --bpe-joiner '@@ ' --encoder-layers 2 --decoder-layers 1 --d 16 --ff 32 \
    --heads 2 --max-updates 20 --seed 1 --threads 1
exits 0

# Catches help that is missing or too wide.
run inspect --help
exits 0; says '^usage: heed inspect '; quiet_err
[ -z "$(awk 'length($0) > 80' out)" ]; verdict $? 'a line is longer than 80 columns'

# Catches facts that are not those of the model.
run inspect --model m
exits 0; quiet_err
says '^m: transformer, 2+1 layers, d 16, ff 32, 2 heads, post-norm$'
says '^vocabulary: whitespace, '
says '^  encoder '; says '^  decoder '; says '^  model.safetensors '; says '^  config.json '
says '^  updates  *20$'
run inspect --model m --json
exits 0; says '"encoder-layers": 2'; says '"updates": 20'

# Catches facts that are lost with a name that is not UTF-8.
odd=$(printf 'm\377')
ln -s m "$odd"
run inspect --model "$odd"
exits 0; says ': transformer, 2+1 layers, d 16'
run inspect --model "$odd" --json
exits 1; quiet_out; mentions 'the name of the model directory is not UTF-8'

# Catches a picture that lacks words, or pieces that were not joined.
run inspect --model m --attention 'the dog sees a green@@ ish apple@@ , 3' --target '狗 看见 苹果' --width 60
exits 0; quiet_err
says '^the dog sees a green@@ ish apple@@ , 3$'; says '^Cross-attention, '
says '^ *看见  '; says '5 greenish  6 apple  7 ,'
run inspect --model m --attention 'the dog sees a green@@ ish apple@@ , 3' --target '狗 看见 苹果' --pieces
exits 0; says '5 green@@  6 ish'
run inspect --model m --attention 'the dog' --colour always
exits 0; says "$(printf '\033')\[38;5;"
run inspect --model m --attention 'the dog' --kind encoder --layer 2 --head 1
exits 0; says '^Encoder self-attention, layer 2, head 1$'

# Catches files that are not what their names say, with every head in them, and leftovers.
run inspect --model m --attention 'the dog sees' --output p.svg
exits 0; holds p.svg '^<svg '; holds p.svg '<title>Encoder self-attention, layer 2, head 2</title>'
run inspect --model m --attention 'the dog sees' --output p.html --json
exits 0; holds p.html '^<!doctype html>'; says '"kind":"cross","layer":1,"head":2'
[ "$(ls p.*)" = 'p.html
p.svg' ]
verdict $? 'a temporary file was left behind'

# Catches mistakes that pass, or that are not explained.
run inspect --model nowhere
exits 1; quiet_out; mentions "cannot open the model 'nowhere'"
run inspect --model m --output p.svg
exits 2; quiet_out; mentions "need '--attention'"
run inspect --model m --attention 'the dog' --output p.png
exits 2; quiet_out; mentions "must end in .svg or .html"
run inspect --model m --attention 'the dog' --layer 1
exits 2; quiet_out; mentions "go together"
run inspect --model m --attention ' '
exits 2; quiet_out; mentions "is empty"
run inspect --model m --attention 'the dog' --layer 2 --head 1
exits 1; quiet_out; mentions "there is no layer 2, head 1: this attention has 1 layers of 2 heads"
run inspect --model missing
exits 1; quiet_out; mentions "'missing"
run inspect --model m --attention 'the dog' --output missing/p.svg
exits 1; quiet_out; mentions "cannot write 'missing/p.svg': No such file or directory"
run inspect --model m --attention "$(printf 'the \377 dog')"
exits 1; quiet_out; mentions 'UTF-8'

finish
