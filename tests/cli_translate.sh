#!/bin/sh
# cli_translate.sh: `heed translate` and `heed score` from outside, on a model that `heed train`
# makes in seconds: small letters become capitals.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

capitals() { tr 'a-l' 'A-L'; }

awk 'BEGIN {
    srand(7)
    for (i = 0; i < 3000; i++) {
        n = 1 + int(rand() * 15); s = ""; t = ""
        for (k = 0; k < n; k++) {
            w = int(rand() * 12)
            s = s (k ? " " : "") sprintf("%c", 97 + w); t = t (k ? " " : "") sprintf("%c", 65 + w)
        }
        print s "\t" t
    }
}' >pairs.tsv
run train --model m --tsv pairs.tsv --tokens whitespace --encoder-layers 1 --decoder-layers 1 \
    --d 32 --ff 64 --heads 2 --dropout 0 --longest 16 --batch-tokens 400 --max-updates 800 \
    --schedule linear --rate 0.01 --warmup 50 --threads 1
[ "$rc" = 0 ] || { cat err; echo "0 passed, 1 failed"; exit 1; }

# Catches a command without help, help on stderr, or help wider than a terminal.
for command in translate score; do
    run $command --help
    exits 0; says "^usage: heed $command \[options\]"; says '^  -m, --model DIR '; quiet_err
    [ -z "$(awk 'length($0) > 80' out)" ]; verdict $? 'a line is longer than 80 columns'
done

# Catches a .gz that is taken for text, and one that ends too early taken for whole.
printf 'a b c\nd e\n' >some
gzip -k some
run translate --model m some.gz
exits 0; prints 'A B C' 'D E'
head -c 25 some.gz >short.gz
run translate --model m short.gz
exits 1; complains "heed: cannot read 'short.gz': its gzip is damaged or ends too early"

what='heed translate from a pipe of gzip'
gzip -c some | "$heed" translate --model m >out 2>err
rc=$?
exits 1; mentions 'it is gzip'; quiet_out
printf '\357\273\277{"text": "a b"}\n' >in
run translate --model m --json
exits 0; says '"text":"A B"'
: >in

# Catches a model without placeholders that changes an address and does not say so, or says it for every line, or
# of lines that have nothing of the kind.
printf 'a b\nb 17:30 c\nsee jane@example.org\n' >some
run translate --model m some
exits 0
complains 'heed: lines with addresses, times or the like: 2, the first is line 2; this model may change them: it was not trained with --protect'
[ "$(wc -l <err)" = 1 ]; verdict $? "it is said $(wc -l <err) times"
run translate --model m --no-protect some
exits 0; quiet_err
printf 'a b\n' >some
run translate --model m some
exits 0; quiet_err

# Catches mistakes in the command line that pass, exit other than 2, or dirty stdout.
run translate --model m --to de
exits 2; complains "heed: options '--model' and '--to' exclude each other"
complains "try 'heed translate --help'"; quiet_out
run translate --model m --threads 0
exits 2; complains "heed: option '--threads' is '0', expected a whole number from 1 to 64"
run translate --model m --beam 0
exits 2; complains "heed: option '--beam' is '0', expected a whole number from 1 to 1000"
run translate --model m --n-best 5
exits 2; complains "heed: option '--n-best' is 5, expected at most 4 as '--beam' says"; quiet_out
# Catches options that do nothing, in silence.
run translate --model m --temperature 0.6
exits 2; quiet_out
complains "heed: options '--temperature', '--top-k', '--top-p' and '--seed' are of '--sample': expected it too"
run translate --model m --seed 5
exits 2; quiet_out; mentions "'--seed' are of '--sample': expected it too"
run translate --model m --sample --beam 8
exits 2; quiet_out
complains "heed: options '--sample' and '--beam' exclude each other: '--n-best' says how many translations are drawn"
run translate --model m --sample --beam 4
exits 2; quiet_out; mentions "options '--sample' and '--beam' exclude each other"
run translate --model m --min-length 9 --max-length 5
exits 2; quiet_out; complains "heed: option '--min-length' is 9, expected at most 5 as '--max-length' says"
run translate --model m --min-ratio 2 --max-ratio 1
exits 2; quiet_out; complains "heed: option '--min-ratio' is 2, expected at most 1 as '--max-ratio' says"
run translate --model m --alignment-head 1
exits 2; quiet_out
complains "heed: option '--alignment-head' is of '--alignments': expected it too"
# Catches a place that is read in part: what follows it, blanks, more digits than were expected.
for head in '' 0 +1 ' 1' '1 ' 1abc 1. 1.0 .1 1.1.1 1.1x 1.-1 99999999999; do
    run translate --model m --alignments --alignment-head "$head"
    exits 2; quiet_out
    complains "heed: option '--alignment-head' is '$head', expected a layer or LAYER.HEAD, from 1"
done
run translate --model m --alignments --alignment-head 12345
exits 1; mentions 'there is no layer 12345: the decoder has 1'
run score --model m --source in
exits 2; complains "heed: option '--target' is missing, expected a file"
run score --model m --source - --target -
exits 2; quiet_out

# Catches a model that is not found where it is installed, by its name or its language, a wrong one
# that is taken, and HEED_MODEL that does not come first.
mkdir -p place/bin place/share/heed/models
cp "$heed" place/bin/heed
here=$heed heed=$room/place/bin/heed
unset HEED_MODEL
echo 'a b' >in
run translate
exits 2; mentions "option '--model' is missing, expected the directory of a model"; quiet_out
run list models
exits 0; quiet_out; mentions 'heed: no model is installed'
cp -r m place/share/heed/models/aa-AA
cp -r m place/share/heed/models/aa-BB
run list models
exits 0; says '^aa-AA .*/place/share/heed/models/aa-AA '; says '^aa-BB '; quiet_err
run translate
exits 0; prints 'A B'; quiet_err
run translate --model aa-BB
exits 0; prints 'A B'; quiet_err
rm place/share/heed/models/aa-AA/model.safetensors
run translate --to BB
exits 0; prints 'A B'; quiet_err
run translate --to AA
exits 1; mentions 'aa-AA'; quiet_out
run translate --to CC
exits 2; mentions "no model that translates into 'CC' is installed"; quiet_out
what='heed translate with HEED_MODEL'
HEED_MODEL=m "$heed" translate <in >out 2>err
rc=$?
exits 0; prints 'A B'; quiet_err
heed=$here

# Catches lines that are lost, added, moved or merged: empty ones, a last one without line end,
# those of Windows.
printf 'a b c\n\nl k\n   \nd' >in
run translate --model m
exits 0; prints 'A B C' '' 'L K' '' D; quiet_err
printf 'a b\r\nc\r\n' >in
run translate --model m --beam 1
exits 0; prints 'A B' C; quiet_err
: >in
run translate --model m
exits 0; quiet_out; quiet_err
printf '\n' >in
run translate --model m
exits 0; prints ''

# Catches an order that is lost over chunks and files, and an answer that the number of threads
# changes.
awk -F '\t' 'NR <= 1500 {print $1}' pairs.tsv >first
awk -F '\t' 'NR > 1500 && NR <= 1510 {print $1}' pairs.tsv >second
echo 'l l l' >in
cat first in second | capitals >expected
run translate --model m --beam 1 --threads 1 first - second
exits 0; quiet_err
[ "$(wc -l <out)" = 1511 ]; verdict $? 'expected 1511 lines'
wrong=$(paste -d '|' out expected | awk -F '|' '$1 != $2' | wc -l)
[ "$wrong" -le 75 ]; verdict $? "$wrong lines are wrong, more than a trained model has"
[ "$(sed -n 1501p out)" = 'L L L' ]; verdict $? 'standard input is not in its place'
head -n 60 first >in
run translate --model m --threads 1
mv out once
run translate --model m --threads 2 in
cmp -s once out; verdict $? 'two threads answer differently'

# Catches a named pipe that is opened more than once: whoever writes to it is gone by then.
printf 'a b\n' >in
mkfifo pipe
{ cat in; sleep 1; cat in; } >pipe 2>pipe_err &
run translate --model m second pipe
exits 0; quiet_err; [ "$(tail -n +11 out | tr '\n' .)" = 'A B.A B.' ]; verdict $? 'a line is lost'
wait

# Catches a line that is longer than the model takes and comes out shorter.
awk 'BEGIN {for (i = 0; i < 500; i++) printf "%s%c", i ? " " : "", 97 + i % 12}' >in
run translate --model m
exits 0; [ "$(wc -l <out)" = 1 ]; verdict $? 'expected one line'
[ "$(wc -w <out)" = 500 ]; verdict $? "$(wc -w <out) words, expected 500"

# Catches output that other programs cannot read.
printf 'a b\n\nc\n' >in
run translate --model m --scores
exits 0; says '^-0\.[0-9]*	A B$'; says '^0\.0000	$'; [ "$(wc -l <out)" = 3 ]
verdict $? 'expected three lines'
run translate --model m --n-best 3
exits 0; says '^0 ||| A B ||| -0\.[0-9]*$'; says '^1 |||  ||| 0\.0000$'; says '^2 ||| C ||| -'
[ "$(grep -c '^0 ' out)" = 3 ]; verdict $? 'expected three translations of the first line'
run translate --model m --json
exits 0
says '^{"line":1,"text":"A B","score":-0\.[0-9]*,"tokens":\["A","B","</s>"\],"log_p":\[-0[-0-9.,e]*\]}$'
says '^{"line":2,"text":"","score":0,"tokens":\[\],"log_p":\[\]}$'
run translate --model m --json --n-best 2
exits 0; [ "$(wc -l <out)" = 3 ]; verdict $? 'expected an object for each line'
says '^{"line":3,"text":"C",.*"n_best":\[{"text":"C",.*},{"text":".*\]}\]}$'
says '^{"line":2,.*"n_best":\[{"text":"","score":0,"tokens":\[\],"log_p":\[\]}\]}$'

# Catches fields that are lost, changed, or taken for the program's own, and objects that are taken
# for text.
cat >in <<'END'
{"text": "a b", "id": 12345678901234567890, "x": {"a": [1.50, "}\"]"], "b": {}}, "score": 7}
c d
  {"text": "e"}
{"y":null,"text":"\u0061 k","prefix":"B","z" : 1e5 }
{"text":"","only":true}
END
run translate --model m --json
exits 0; quiet_err; [ "$(wc -l <out)" = 5 ]; verdict $? 'expected five lines'
says '^{"line":1,"text":"A B","score":-0.*],"id":12345678901234567890,"x":{"a": \[1.50, "}\\"\]"\], "b": {}}}$'
says '^{"line":2,"text":"C D",.*\]}$'
says '^{"line":3,"text":"E",.*\]}$'
says '^{"line":4,"text":"B[^"]*",.*"tokens":\["B",.*,"y":null,"z":1e5}$'
says '^{"line":5,"text":"","score":0,"tokens":\[\],"log_p":\[\],"only":true}$'
# Catches objects that are broken and stop the work, or pass.
printf '{"text": "a"\na b\n{"txt": "a", "id": 3}\n{"text": 5}\n{"text":"c","prefix":[]}\nd\n' >in
run translate --model m --json
exits 1; [ "$(wc -l <out)" = 6 ]; verdict $? 'expected six lines'
says '^{"line":1,"error":"no JSON: .*"}$'; says '^{"line":2,"text":"A B",'
says '^{"line":3,"error":"expected a field \\"text\\" that is a text","txt":"a","id":3}$'
says '^{"line":5,"error":"expected a field \\"prefix\\" that is a text"}$'
says '^{"line":6,"text":"D",'
complains 'heed: lines that are no JSON objects to translate: 4; their "error" says why'
# Catches a prefix longer than the model takes that ends the work of all others.
{ echo '{"text":"a"}'; printf '{"text":"b","prefix":"A'; printf ' A%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; echo '"}'; echo '{"text":"c"}'; } >long
run translate --model m --json long
exits 0; says '^{"line":1,"text":"A",'; says '^{"line":2,"text":"A A A'; says '^{"line":3,"text":"C",'
run translate --model m
exits 0; [ "$(wc -l <out)" = 6 ]; verdict $? 'without --json an object is a line like any other'
# Catches an object that blanks hide, and text that braces make one.
printf ' \t{ \t"text" : "a b", "id": 1}\n{ }\n{\n{text: "a"}\n{'\''text'\'': "a"}\n{a} b\n[]\n' >in
run translate --model m --json
exits 1; [ "$(wc -l <out)" = 7 ]; verdict $? 'expected seven lines'
says '^{"line":1,"text":"A B",.*,"id":1}$'; says '^{"line":2,"error":"expected a field '
[ "$(grep -c '"score":' out)" = 6 ]; verdict $? 'expected six that are translated'
complains 'heed: lines that are no JSON objects to translate: 1; their "error" says why'

# Catches an option of the search that does not reach it.
printf 'a b c d e f\n' >in
run translate --model m --prefix 'L L'
exits 0; says '^L L '
run translate --model m --max-length 4
exits 0; prints 'A B C'
run translate --model m --max-ratio 0.5
exits 0; prints 'A B C'
run translate --model m --extra-length 0 --min-length 9
exits 0; [ "$(wc -w <out)" = 6 ]; verdict $? 'expected six words'
run translate --model m --min-length 9
exits 0; [ "$(wc -w <out)" -ge 9 ]; verdict $? 'expected nine words'
run translate --model m --min-ratio 1.5
exits 0; [ "$(wc -w <out)" -ge 11 ]; verdict $? 'expected eleven words'
run translate --model m --ban C --ban E
exits 0; [ "$(wc -l <out)" = 1 ]; verdict $? 'expected a line'
! grep -q '[CE]' out; verdict $? 'a banned piece is there'
run translate --model m --ban nonsense
exits 1; mentions "heed: cannot translate: the piece 'nonsense' cannot be banned: the target vocabulary does not have it"
run translate --model m --length-penalty 1 --penalty-form power --json
exits 0; sed 's/.*"score":\([-0-9.]*\).*"log_p":.\([-0-9.,]*\).*/\1,\2/' out |
    awk -F , '{for (i = 2; i <= NF; i++) s += $i; d = s / (NF - 1) - $1; exit !(d < 1e-4 && d > -1e-4)}'
verdict $? 'the score is not the mean'
run translate --model m --patience -1
exits 2; mentions "option '--patience' is '-1'"
run translate --model m --patience 1 --sample
exits 2; mentions "options '--sample' and '--patience' exclude each other"
printf 'zebra a\n' >in
run translate --model m --suppress-unk --prefix zebra
exits 0; says '⁇'
run translate --model m --sample --temperature 100 second
exits 0; says '⁇'
run translate --model m --sample --temperature 100 --suppress-unk second
exits 0; ! grep -q '⁇' out; verdict $? 'the unknown piece is there'
echo 'a a b b a a b b a' >in
run translate --model m
exits 0; prints 'A A B B A A B B A'
run translate --model m --no-repeat 2
exits 0; ! grep -q 'A A.*A A\|B B.*B B' out; verdict $? 'two words come twice'

# Catches draws that are no draws, or other ones every time.
head -n 40 first >in
run translate --model m --sample --temperature 3 --seed 5
exits 0; mv out once
run translate --model m --sample --temperature 3 --seed 5 --workers 2 --batch 3
exits 0; same once out
run translate --model m --sample --temperature 3 --seed 6
exits 0; ! cmp -s once out; verdict $? 'another seed draws the same'
run translate --model m --sample --temperature 2 --seed 5
exits 0; ! cmp -s once out; verdict $? 'another temperature draws the same'
run translate --model m --sample --temperature 3 --n-best 9
exits 0; [ "$(wc -l <out)" = 360 ]; verdict $? 'expected nine for each of 40 lines'
run translate --model m --sample --top-k 1
mv out once
run translate --model m --sample --top-p 0.0001
exits 0; same once out
run translate --model m --sample --temperature 0.01
exits 0; same once out
run translate --model m --beam 1
exits 0; same once out

# Catches workers and batches that change an answer, and lines that they lose.
run translate --model m --beam 3 --scores first
mv out once
for way in '--workers 1 --batch 1' '--workers 3' '--workers 2 --batch 7'; do
    # shellcheck disable=SC2086
    run translate --model m --beam 3 --scores $way first
    exits 0; [ "$(wc -l <out)" = 1500 ]; verdict $? 'expected 1500 lines'
    paste once out | awk -F '\t' '{d = $1 - $3; if ($2 != $4 || d > 2e-4 || d < -2e-4) exit 1}'
    verdict $? 'other answers'
done

# Catches a translation that goes round in circles in silence.
awk 'BEGIN {for (i = 0; i < 200; i++) {printf "x\t"; for (k = 0; k < 40; k++) printf "%sy", k ? " " : ""; print ""}}' >loop.tsv
run train --model round --tsv loop.tsv --tokens whitespace --encoder-layers 1 --decoder-layers 1 \
    --d 16 --ff 32 --heads 1 --dropout 0 --longest 64 --batch-tokens 400 --max-updates 60 \
    --schedule linear --rate 0.01 --warmup 10 --threads 1
exits 0
echo x >in
run translate --model round --json
exits 0; says '"loop":true}$'
run translate --model round --beam 1
exits 0; prints y
run translate --model round --json --allow-loops
exits 0; says '"text":"y y y y y y y y y y y y y y y y y '; ! grep -q loop out
verdict $? 'a loop is told though nothing was cut'

# Catches a line that is dropped because it is no text, and silence about it.
printf 'a b\nc \377 d\n\000\nl\n' >in
run translate --model m
exits 0; [ "$(wc -l <out)" = 4 ]; verdict $? 'expected four lines'
[ "$(sed -n 1p out)$(sed -n 4p out)" = 'A BL' ]; verdict $? 'its neighbours changed'
complains 'heed: lines that are not UTF-8: 2, the first is line 2; U+FFFD takes the place of each wrong byte'
head -c 3000 "$heed" >in
echo >>in
run translate --model m --beam 1
exits 0; [ "$(wc -l <out)" = "$(wc -l <in)" ]
verdict $? "$(wc -l <out) lines for $(wc -l <in) of a binary file"
# A line without an end in sight is passed on, said, and no reason to stop.
{ echo a b; yes 'a dog' | head -n 300000 | tr '\n' ' '; echo; echo a b; } >in
run translate --model m --beam 1
exits 0; complains 'heed: lines longer than 1 MB: 1, the first is line 2; they are not translated'
[ "$(sed -n 2p out)" = "$(sed -n 2p in)" ] && [ "$(sed -n 1p out)" = "$(sed -n 3p out)" ]
verdict $? 'a line of 1.8 MB is not passed through between two others'
head -c 70000000 /dev/zero >in
run translate --model m
exits 1; complains "heed: cannot read standard input: a line is longer than 64 MB; is it a text?"

# Catches a program that answers a typed line only when the next ones are there.
what='heed translate, line by line'
mkfifo ask answer
"$heed" translate --model m <ask >answer 2>err &
exec 3>ask 4<answer
for line in 'a b' 'c d e'; do
    echo "$line" >&3
    got=$(timeout 20 sh -c 'read -r x; echo "$x"' <&4)
    [ "$got" = "$(echo "$line" | capitals)" ]; verdict $? "'$line' is answered with '$got'"
done
exec 3>&- 4<&-
wait $!; rc=$?
exits 0

# Catches progress that is not shown on a terminal, or is shown elsewhere; that counts lines before
# they are done, or each file for itself; and a share of what nobody knows the size of.
what='heed translate, progress on a terminal'
if command -v script >/dev/null; then
    cat first first first first | awk '{printf "%s%s", $0, NR % 60 ? " " : "\n"}' >half
    script -qec "'$heed' translate --model m half half >out" err >/dev/null 2>&1 </dev/null
    [ "$(wc -l <out)" = 200 ]; verdict $? 'expected 200 lines'
    mentions ' lines, '; mentions ' tokens/s, '; mentions ' s left'
    tr '\r' '\n' <err | sed -n 's/^\([0-9]* %, [0-9]* lines\), .* left .*/\1/p' >shown
    [ "$(sed 's/ .*//; q' shown)" -lt 50 ]; verdict $? "it begins with $(head -n 1 shown)"
    [ "$(grep '^100 ' shown)" = '100 %, 200 lines' ]; verdict $? "it ends with $(tail -n 1 shown)"
    gzip -kf half
    script -qec "'$heed' translate --model m half half.gz >out" err >/dev/null 2>&1 </dev/null
    [ "$(wc -l <out)" = 200 ]; verdict $? 'expected 200 lines'
    ! grep -q ' s left' err; verdict $? 'a share of a file of gzip is shown'
fi

# Catches files that are not there and that stop the work halfway, and directories that are none.
echo a >in
run translate --model m in missing
exits 1; complains "heed: cannot read 'missing': No such file or directory"; quiet_out
run translate --model m .
exits 1; complains "heed: cannot read '.': Is a directory"
run translate --model nowhere
exits 1; complains "heed: cannot open the model 'nowhere': No such file or directory"; quiet_out
run translate --model in
exits 1; mentions "cannot open the model 'in': expected a directory with config.json"

# Catches weights that are cut off or another model's, and vocabularies of another model.
broken() { rm -rf b; mkdir b; cp m/config.json m/model.safetensors m/shared.vocab b; }
broken; head -c 2000 m/model.safetensors >b/model.safetensors
run translate --model b
exits 1; mentions "b/model.safetensors"; quiet_out
broken; sed 's/"ff": 64/"ff": 32/' m/config.json >b/config.json
run translate --model b
exits 1; mentions "cannot load 'b/model.safetensors': tensor '"
broken; echo z >>b/shared.vocab
run translate --model b
exits 1; mentions "'b': the source vocabulary has "; mentions "it belongs to another model"
broken; rm b/shared.vocab
run translate --model b
exits 1; mentions "no vocabulary in 'b'"
broken; sed 's/"transformer"/"lstm"/' m/config.json >b/config.json
run score --model b --source in --target in
exits 1; mentions "'b/config.json': option 'arch' is lstm"

# Catches scores that are not those of the search, and lines without one.
printf 'a b\nc d e f\n\n' >in
run translate --model m --length-penalty 0 --scores
cut -f 1 out | head -n 2 >once
printf 'A B\nC D E F\nA\n' >target
run score --model m --source in --target target
exits 0; quiet_err; [ "$(wc -l <out)" = 3 ]; verdict $? 'expected three lines'
paste once out | awk 'NF == 2 {d = $1 - $2; if (d > 0.001 || d < -0.001) exit 1}'
verdict $? "the search says $(tr '\n' ' ' <once)"
run score --model m --source in --target target --per-token
exits 0; says '^-[0-9.]*	A:-[0-9.]* B:-[0-9.]* </s>:-[0-9.]*$'
run score --model m --source in --target target --normalize --threads 1
exits 0; says '^-0\.[0-9]*$'
printf 'a\n' >short
run score --model m --source in --target short
exits 1; quiet_out; complains "heed: 'short' has 1 lines, expected 3 as in 'in'"
run score --model m --source in --target missing
exits 1; complains "heed: cannot read 'missing': No such file or directory"

# Catches results that are lost in silence: a full disk, a reader that went away.
cat first first >in
what='heed translate >/dev/full'
: >out
"$heed" translate --model m --beam 1 <in >/dev/full 2>err
rc=$?
exits 1; complains 'heed: cannot write to standard output: No space left on device'
what='heed translate, into a closed pipe'
{ "$heed" translate --model m --beam 1 in 2>err; echo $? >code; } | head -n 1 >out
rc=$(cat code)
exits 0; quiet_err

finish
