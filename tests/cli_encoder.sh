#!/bin/sh
# cli_encoder.sh: encoders from outside: train, classify, tag, embed, fill, evaluate; what they read, print and
# refuse.  Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

# Which of red and blue comes first; a colour is a span, two side by side are two.
awk 'BEGIN {
    srand(7)
    split("one two three four up down left right", w, " ")
    for (i = 0; i < 700; i++) {
        n = 3 + int(rand() * 4); a = int(rand() * n); b = (a + 1 + int(rand() * (n - 1))) % n
        line = ""
        for (k = 0; k < n; k++) {
            t = k == a ? "red" : k == b ? "blue" : w[1 + int(rand() * 8)]
            line = line (k ? " " : "") t
            print t "\tX\t" (k == a || k == b ? "B-colour" : "O") >"tags.conll"
        }
        print "" >"tags.conll"
        print line >"text"
        print (a < b ? "before" : "behind") "\t" line >"labels.tsv"
        print line "\t" (b < a ? "blue " : "red ") line >"pairs.tsv"
    }
}'
gzip -k labels.tsv
small='--arch encoder --encoder-layers 1 --d 32 --ff 64 --heads 2 --vocab-size 100 --batch-tokens 256 --dropout 0
    --word-dropout 0 --label-smoothing 0 --rate 0.005 --warmup 10 --threads 1 --average 0'

# Catches a classifier that is not one command away, and files that are not read as the page says.
run train --model c $small --task classify --tsv labels.tsv.gz --max-updates 250
exits 0; says 'best on validation: accuracy'
run evaluate --model c --tsv labels.tsv --output confusion.svg
exits 0; says '^accuracy \(9[0-9]\|100\)'; says '^behind '
grep -q '<svg' confusion.svg; verdict $? 'there is no picture'
run evaluate --model c --tsv labels.tsv --json
exits 0; says '^{"n": 700, "accuracy": .*"confusion": \[\[.*\]\]}$'
printf 'red up blue\nblue red\n\n' >in
run classify --model c
exits 0; says '^before	0\.[0-9]*$'; [ "$(wc -l <out)" = 3 ]; verdict $? 'not a line out for each line in'
cp out alone
run classify --model c in
exits 0; same out alone
run classify --model c --json
says '^{"text": "red up blue", "label": "before", "probability": .*"probabilities": {"before": .*, "behind": .*}}$'
run tag --model c
exits 1; complains "heed: 'c': the model was trained with --task classify, this needs --task tag"
printf 'fine\n\377\n' >in
run classify --model c
exits 1; complains 'heed: standard input line 2: byte 1 is not UTF-8'
printf 'before\tred\nnever\tred\n' >odd.tsv
run evaluate --model c --tsv odd.tsv
exits 1; mentions "'odd.tsv' line 2: label 'never' was never seen in training, expected one of before, behind"
echo before >odd.tsv
run evaluate --model c --tsv odd.tsv
exits 1; mentions "'odd.tsv' line 1: there is no tab in it, expected label TAB text"
run convert c c8 --quantize int8
exits 0
run evaluate --model c8 --tsv labels.tsv
exits 0; says '^accuracy \(9[0-9]\|100\)'

# Catches tags at other words than theirs, columns that are lost, F1 of tags instead of spans.
run train --model t $small --task tag --conll tags.conll --max-updates 150
exits 0; says 'best on validation: F1'
run evaluate --model t --conll tags.conll
exits 0; says '^F1 of spans 9[0-9]\|^F1 of spans 100'; says '^colour '
echo 'one red blue' >in
run tag --model t
exits 0; prints 'O B-colour B-colour'
run tag --model t --json
says '^{"words": \["one", "red", "blue"\], "tags": \["O", "B-colour", "B-colour"\], "probabilities": \['
printf 'one X\nred Y\n\nblue Z\n' >in
run tag --model t --conll
exits 0; prints 'one X O' 'red Y B-colour' '' 'blue Z B-colour'
printf '# newpar\n# text = red\n1-2\tred\t_\t_\t_\t_\t_\t_\t_\t_\n1\tred\t_\t_\t_\t_\t_\t_\t_\t_\n' >in
run tag --model t --conll
says '^# newpar$'; says '^1-2	red	_	_	_	_	_	_	_	_	_$'; says '^1	red	_	_	_	_	_	_	_	_	B-colour$'
printf 'a b\nc\n' >odd.conll
run evaluate --model t --conll odd.conll
exits 1; mentions "'odd.conll' line 2: it has 1 column, expected 2 as in the lines before"

# Catches words that are not learned from, and a head that is not the one asked for.
run train --model m $small --task mlm --text text --max-updates 60 --longest 16
exits 0; says 'best on validation: loss'
: >in
run fill --model m --top 2 'red [MASK] blue'
exits 0; [ "$(wc -l <out)" = 2 ]; verdict $? 'not two answers'; says '^0\.[0-9]*	[^	]*	red .* blue$'
run fill --model m 'red blue'
exits 1; mentions 'there is no [MASK] in the text'
run fill --model c 'red [MASK]'
exits 1; mentions 'this needs --task mlm'
run train --model mc $small --task classify --tsv labels.tsv --from m --max-updates 20
exits 2; mentions '--vocab-size is for a vocabulary that is learned: not with --vocab or --from'
run train --model mc --arch encoder --task classify --tsv labels.tsv --from m --max-updates 20 --threads 1
exits 0

# Catches vectors in another order or form than lines.
run train --model e $small --task embed --tsv pairs.tsv --max-updates 60
exits 0; says 'best on validation: accuracy'
printf 'red up\nblue two\n' >in
run embed --model e
exits 0; [ "$(awk '{ print NF }' out | sort -u)" = 32 ]; verdict $? 'not 32 numbers a line'
run embed --model e --output v.npy
exits 0; quiet_out
[ "$(wc -c <v.npy)" = $((128 + 2 * 32 * 4)) ]; verdict $? 'the file has another size'
head -c 128 v.npy | tail -c +11 >out; says "^{'descr': '<f4', 'fortran_order': False, 'shape': (2, 32), }"
run embed --model e --similar text --top 3
exits 0; [ "$(grep -c '	' out)" = 6 ]; verdict $? 'not three lines for each'
run evaluate --model e --tsv pairs.tsv
exits 0; says '^recall at 1: '
run evaluate --model e --tsv labels.tsv --output x.svg
exits 1; mentions 'draws labels; this model makes vectors'

# Catches options that are ignored in silence, and kinds of models that are taken for another.
run evaluate --model c --tsv labels.tsv --metric bleu
exits 2; mentions "option '--metric' is for translations, not for '--tsv'"
run evaluate --model c --tsv labels.tsv --conll tags.conll
exits 2; mentions "exclude each other"
run train --model x --arch encoder --task tag --tsv labels.tsv
exits 2; mentions '--task tag reads --conll and --valid-conll, not --tsv'
run train --model x --arch encoder --task classify --tsv labels.tsv --mask-share 0.2
exits 2; mentions '--mask-share needs --task mlm'
run classify --model absent
exits 1; mentions "absent"
finish
