#!/bin/sh
# cli_evaluate.sh: `heed evaluate` from outside, on files and on a model that `heed train` makes in
# a second.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"
fixture=$tree/tests/metric

# refuses CODE LINE ARGUMENT...
refuses() {
    code=$1 line=$2
    shift 2
    run evaluate "$@"
    exits "$code"; complains "$line"; quiet_out
}

v=heed-$("$heed" --version | sed -n 's/^heed //p')
bleu="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:$v"
chrf="nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:$v"
chrf2="nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:$v"
ter="nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:$v"
printf '%s\n' 'the cat sat on the mat.' 'it was a small, red cat and co-operative' >ref
printf '%s\n' 'the cat sat on a mat.' 'It was a small red cat and co-operative' >hyp

# Catches a command without help, help on stderr, or help wider than a terminal.
run evaluate --help
exits 0; quiet_err; grep -q '^usage: heed evaluate \[options\]' out; verdict $? 'no usage line'
[ -z "$(awk 'length($0) > 80' out)" ]; verdict $? 'a line is longer than 80 columns'

# Catches lines that people and scripts read and that change unseen, and options that do nothing.
run evaluate --reference ref hyp
exits 0; quiet_err
prints "BLEU 46.42  86.7/69.2/45.5/22.2  BP 0.936 (15/16)  $bleu" "chrF2 79.02  $chrf" \
    "TER 14.29  $ter"
cp out whole
run evaluate --reference ref --metric bleu --tokenize intl --lowercase hyp
exits 0
prints "BLEU 63.87  94.1/80.0/61.5/45.5  BP 0.943 (17/18)  nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|version:$v"
run evaluate --reference ref --metric bleu --tokenized --compound-split hyp
exits 0
prints "BLEU 56.85  81.2/64.3/50.0/40.0  BP 1.000 (16/16)  nrefs:1|case:mixed|eff:no|tok:multi-bleu|compounds:split|smooth:none|version:$v"
run evaluate --reference ref --metric ter,chrf++ --ter-normalized --ter-case-sensitive hyp
exits 0
prints "TER 18.75  nrefs:1|case:mixed|tok:tercom|norm:yes|punct:yes|asian:no|version:$v" \
    "chrF2++ 77.70  $chrf2"
run evaluate --reference ref --metric ter --ter-no-punct --ter-asian-support hyp
exits 0
prints "TER 7.14  nrefs:1|case:lc|tok:tercom|norm:no|punct:no|asian:yes|version:$v"

# Catches translations from standard input that are not read, CRLF and a missing last line end.
printf '%s\r\n%s' 'the cat sat on a mat.' 'It was a small red cat and co-operative' >in
run evaluate --reference ref
exits 0; cmp -s out whole; verdict $? 'standard input gives other scores'
run evaluate --reference ref -
exits 0; cmp -s out whole; verdict $? "'-' gives other scores"
: >in

# Catches groups of lengths that lose or double a line, columns under the wrong file, a picture that
# is not drawn.
printf '%s\n' 'one two' 'one two three' 'one two three four five' >src
printf '%s\n' 'a b c d e' 'a b c d e f' 'g h i j k l m n' >long.ref
printf '%s\n' 'a b c d x' 'a b c d e f' 'x y z' >worse
run evaluate --reference long.ref --source src --by-length 2,4 --metric chrf,ter long.ref worse \
    --output groups.svg
exits 0; quiet_err
prints 'chrF2       lines  long.ref   worse' '1-2             1    100.00   54.33' \
    '3-4             1    100.00  100.00' '5-              1    100.00    0.00' \
    'TER         lines  long.ref   worse' '1-2             1      0.00   20.00' \
    '3-4             1      0.00    0.00' '5-              1      0.00  100.00'
grep -q '<svg ' groups.svg && grep -q 'worse' groups.svg; verdict $? 'no picture of both files'
run evaluate --reference long.ref --source src --by-length 2,4 --metric ter --json worse
exits 0
says '^{"from":3,"to":4,"lines":1,"mean_words":3,"systems":\[{"name":"worse","ter":0}\]}$'
run evaluate --reference long.ref --source src --by-length 9 --metric ter worse
exits 0; prints 'TER         lines   worse' '1-9             3   47.37' '10-             0       -'
refuses 2 "heed: option '--source' is missing, expected with '--by-length'" \
    --reference long.ref --by-length 9 worse
refuses 2 "heed: unexpected argument 'worse': several files are compared with '--by-length' or, two, with '--compare'" \
    --reference long.ref long.ref worse
refuses 2 "heed: option '--by-length' is '4,2', expected up to 30 rising numbers of words with commas between, as in 10,15,20" \
    --reference long.ref --source src --by-length 4,2 worse
refuses 2 "heed: option '--output' draws what '--by-length' computes: expected both" \
    --reference long.ref --output x.svg worse
refuses 2 "heed: option '--output' must end in .svg" \
    --reference long.ref --source src --by-length 2 --output x.png worse
refuses 2 "heed: options '--by-length' and '--compare' exclude each other" \
    --reference long.ref --source src --by-length 2 --compare worse worse

# Catches JSON that machines cannot read, or fields that are missing.
run evaluate --reference ref --json hyp
exits 0; quiet_err
prints "{\"bleu\":{\"score\":46.41689104,\"signature\":\"$bleu\",\"precisions\":[86.66666667,69.23076923,45.45454545,22.22222222],\"brevity_penalty\":0.935506985,\"hypothesis_length\":15,\"reference_length\":16},\"chrf\":{\"score\":79.01803076,\"signature\":\"$chrf\"},\"ter\":{\"score\":14.28571429,\"signature\":\"$ter\"}}"

# Catches sentences out of order, scored as a corpus, or left out.
run evaluate --reference ref --sentence hyp
exits 0; quiet_err; prints '48.8923	65.8003	16.6667' '44.1248	85.4438	12.5000'
run evaluate --reference ref --sentence --metric ter --json hyp
exits 0; prints '{"line":1,"ter":16.66666667}' '{"line":2,"ter":12.5}'

# Catches a difference that is always, or never, one: a system against itself and against a bad one.
run evaluate --reference "$fixture/long.ref" --metric bleu --compare "$fixture/long.hyp" --json \
    "$fixture/long.hyp"
exits 0; quiet_err; grep -q '"p":1}' out; verdict $? 'p is not 1'
awk 'BEGIN { srand(3); for (i = 0; i < 100; i++) { s = ""
    for (k = 0; k < 9; k++) s = s " " int(rand() * 300)
    print s } }' >text
sed 's/7/x/' text >worse
run evaluate --reference text --metric bleu,chrf,ter --compare worse --resamples 200 --seed 3 text
exits 0; quiet_err; cp out first
[ "$(grep -c ' against .*, p = 0.00' out)" = 3 ]; verdict $? 'p is not small three times'
grep -q '^TER 0.00 (0.00 ± 0.00) against [0-9.]* ([0-9.]* ± [0-9.]*): -[0-9.]*, p' out
verdict $? 'no comparison of TER'
run evaluate --reference text --metric bleu,chrf,ter --compare worse --resamples 200 --seed 3 text
exits 0; cmp -s out first; verdict $? 'the same seed draws other test sets'
run evaluate --reference text --metric bleu,chrf,ter --compare worse --resamples 200 --seed 4 text
exits 0; ! cmp -s out first; verdict $? 'another seed draws the same test sets'

# Catches mistakes in the command line that pass, exit other than 2, or dirty stdout.
refuses 2 "heed: option '--reference' is missing, expected a file" hyp
refuses 2 "heed: unknown metric 'blue'; did you mean 'bleu'?" --reference ref --metric blue hyp
complains "try 'heed evaluate --help'"
refuses 2 "heed: metric 'ter' is there twice" --reference ref --metric ter,bleu,ter hyp
refuses 2 "heed: unknown metric '', expected bleu, chrf, chrf++ or ter" --reference ref --metric bleu, hyp
refuses 2 "heed: option '--source' is missing, expected with '--model'" --reference ref --model m
refuses 2 "heed: option '--source' is for '--model', which translates it, or for '--by-length'" \
    --reference ref --source s
refuses 2 "heed: unexpected argument 'hyp': the translations come from '--model'" \
    --reference ref --model m --source s hyp
refuses 2 "heed: option '--n-best' is 2, expected 1: only the best translation is scored" \
    --reference ref --n-best 2 hyp
refuses 2 "heed: option '--beam' is for '--model'" --reference ref --beam 4 hyp
refuses 2 "heed: option '--ban' is for '--model'" --reference ref --ban x hyp
refuses 2 "heed: option '--threads' is for '--model'" --reference ref --threads 1 hyp
refuses 2 "heed: option '--resamples' is for '--compare'" --reference ref --resamples 1000 hyp
refuses 2 "heed: option '--seed' is for '--compare'" --reference ref --seed 2 hyp
refuses 2 'heed: two files are standard input, expected one at most' --reference -
refuses 2 "heed: options '--sentence' and '--compare' exclude each other" \
    --reference ref --sentence --compare hyp hyp
refuses 2 "heed: options '--tokenized' and '--tokenize' exclude each other" \
    --reference ref --tokenized --tokenize zh hyp

# Catches files that do not fit together and are scored all the same.
head -n 1 hyp >short
refuses 1 "heed: 'short' has 1 lines, expected 2 as in 'ref'" --reference ref short
refuses 1 "heed: 'short' has 1 lines, expected 2 as in 'ref'" --reference ref --compare short hyp
refuses 1 "heed: cannot read 'missing': No such file or directory" --reference ref missing
refuses 1 "heed: cannot read 'missing': No such file or directory" --reference missing hyp
refuses 1 "heed: 'in' is empty, expected lines of text" --reference in in
refuses 1 "heed: standard input has 0 lines, expected 2 as in 'ref': name a file of translations, or let '--model' make them" --reference ref
refuses 1 "heed: 'ref' has 2 lines, expected 1 as in 'short'" --reference short --model m --source ref

# Catches bytes that are not UTF-8 and are scored in silence.
printf 'the cat sat on a m\377t.\nIt was a small red cat\n' >broken
run evaluate --reference ref --metric bleu broken
exits 0
complains "heed: 'broken': lines that are not UTF-8: 1, the first is line 1; U+FFFD takes the place of each wrong byte"

# Catches a file that is no text and is scored all the same.
printf 'the cat\nIt was a sm\0ll red cat\n' >binary
refuses 1 "heed: 'binary' line 2: there is a NUL, expected text" --reference ref binary
refuses 1 "heed: 'binary' line 2: there is a NUL, expected text" --reference binary ref

# Catches tokenised text that is scored as if it were not, in silence.
yes 'It is so .' | head -n 120 >spaced
run evaluate --reference spaced --metric bleu spaced
exits 0
complains "heed: 120 lines end in ' .': if the text is tokenised, --tokenized is meant for it"
run evaluate --reference spaced --metric bleu --tokenized spaced
exits 0; quiet_err

# Catches scores of a model that are not those of its translations.
awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) { s = ""; n = 4 + int(rand() * 5)
    for (k = 0; k < n; k++) s = s (k ? " " : "") sprintf("%c", 97 + int(rand() * 6))
    print s "\t" s } }' >pairs.tsv
cut -f 1 pairs.tsv >source
cut -f 2 pairs.tsv >target
run train --model m --tsv pairs.tsv --tokens whitespace --encoder-layers 1 --decoder-layers 1 \
    --d 16 --ff 32 --heads 2 --dropout 0 --longest 16 --batch-tokens 400 --max-updates 60 \
    --schedule linear --rate 0.01 --warmup 10 --threads 1
exits 0
run translate --model m --beam 2 --threads 1 source
exits 0; cp out translated
run evaluate --reference target --json translated
exits 0; cp out from_file
run evaluate --reference target --model m --source source --beam 2 --threads 1 --json
exits 0; cmp -s out from_file; verdict $? 'other scores than its translations have'
grep -q '^translated 300 of 300 lines, [0-9.]* s$' err; verdict $? 'no word on the work done'
[ "$(wc -l <err)" = 1 ]; verdict $? 'more than one line on stderr'
# Catches a wrong line that is called by another's number.
{ yes 'a b' | head -n 1049; echo 'a a a a a a a a a a a a a a a a'; echo 'a b'; } >far
run score --model m --source far --target far
exits 1; complains 'heed: cannot score line 1050: the source has 16 tokens, expected at most 15 as the model takes: cut the pair, or leave it out'
[ "$(wc -l <out)" = 1049 ]; verdict $? 'not the scores of the lines before'
refuses 1 "heed: cannot open the model 'nowhere': No such file or directory" \
    --reference ref --model nowhere --source hyp

# Catches references that are mixed up, or of which the last one counts alone.
printf 'a b c d\nx y z\n' >one.ref; printf 'a b q d\nx y z w\n' >other.ref; printf 'a b q d\nx y z\n' >both.hyp
run evaluate --reference one.ref --reference other.ref both.hyp --tokenize none
exits 0; says '^BLEU 100.00 .*(7/7)  nrefs:2|'; says '^chrF2 100.00  nrefs:2|'; says '^TER 0.00  nrefs:2|'
run evaluate --reference other.ref --reference one.ref both.hyp --metric ter --sentence
exits 0; prints 0.0000 0.0000
run evaluate --reference one.ref --reference other.ref --source one.ref --by-length 3 --metric ter both.hyp
exits 0; says '0.00'
head -1 one.ref >short.ref
run evaluate --reference one.ref --reference short.ref both.hyp
exits 1; mentions "'short.ref' has 1 lines, expected 2 as in 'one.ref'"
# shellcheck disable=SC2046
run evaluate $(printf -- '--reference one.ref %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17) both.hyp
exits 2; complains "heed: option '--reference' is there 17 times, expected at most 16"

finish
