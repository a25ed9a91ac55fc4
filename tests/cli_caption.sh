#!/bin/sh
# cli_caption.sh: `heed train --arch caption`, `heed caption` and `heed inspect --image` from outside: colours in
# the corners of small pictures, learned; resumed bit for bit; bad input.
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
small="--side 16 --stages 2 --filters 16 --d 32 --embedding 16 --batch 8 --vocab-min-count 1 --no-mirror --dropout 0
    --doubly 0 --rate 0.01 --threads 1"

# Catches a captioner that does not learn, and files that are missing from its directory.
# shellcheck disable=SC2086
run train --arch caption --captions all.tsv --images photos --hold-out 6 --model m $small --max-updates 150 \
    --warmup 5 --valid-every 75
exits 0; says '^try: heed caption --model m$'
for file in config.json model.safetensors words.vocab training/options.json training/curves.svg; do
    [ -s m/$file ]; verdict $? "there is no m/$file"
done
run caption --model m --captions all.tsv --images photos
exits 0; quiet_err
[ "$(wc -l <out)" = 36 ]; verdict $? 'there is not a line for each picture'
cut -f1 all.tsv | paste - out | awk -F '\t' '{ split($1, n, "-"); right += index($2, n[1]) && index($2, n[2] "-" n[3]) }
    END { exit !(right >= 32) }'
verdict $? 'most colours and corners should be right'
run caption --model m --beam 1 photos/red-top-left-90.ppm nowhere.png photos/blue-top-right-90.ppm
exits 1; complains "heed: cannot read 'nowhere.png': No such file or directory"
[ "$(wc -l <out)" = 3 ] && [ -z "$(sed -n 2p out)" ]; verdict $? 'a picture that is missing should leave an empty line'
run caption --model m --json photos/red-top-left-90.ppm
exits 0; says '^{"file": "photos/red-top-left-90.ppm", "caption": ".*", "log_p": -[0-9.]*, "score": -[0-9.]*}$'

# Catches a picture of where words look that is none.
run inspect --model m --image photos/red-top-left-90.ppm --output looks.svg
exits 0; quiet_err
grep -q '<image ' looks.svg; verdict $? 'looks.svg has no picture'
run inspect --model m --image photos/red-top-left-90.ppm --attention 'A blue square' --output looks.svg
exits 0; prints 'a blue square'
run inspect --model m --image photos/red-top-left-90.ppm --attention 'a purple square' --output looks.svg
exits 1; complains "heed: the model does not know the word 'purple'"
run inspect --model m --image photos/red-top-left-90.ppm
exits 2; complains "heed: option '--image' needs '--output' and a file that ends in .svg"

# Catches a resumed training that is another one.
for look in soft hard; do
    # shellcheck disable=SC2086
    run train --arch caption --captions all.tsv --images photos --model whole-$look $small --look $look --warmup 2 \
        --schedule constant --rate-floor 0 --max-updates 12 --valid-every 6
    exits 0
    # shellcheck disable=SC2086
    run train --arch caption --captions all.tsv --images photos --model half-$look $small --look $look --warmup 2 \
        --schedule constant --rate-floor 0 --max-updates 7 --valid-every 6
    exits 0
    run train --resume half-$look --max-updates 12
    exits 0
    same whole-$look/model.safetensors half-$look/model.safetensors
done

# Catches mistakes that pass, and messages that do not say what is wrong.
nothing_left() { [ ! -e n ]; verdict $? "something is left of n"; }
run train --arch caption --model n --images photos
exits 2; complains "heed: missing option '--captions': lines FILE TAB CAPTION"; nothing_left
printf 'red-top-left-90.ppm\tone\nnobody.ppm\ttwo\n' >missing.tsv
run train --arch caption --model n --captions missing.tsv --images photos
exits 1; mentions "nobody.ppm"; nothing_left
head -c 300 photos/red-top-left-90.ppm >photos/cut.ppm
printf 'red-top-left-90.ppm\tone\ncut.ppm\ttwo\n' >cut.tsv
run train --arch caption --model n --captions cut.tsv --images photos --side 16 --stages 1 --hold-out 1 --vocab-min-count 1 --max-updates 2 \
    --warmup 1 --valid-every 1
exits 1; mentions "cut.ppm"
rm -rf n
run train --arch caption --model n --captions all.tsv --images photos --hold-out 36
exits 2; complains "heed: of 36 pictures, 36 cannot be held out to validate with"; nothing_left
run train --arch caption --model n --captions all.tsv --images photos --side 16 --stages 4
exits 2; complains "heed: --stages 4 leaves nothing of 16 pixels to look at"; nothing_left
run train --arch caption --model n --captions all.tsv --images photos --channels 2
exits 2; complains "heed: --channels is 2, expected 1 or 3"; nothing_left
run caption --model m
exits 2; complains "heed: there is no picture to say something about"
run caption photos/red-top-left-90.ppm
exits 2; complains "heed: missing option '--model': a captioner's directory"
run caption --model photos photos/red-top-left-90.ppm
exits 1; mentions "photos/config.json"
printf '{"arch": "transformer"}' >photos/config.json
run caption --model photos photos/red-top-left-90.ppm
exits 1; mentions "'arch'"
finish
