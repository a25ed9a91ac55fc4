#!/bin/sh
# learn_overfit.sh: 200 sentence pairs learned by heart, subwords included, and then everything that
# is done with a model: translate, evaluate, score, inspect.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=200 >pairs.tsv
cut -f 1 pairs.tsv >all.en
cut -f 2 pairs.tsv >all.de
# A sentence has 9 to 18 tokens, 12 or more if it begins with an adverb.
run train --model m --tsv pairs.tsv --valid-tsv pairs.tsv --vocab-size 110 \
    --encoder-layers 2 --decoder-layers 2 --d 64 --ff 128 --heads 4 --longest 28 \
    --dropout 0 --label-smoothing 0 --batch-tokens 600 --clip 1 \
    --schedule linear --rate 0.004 --warmup 40 --max-updates 300 --valid-every 150 --average 1 \
    --threads 1
exits 0; says '^best on validation: BLEU 100 '

# Catches a way from text to text that loses something: case, umlauts, spaces, stops, lines.
run translate --model m --threads 1 all.en
exits 0; quiet_err; same out all.de
run translate --model m --threads 1 --beam 1 all.en
exits 0; same out all.de

# Catches scores that are not those of the translations.
run evaluate --model m --source all.en --reference all.de --metric bleu --json --threads 1
exits 0
awk 'match($0, /"score": ?[0-9.]+/) { s = substr($0, RSTART + 8, RLENGTH - 8) + 0 }
    END { exit !(s >= 99) }' out
verdict $? 'BLEU is below 99'

# Catches a score that does not tell right from wrong: each source with its neighbour's translation.
sed -n '2,$p' all.de >wrong.de
sed -n 1p all.de >>wrong.de
run score --model m --source all.en --target all.de --threads 1
exits 0; quiet_err; mv out right
run score --model m --source all.en --target wrong.de --threads 1
exits 0; quiet_err
worse=$(paste right out | awk -F '\t' '$1 <= 0 && $1 > $2 { n++ } END { print n + 0 }')
[ "$worse" = 200 ]; verdict $? "$worse of 200 right translations are more probable than wrong ones"

# Catches lines that are lost, moved or merged: empty ones, blank ones, one longer than the model
# takes, which is cut at sentence ends, two being too long to go together, and joined again.
long() { grep , pairs.tsv | head -n 50 | cut -f "$1" | paste -sd ' ' -; }
{ head -n 2 all.en; echo; long 1; echo '  '; echo; tail -n 3 all.en; } >in
{ head -n 2 all.de; echo; long 2; echo; echo; tail -n 3 all.de; } >expected
run translate --model m --threads 1
exits 0; quiet_err; same out expected
run translate --model m --threads 2 --beam 1
exits 0; same out expected
# One word without a sentence end, a thousand times: nothing to cut at, but still one line.
awk 'BEGIN { for (i = 0; i < 1000; i++) printf "horse "; print ""; print "The end." }' >in
run translate --model m --threads 1 --beam 1
exits 0; [ "$(wc -l <out)" = 2 ]; verdict $? "$(wc -l <out) lines for 2"
[ "$(head -n 1 out | wc -w)" -ge 42 ]; verdict $? 'parts of the long line are missing'
: >in

# well_formed FILE: its tags open and close in pairs, one root, and no sign that must be escaped.
well_formed() {
    tr '\n' ' ' <"$1" | awk -v RS='<' '
        NR == 1 { if ($0 ~ /[^ ]/) bad = "text before the root"; next }
        /^[?!]/ { next }
        !/>/ || /&([^a-z#]|$)/ { bad = "<" $0; exit }
        {
            name = $0; sub(/[ \/>].*/, "", name)
            if (substr($0, 1, 1) == "/") {
                name = substr($0, 2); sub(/[ >].*/, "", name)
                if (!depth || open[depth--] != name) { bad = "</" name ">"; exit }
            } else if ($0 !~ /^[^>]*\/>/) {
                if (!depth && roots++) { bad = "a second root"; exit }
                open[++depth] = name
            }
        }
        END { if (bad == "" && depth) bad = "<" open[depth] "> is left open"
              if (bad != "") print bad; exit bad != "" || !roots }' >problem
    verdict $? "$1 is not well-formed: $(head -c 200 problem)"
}

# Catches pictures that a browser does not open, or that lack a word or a head.
run inspect --model m --attention "$(head -n 1 all.en)" --output p.svg
exits 0; well_formed p.svg
for text in "Cross-attention, layer 2, head 4" "Decoder self-attention, layer 1, head 1"; do
    grep -q "<title>$text</title>" p.svg; verdict $? "there is no '$text'"
done
for word in $(head -n 1 all.en | tr -d .) $(head -n 1 all.de | tr -d .); do
    grep -q ">$word<" p.svg; verdict $? "there is no '$word' in the picture"
done
run inspect --model m --attention "$(head -n 1 all.en)" --output p.html
exits 0
[ "$(head -n 1 p.html)" = '<!doctype html>' ]; verdict $? 'it does not begin as HTML'
[ "$(tail -n 1 p.html)" = '</html>' ]; verdict $? 'it does not end as HTML'
grep -Eq '(src|href)="?https?:' p.html; [ $? = 1 ]; verdict $? 'it needs another file'
# Catches a picture in the terminal of something else than what is translated.
run inspect --model m --attention "$(head -n 1 all.en)" --width 80
exits 0; says "^$(head -n 1 all.de)$"; says '^Cross-attention, '

# Catches curves that nothing opens.
well_formed m/training/curves.svg

finish
