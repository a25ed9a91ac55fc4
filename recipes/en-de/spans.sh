#!/bin/sh
# spans.sh MODEL [OPTION...]: 500 lines with one to three spans that no translation may change (addresses,
# %s, {name}, tags around a word, emoji, quantities), put between the words of DATA/dev.tsv: in how many
# translations is every span there, byte for byte and once?  And what do the other words lose, in BLEU?
# The options go to `heed translate`.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed translate]}
shift
heed=${HEED:-build/heed}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# Lines of at least four words.  A span stands before a word or at the end of the line; a tag and its end
# stand around a word.
awk -F '\t' -v lines=500 -v plain="$room/plain" -v marked="$room/marked" -v spans="$room/spans" \
    -v reference="$room/reference" '
function draw(n) { x = x * 16807 % 2147483647; return 1 + int(x / 2147483647 * n) }
BEGIN {
    x = 11
    kinds = split("https://example.org/page?id=7#top|www.example.org|jane.doe@example.org|%s|%1$d|%(count)d|{name}|{0}|${HOME}|&nbsp;|`make test`|😀|👍🏽|🇩🇪|3.5 km|20 °C|512 MB|<br/>|<img src=\"a b.png\">|<i>|<b>", kind, "|")
}
n < lines && split($1, word, " ") >= 4 {
    words = split($1, word, " ")
    split("", before); split("", behind); list = ""
    for (s = draw(3); s > 0; s--) {
        span = kind[draw(kinds)]; at = 1 + draw(words)
        if (at in before || at in behind || index(list, span)) continue
        if (span == "<i>" || span == "<b>") {
            if (at > words || word[at] !~ /^[A-Za-z]+$/) continue
            end = "</" substr(span, 2)
            before[at] = span; behind[at] = end; list = list span "\t" end "\t"
        } else {
            before[at] = span " "; list = list span "\t"
        }
    }
    if (list == "") next
    line = ""
    for (i = 1; i <= words + 1; i++) {
        gap = i > 1 && i <= words ? " " : ""
        if (i > words && i in before) { sub(/ $/, "", before[i]); gap = " " }
        line = line gap before[i] word[i] behind[i]
    }
    print $1 >plain; print line >marked; print list >spans; print $2 >reference
    n++
}' "$DATA/dev.tsv"

"$heed" translate --model "$model" "$@" "$room/plain" >"$room/plain.out"
"$heed" translate --model "$model" "$@" "$room/marked" >"$room/marked.out"

# count: how often a text stands in another.  What is left without the spans goes to marked.rest.
awk -v rest="$room/marked.rest" '
function count(text, what,   n, at) {
    while (at = index(text, what)) { n++; text = substr(text, at + length(what)) }
    return n + 0
}
NR == FNR { list[FNR] = $0; next }
{
    spans = split(list[FNR], span, "\t") - 1
    good = 1
    text = $0
    for (i = 1; i <= spans; i++) {
        good = good && count($0, span[i]) == 1
        if (at = index(text, span[i]))
            text = substr(text, 1, at - 1) substr(text, at + length(span[i]))
    }
    gsub(/  +/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); gsub(/ [.]$/, ".", text)
    print text >rest
    right += good
    if (!good) print "lost: " list[FNR] " in: " $0 >"/dev/stderr"
}
END { print right + 0 " of " FNR " with every span" }' "$room/spans" "$room/marked.out"
printf 'without spans:    '
"$heed" evaluate --reference "$room/reference" --metric bleu "$room/plain.out"
printf 'around the spans: '
"$heed" evaluate --reference "$room/reference" --metric bleu "$room/marked.rest"
