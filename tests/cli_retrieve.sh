#!/bin/sh
# cli_retrieve.sh: `heed train --arch retrieve`, `heed retrieve` and `heed inspect --image` from outside: a text finds
# the picture with that colour in that corner; resumed bit for bit; bad input.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"
. "$tree/tests/pictures.inc"

mkdir photos
for shade in 90 120 150; do
    for colour in red green blue; do
        for corner in top-left top-right bottom-left bottom-right; do
            square "photos/$colour-$corner-$shade.ppm" $colour $corner $shade
            printf '%s\tA %s square at the %s\t%s %s\n' "$colour-$corner-$shade.ppm" $colour $corner $corner $colour
        done
    done
done | sort -t- -k4 >all.tsv
small="--side 16 --stages 2 --filters 16 --d 32 --embedding 16 --batch 12 --vocab-min-count 1 --no-mirror --dropout 0
    --rate 0.01 --threads 1"

# Catches a model that finds nothing, pictures out of order, scores that do not fall.
# shellcheck disable=SC2086
run train --arch retrieve --captions all.tsv --images photos --hold-out 6 --model m $small --max-updates 150 \
    --warmup 5 --valid-every 75
exits 0; says "^try: heed retrieve --images DIR 'a text' --model m$"; mentions 'recall@10'
for file in config.json model.safetensors words.vocab training/options.json training/curves.svg; do
    [ -s m/$file ]; verdict $? "there is no m/$file"
done
right=0
for text in 'a red square at the top-left' 'bottom-right blue' 'A green square at the bottom-left'; do
    run retrieve --model m --images photos --best 3 "$text"
    exits 0; quiet_err
    [ "$(wc -l <out)" = 3 ]; verdict $? 'there are not three lines'
    case $text in *red*) wanted=red-top-left ;; *blue*) wanted=blue-bottom-right ;; *) wanted=green-bottom-left ;; esac
    right=$((right + $(grep -c "^photos/$wanted-[0-9]*.ppm	" out)))
done
[ $right -ge 7 ]; verdict $? "$right of the nine first pictures are those of the text"
run retrieve --model m --images photos --best 0 'red top-left'
exits 0
awk -F '\t' '{ rises += NR > 1 && $2 > before; before = $2 } END { exit !(NR == 36 && !rises) }' out
verdict $? 'all pictures, best first'
run retrieve --model m --images photos --json --best 1 'red top-left'
exits 0; says '^{"file": "photos/.*\.ppm", "score": -*[0-9.]*}$'

# Catches a picture of who means whom that is none.
run inspect --model m --image photos/red-top-left-90.ppm --attention 'a red square' --output looks.svg
exits 0; quiet_err
[ "$(grep -o '<image ' looks.svg | wc -l)" -ge 8 ]; verdict $? 'the picture is not there for each word and quarter'
grep -q '>red<' looks.svg; verdict $? 'there is no word'
run inspect --model m --image photos/red-top-left-90.ppm --output looks.svg
exits 1; complains "heed: 'm' compares pictures with texts: give one with '--attention'"

# Catches a resumed training that is another one.
for updates in 12 7; do
    # shellcheck disable=SC2086
    run train --arch retrieve --captions all.tsv --images photos --model r$updates $small --warmup 2 --average 0 \
        --schedule constant --rate-floor 0 --max-updates $updates --valid-every 6 --accumulate 2
    exits 0
done
run train --resume r7 --max-updates 12
exits 0
same r12/model.safetensors r7/model.safetensors

# Catches mistakes that pass, and messages that do not say what is wrong.
run retrieve --model m --images photos 'a purple square'
exits 1; complains "heed: the model does not know the word 'purple'"
run retrieve --model m --images photos ''
exits 1; complains "heed: the text has no words"
run retrieve --model m --images photos
exits 2; complains "heed: missing argument, expected TEXT"
run retrieve --model m red
exits 2; complains "heed: missing option '--images': the folder of the pictures to look among"
mkdir none
run retrieve --model m --images none red
exits 1; complains 'heed: none has no pictures (PNG, JPEG or PPM)'
head -c 300 photos/red-top-left-90.ppm >none/cut.ppm
cp photos/red-top-left-120.ppm none
run retrieve --model m --images none red
exits 1; mentions 'none/cut.ppm'; says '^none/red-top-left-120.ppm	'
run train --arch retrieve --captions all.tsv --images photos --model n --batch 1
exits 2; complains "heed: --batch is 1, expected at least 2: a picture is told from the others of its batch"
run train --arch retrieve --captions all.tsv --images photos --model n --d 33
exits 2; complains "heed: --d is 33, expected an even number"
[ ! -e n ]; verdict $? 'something is left of n'
finish
