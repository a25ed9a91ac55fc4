#!/bin/sh
# cli_vit.sh: `heed train --arch vit`, `heed classify` and `heed inspect --image` from outside: bars, dashes and
# crosses in small pictures, learned; resumed bit for bit; bad input.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"
. "$tree/tests/pictures.inc"

# A picture of SIDE x SIDE pixels with a bar, a dash or both of them at AT: shape FILE KIND AT SHADE [SIDE]
shape() {
    awk -v kind="$2" -v at="$3" -v shade="$4" -v side="${5:-16}" 'BEGIN {
        print "P3 " side, side " 255"
        for (y = 0; y < side; y++) for (x = 0; x < side; x++) {
            on = (kind != "dash" && (x == at || x == at + 1)) || (kind != "bar" && (y == at || y == at + 1))
            print on ? "250 240 30" : shade " " shade " " shade + 20
        }
    }' | to_binary >"$1"
}
mkdir shapes
for kind in bar cross dash; do
    mkdir shapes/$kind
    for at in 2 3 4 5 6 7 8 9 10 11 12; do
        shape shapes/$kind/$at.ppm $kind $at $((40 + at * 7))
    done
done
small="--patch 4 --layers 2 --d 32 --ff 64 --heads 2 --batch 16 --threads 1"

# Catches a classifier that does not learn, files that are missing from its directory, pictures held out wrongly.
# shellcheck disable=SC2086
run train --arch vit --images shapes --model m $small --dropout 0 --max-updates 160 --warmup 10 --valid-every 80
exits 0; says '^try: heed classify --model m$'
mentions '30 pictures of 3 classes, 3 held out: 16 x 16 pixels of 3 channels, 16 patches'
for file in config.json labels.txt model.safetensors positions.svg training/options.json training/curves.svg; do
    [ -s m/$file ]; verdict $? "there is no m/$file"
done
what='labels.txt'; printf 'bar\ncross\ndash\n' >wanted; same wanted m/labels.txt

# Catches labels of other pictures, folders that are not in order, a picture that is missing and moves the others.
mkdir mixed
for kind in bar cross dash; do for at in 3 6 9; do cp shapes/$kind/$at.ppm mixed/$kind-$at.ppm; done; done
run classify --model m mixed
exits 0; quiet_err
cut -f3 out >order; ls mixed/* >wanted; same wanted order
awk -F '\t' '{ split($3, n, "[/-]"); right += n[2] == $1; odd += $2 < 0.3 || $2 > 1 }
    END { exit !(NR == 9 && right >= 8 && !odd) }' out
verdict $? 'most labels should be right'
run classify --model m mixed/bar-3.ppm nowhere.png mixed/dash-9.ppm
exits 1; complains "heed: cannot read 'nowhere.png': No such file or directory"
[ "$(wc -l <out)" = 3 ] && [ -z "$(sed -n 2p out)" ]; verdict $? 'a picture that is missing should leave an empty line'
run classify --model m --json mixed/bar-3.ppm
exits 0
says '^{"file": "mixed/bar-3.ppm", "label": "bar", "probability": [0-9.]*, "probabilities": {"bar": .*, "cross": .*, "dash": .*}}$'
shape large.ppm dash 20 90 48
run classify --model m large.ppm
exits 0; quiet_err
mkdir nothing
run classify --model m nothing
exits 1; complains 'heed: nothing has no pictures (PNG, JPEG or PPM)'
run classify --model m
exits 2; complains 'heed: there is no picture to classify'

# Catches figures that are not those of the labels above; classes that the model does not have.
run evaluate --model m --images shapes --json
exits 0; says '^{"n": 33, "accuracy": 0.9[0-9]*\|^{"n": 33, "accuracy": 1,'
run evaluate --model m --images shapes --output confusion.svg
exits 0; says '^accuracy .* of 33)'; says '^cross '
grep -q '<svg' confusion.svg; verdict $? 'there is no picture'
mkdir -p others/bar others/star
for kind in bar star; do cp shapes/bar/3.ppm shapes/bar/4.ppm others/$kind; done
run evaluate --model m --images others
exits 1; complains "heed: 'star' is no class that the model has"

# Catches a picture of where it looks that is none.
run inspect --model m --image mixed/bar-3.ppm --output looks.svg
exits 0; quiet_err; says '^bar	0'
[ "$(grep -o '<image ' looks.svg | wc -l)" -ge 2 ]; verdict $? 'looks.svg does not have the picture twice'
run inspect --model m --image mixed/bar-3.ppm --attention 'a bar' --output looks.svg
exits 1; complains "heed: 'm' classifies pictures and reads no text: leave out '--attention'"

# Catches a resumed training that is another one; validation pictures of one's own.
cp -r others/bar others/cross; rm -r others/star
for more in '--accumulate 2' '--valid-images others --mirror --ema 0.9'; do
    rm -rf whole half
    # shellcheck disable=SC2086
    run train --arch vit --images shapes --model whole $small $more --warmup 2 --schedule constant --rate-floor 0 \
        --max-updates 12 --valid-every 6 --average 0
    exits 0
    # shellcheck disable=SC2086
    run train --arch vit --images shapes --model half $small $more --warmup 2 --schedule constant --rate-floor 0 \
        --max-updates 7 --valid-every 6 --average 0
    exits 0
    run train --resume half --max-updates 12
    exits 0
    same whole/model.safetensors half/model.safetensors
done
cp shapes/bar/2.ppm shapes/bar/1.ppm
run train --resume half --max-updates 14
exits 1; mentions 'its data has changed: training pictures 34, expected 33'
rm shapes/bar/1.ppm

# Catches sizes that are not chosen from the pictures, and a number of updates that is not.
run train --arch vit --images shapes --model n --max-minutes 1 --dry-run --threads 1
exits 0; mentions '4 layers, d 64, ff 128, 4 heads'; says '^pictures  *30 to train, 3 to validate$'; says '^size  *16 x 16 pixels, 3 channels$'
mentions 'mirrored'
run train --arch vit --images shapes --side 32 --channels 1 --max-updates 100 --print-config
exits 0; says '"side": 32'; says '"patch": 4'; says '"batch": 16'; says '"mirror": false'

# Catches mistakes that pass, and messages that do not say what is wrong.
nothing_left() { [ ! -e n ]; verdict $? "something is left of n"; }
train() { run train --arch vit --model n --max-updates 2 --warmup 1 --valid-every 1 --threads 1 "$@"; }
train
exits 2; nothing_left
complains "heed: missing option '--images': a folder with a folder for each class, or '--idx' and two files, IMAGES LABELS"
train --images shapes --idx a b
exits 2; complains "heed: options '--images' and '--idx' exclude each other"; nothing_left
train --idx a
exits 2; complains "heed: option '--idx' needs 2 values: IMAGES LABELS"; nothing_left
train --images shapes --patch 5 --side 16
exits 2; complains "heed: --patch is 5, expected a divisor of the pictures' 16 pixels"; nothing_left
train --images shapes --heads 5
exits 2; complains "heed: --heads is 5, expected a divisor of --d, 96"; nothing_left
train --images shapes --valid-images others --hold-out 0.2
exits 2; complains "heed: --hold-out is for training without --valid-images or --valid-idx"; nothing_left
train --images nothing
exits 1; mentions "nothing has no folders, expected one for each class"; nothing_left
mkdir nothing/empty
train --images nothing
exits 1; nothing_left
mentions "nothing/empty has no pictures, expected at least 2 (PNG, JPEG or PPM): one to train on, one to validate on"
cp shapes/bar/2.ppm nothing/empty
train --images nothing
exits 1; mentions "nothing/empty has 1 picture, expected at least 2"; nothing_left
cp shapes/bar/3.ppm nothing/empty
train --images nothing
exits 1; mentions "nothing has 1 class, expected at least 2"; nothing_left
cp -r shapes bad
cp large.ppm bad/dash/99.ppm
train --images bad
exits 1; mentions "bad/dash/99.ppm is 48 x 48 pixels, expected 16 x 16 as the first picture"; nothing_left
head -c 300 shapes/dash/2.ppm >bad/dash/99.ppm
train --images bad
exits 1; mentions "bad/dash/99.ppm"; nothing_left

# IDX files: twelve pictures of 4 x 4 bytes, labels 0 to 2.
header() { printf '\000\000\010\003\000\000\000\014\000\000\000\004\000\000\000\004'; }
bytes() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 33 + i * 7 % 90 }'; }
{ header; bytes 192; } >images
{ printf '\000\000\010\001\000\000\000\014'; printf '\000\001\002\000\001\002\000\001\002\000\001\002'; } >labels
train --idx images labels --patch 2 --d 8 --ff 8 --heads 2 --layers 1
exits 0
what='labels.txt of IDX files'; printf '0\n1\n2\n' >wanted; same wanted n/labels.txt
run evaluate --model n --idx images labels
exits 0; says ' of 12)'
rm -r n
{ header; bytes 100; } >short
train --idx short labels
exits 1; mentions 'short has 100 bytes behind its header, which promises 192'; nothing_left
{ printf 'IDX?'; bytes 200; } >magic
train --idx magic labels
exits 1; mentions 'magic is no IDX file: it begins with 49 44 58 3f, expected 00 00'; nothing_left
{ printf '\000\000\010\001\000\000\000\013'; bytes 11; } >few
train --idx images few
exits 1; mentions 'few has 11 labels for 12 pictures'; nothing_left
{ printf '\000\000\010\001\000\000\000\014'; printf '\000\001\003\000\001\000\000\001\000\000\001\000'; } >single
train --idx images single
exits 1; complains "heed: class '3' has 1 picture, expected at least 2: one to train on, one to validate on"; nothing_left
finish
