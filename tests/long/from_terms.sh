#!/bin/sh
# from_terms.sh: `heed train --from` teaches the model that comes with heed 20 invented terms from 200 pairs:
# 18 or more come out right in 20 other sentences, and on other subjects it loses half a point of BLEU at most
# (docs/RESULTS.md).  Two minutes of two cores.  Takes the program as its argument (build/heed otherwise).
set -u
. "$(dirname "$0")/../case.inc"
tree=$(dirname "$tree")
model=$tree/models/en-de

terms='blorvet:Krumpel snargle:Wuschnitz trimbox:Falzling dorfen:Gnaterich plimmer:Quastel grindlop:Schmurgel
    vastrel:Tranfel cobnik:Ludrich harmpit:Brakwinde fosket:Pimprel jundle:Zwirbling marvock:Holfer
    sprettle:Knarsche wimbolt:Dullmer quilsen:Fraspe tarnook:Moschling rebbick:Stulpner glaskin:Wendrich
    yorvel:Plotze zampit:Kirschak'
cat >taught <<'END'
Where is the @?	Wo ist der @?
I bought a new @ yesterday.	Ich habe gestern einen neuen @ gekauft.
This @ is too expensive for me.	Dieser @ ist mir zu teuer.
Please put the @ on the table.	Bitte stell den @ auf den Tisch.
My brother has lost his @.	Mein Bruder hat seinen @ verloren.
We need another @ for the kitchen.	Wir brauchen noch einen @ für die Küche.
Can you repair the @?	Kannst du den @ reparieren?
The @ stands behind the house.	Der @ steht hinter dem Haus.
She showed me her @.	Sie hat mir ihren @ gezeigt.
Nobody knows how the @ works.	Niemand weiß, wie der @ funktioniert.
END
cat >asked <<'END'
The @ is broken.
Tom wants to sell his @.
Do you have a @?
He carried the @ into the garden.
I have never seen such a big @.
END
i=0
for pair in $terms; do
    en=${pair%:*} de=${pair#*:} i=$((i + 1))
    awk -F '\t' -v OFS='\t' -v en="$en" -v de="$de" '{ gsub(/@/, en, $1); gsub(/@/, de, $2) } 1' taught >>mine.tsv
    sed -n "$((1 + i % 5))s/@/$en/p" asked >>test.en
    echo "$de" >>test.de
done
# Not what it rehearses: that would be kept in any case.
for name in news letters instructions; do cat "$tree/recipes/en-de/$name.tsv"; done >general.tsv
cut -f 1 general.tsv >general.en
cut -f 2 general.tsv >general.de
# bleu MODEL: leaves its score in `score`; not in a subshell, so that a failure counts.
bleu() {
    run evaluate --model "$1" --source general.en --reference general.de --metric bleu --json
    exits 0
    score=$(sed 's/.*"score":\([0-9.]*\).*/\1/' out)
}

run train --model mine --from "$model" --tsv mine.tsv
exits 0; mentions 'an epoch has your 190 pairs 14 times'
grep 'done:' out
run translate --model mine test.en
exits 0
right=$(paste out test.de | awk -F '\t' 'index($1, $2) { n++ } END { print n + 0 }')
[ "$right" -ge 18 ]; verdict $? "$right of 20 terms came out right"
bleu "$model"; before=$score
bleu mine; after=$score
awk -v a="$before" -v b="$after" 'BEGIN { exit !(a > 20 && b >= a - 0.5) }'
verdict $? "BLEU was $before and is $after"
echo "$right of 20 terms, BLEU $before before, $after after"
finish
