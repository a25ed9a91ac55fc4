#!/bin/sh
# cli_vocab.sh: `heed vocab` from outside: stdout, stderr and exit code.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

# run INPUT ARGUMENT...: leaves out, err and the exit code in rc.
run() {
    input=$1
    shift
    what="heed vocab $*"
    "$heed" vocab "$@" >out 2>err <"$input"
    rc=$?
}
says() { [ "$(cat out)" = "$1" ]; verdict $? "stdout is not '$1'"; }
same() { cmp -s out "$1"; verdict $? "stdout is not '$1'"; }

i=0
while [ $i -lt 200 ]; do
    echo "the man number $((i * 7 % 31)) walks along the street with dog $((i % 13))"
    echo "der Mann Nummer $((i * 5 % 29)) läuft mit Hund $((i % 11)) die Straße entlang"
    i=$((i + 1))
done >text
gzip -k text
printf 'the man\n\nder Hund läuft\n' >three

# Catches a vocabulary that cannot be learned, used and undone from the command line, in any type.
for type in unigram bpe whitespace characters bytes wordpiece; do
    size=55
    case $type in bytes) size=300 ;; wordpiece) size=120 ;; characters) size=49 ;; esac
    run /dev/null train --output v.$type --type $type --size $size $([ $type = wordpiece ] && echo --cased) text
    exits 0; quiet_out; complains 'read 400 lines, learning'
    [ "$(wc -l <err)" = 1 ]; verdict $? 'more on stderr than that'
    run three encode --vocab v.$type
    exits 0; quiet_err
    cp out pieces
    [ "$(wc -l <pieces)" = 3 ]; verdict $? 'not one line out for each line in'
    run pieces decode --vocab v.$type
    exits 0; quiet_err; same three
    run three encode --vocab v.$type --ids
    exits 0
    cp out ids
    grep -q '[^0-9 ]' ids; [ $? = 1 ]; verdict $? 'something else than numbers'
    run ids decode --vocab v.$type --ids -
    exits 0; quiet_err; same three
done

# Catches another vocabulary from the same lines in a .gz, from standard input, or in two files.
run /dev/null train --output again text.gz --size 55 --type bpe
exits 0; cmp -s again v.bpe; verdict $? 'the .gz gives another vocabulary'
run text train --output again --size 55 --type bpe
exits 0; cmp -s again v.bpe; verdict $? 'standard input gives another vocabulary'
head -n 150 text >one; tail -n +151 text >two
run /dev/null train --output again --size 55 --type bpe one two
exits 0; cmp -s again v.bpe; verdict $? 'two files give another vocabulary'

# Catches text that was cut beforehand and is not cut further, or is another text then.
printf 'walk@@ ing wal@@ k@@ walking\n' >cut
run /dev/null train --output v.cut --type whitespace cut
printf 'walking walk@@ ing\n' >in
run in encode --vocab v.cut --bpe-joiner '@@ ' --sample 1
exits 0; says 'wal@@ k@@ ing wal@@ k@@ ing'
run in encode --vocab v.cut --sample 1
exits 1; complains "heed: '-' line 1: cannot sample: words are not split, expected a joiner of their pieces"

# Catches samples that do not depend on the seed, or on more than the seed.
head -n 20 text >twenty
run twenty encode --vocab v.unigram --sample 0.1 --seed 3
exits 0; cp out first
run twenty encode --vocab v.unigram --sample 0.1 --seed 3
same first
run twenty encode --vocab v.unigram --sample 0.1 --seed 4
cmp -s out first; [ $? = 1 ]; verdict $? 'another seed, the same sample'
run first decode --vocab v.unigram
exits 0; same twenty

# Catches a joiner that stays in the text.
printf 'ab@@ c d@@\n' >joined
run joined train --output w.vocab --type whitespace
run joined decode --vocab w.vocab --bpe-joiner '@@ '
exits 0; says 'abc d'; quiet_err

# Catches lines out of step with the input when one of them is broken, or that passed over in
# silence.
printf 'the man\nbro\377ken\nder Hund\n' >broken
run broken encode --vocab v.whitespace
exits 1; complains "heed: '-' line 2: cannot encode a text: byte 4 of 7 is not UTF-8"
says 'the man

der Hund'
printf "20\n99\n-1\nx\n1x\n999999999999999999999\n55\n20\n" >numbers
run numbers decode --vocab v.unigram --ids
exits 1; complains "heed: '-' line 2: '99' is no id of the vocabulary"
complains 'heed: 6 lines in all could not be used'
[ "$(wc -l <out)" = 8 ]; verdict $? 'not one line out for each line in'
echo 'nonsense-piece' >wrong
run wrong decode --vocab v.unigram
exits 1; complains "heed: '-' line 1: 'nonsense-piece' is no piece of the vocabulary"

# Catches bad input without a clear word, and files half written.
run /dev/null train text
exits 2; complains 'heed: heed vocab train needs --output FILE'
run /dev/null encode text
exits 2; complains 'heed: heed vocab encode needs --vocab FILE'
run /dev/null encod text
exits 2; complains "heed: unknown action 'encod'; did you mean 'encode'?"
run three encode --vocab v.bpe --output o
exits 2; complains "heed: option '--output' is not for 'heed vocab encode'"; [ ! -e o ]; verdict $? 'it is made'
run three decode --vocab v.bpe --sample 0.1
exits 2; complains "heed: option '--sample' is not for 'heed vocab decode'"
run /dev/null train --output v --ids text
exits 2; complains "heed: option '--ids' is not for 'heed vocab train'"
run /dev/null train --output v --type unigram --min-count 2 text
exits 2; complains "heed: option '--min-count' is for '--type whitespace': for subwords there is '--size'"
run /dev/null train --output v --type whitespace --coverage 1 text
exits 2; complains "heed: option '--coverage' is for subwords: for words there is '--min-count'"
run /dev/null train --output v --type bytes --size 268 text
exits 1; mentions 'size is 268, expected at least 269 (13 pieces are special, 256 are bytes)'
run /dev/null train --output v --cased text
exits 2; complains "heed: option '--cased' is for '--type wordpiece'"
run /dev/null train --output v --size 5 text
exits 1; mentions 'size is 5, expected at least 14'
run /dev/null train --output v --size 30 text
exits 1; mentions 'the text has so many different characters that it takes'
run /dev/null train --output v --coverage 0.5 text
exits 2; mentions 'coverage'
run /dev/null train --output v missing
exits 1; complains "heed: cannot read 'missing': No such file or directory"
run /dev/null train --output v
exits 1; complains 'heed: cannot learn a vocabulary: there is no usable line'
run /dev/null train --output no/v --size 55 text
exits 1; mentions "cannot write 'no/v': No such file or directory"
run /dev/null encode --vocab text text
exits 1; mentions "cannot read vocabulary 'text': line 1 has a space in it"
run /dev/null encode --vocab . text
exits 1; complains "heed: cannot read '.': Is a directory"
head -c 500 v.unigram >cut
run /dev/null encode --vocab cut text
exits 1; mentions "cannot read vocabulary 'cut': not a SentencePiece model, or a damaged one"
[ ! -e v ]; verdict $? 'a vocabulary was left behind'
run /dev/null train --output v --size 5000 text
exits 0; mentions 'pieces, so that is the vocabulary instead of 5000'

finish
