#!/bin/sh
# spans.sh MODEL [OPTION...]: 500 lines of DATA/dev.tsv with spans that no translation may change (addresses,
# %s, {name}, tags, emoji, quantities): in how many translations is every span there, byte for byte and once?
# And what do the other words lose, in BLEU?  Twice:
#   usual   where people put them: %s or {name} instead of a name or a number, tags around one or around the
#           line, an address, an emoji or a quantity at its end
#   random  one to three between any words, where they often make no sense
# The options go to `heed translate`.
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed translate]}
shift
heed=${HEED:-build/heed}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# Lines of at least four words.  plain: without spans; marked: with them; spans: which; gone: the word that a
# span replaces, which does not count on either side; reference: without that word.
make_lines() {
    awk -F '\t' -v place="$1" -v lines=500 -v room="$room/" '
    function draw(n) { x = x * 16807 % 2147483647; return 1 + int(x / 2147483647 * n) }
    function bare(text) { gsub(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/, "", text); return text }
    # How often a word stands in a line; found is where.
    function times(what, text,   n, i, k) {
        k = split(text, piece, " ")
        for (i = 1; i <= k; i++) if (bare(piece[i]) == what) { n++; found = i }
        return n + 0
    }
    function without(what, text) {
        if (what == "" || !times(what, text)) return text
        split(text, piece, " "); piece[found] = instead(piece[found], what, "")
        text = ""
        for (i = 1; i in piece; i++) text = text (i > 1 ? " " : "") piece[i]
        return text
    }
    # A word with something instead of what is in it.
    function instead(text, what, new,   at) {
        at = index(text, what)
        return substr(text, 1, at - 1) new substr(text, at + length(what))
    }
    function around(tag) { list = list tag "\t</" substr(tag, 2) "\t"; return "</" substr(tag, 2) }
    # A word that both sides have once, a name or a number, and not the first: its number, or 0.
    function twin(   i, what) {
        for (i = 2; i <= words; i++) {
            what = bare(word[i])
            if (what ~ /^([A-Z][a-z]+|[0-9]+)$/ && times(what, $1) == 1 && times(what, $2) == 1) return i
        }
        return 0
    }
    function usual(   at, what, span) {
        at = twin()
        if (at) {
            what = bare(word[at])
            if (draw(3) == 1) {
                span = tag[draw(tags)]
                word[at] = instead(word[at], what, span what around(span))
            } else {
                span = slot[draw(slots)]; list = list span "\t"; gone = what
                word[at] = instead(word[at], what, span)
            }
        }
        if (at && draw(3) > 1) return
        span = draw(4) == 1 ? tag[draw(tags)] : end[draw(ends)]
        if (index(list, span)) return
        if (span ~ /^<[bi]>$/) {
            word[1] = span word[1]; word[words] = word[words] around(span)
        } else {
            list = list span "\t"; word[words] = word[words] " " span
        }
    }
    function anywhere(   s, span, at) {
        for (s = draw(3); s > 0; s--) {
            span = draw(8) == 1 ? tag[draw(tags)] : draw(2) == 1 ? slot[draw(slots)] : end[draw(ends)]
            at = 1 + draw(words)
            if (at in taken || index(list, span)) continue
            if (span ~ /^<[bi]>$/) {
                if (at > words || word[at] !~ /^[A-Za-z]+$/) continue
                word[at] = span word[at] around(span)
            } else {
                if (at > words) word[words] = word[words] " " span
                else word[at] = span " " word[at]
                list = list span "\t"
            }
            taken[at] = 1
        }
    }
    BEGIN {
        x = 11
        slots = split("%s|%1$d|%(count)d|{name}|{0}|${HOME}|`make test`|&nbsp;", slot, "|")
        ends = split("https://example.org/page?id=7#top|www.example.org|jane.doe@example.org|😀|👍🏽|🇩🇪|3.5 km|20 °C|512 MB|<br/>|<img src=\"a b.png\">", end, "|")
        tags = split("<b>|<i>", tag, "|")
    }
    n < lines && split($1, word, " ") >= 4 {
        words = split($1, word, " ")
        split("", taken); list = gone = ""
        if (place == "usual") usual()
        else anywhere()
        if (list == "") next
        line = word[1]
        for (i = 2; i <= words; i++) line = line " " word[i]
        print $1 >(room "plain"); print line >(room "marked"); print list >(room "spans")
        print gone >(room "gone"); print without(gone, $2) >(room "reference")
        n++
    }' "$DATA/dev.tsv"
}

# What is left of translations without the spans, and without the word that one of them replaced.
rests() {
    awk -v spans="$room/spans" -v gone="$room/gone" -v counted="$1" '
    function count(text, what,   n, at) {
        while (at = index(text, what)) { n++; text = substr(text, at + length(what)) }
        return n + 0
    }
    function cut(text, what,   at) {
        at = index(text, what)
        return at ? substr(text, 1, at - 1) substr(text, at + length(what)) : text
    }
    {
        getline list <spans; getline word <gone
        text = $0; good = 1
        n = split(list, span, "\t") - 1
        for (i = 1; i <= n && counted; i++) {
            good = good && count($0, span[i]) == 1
            text = cut(text, span[i])
        }
        if (!counted && word != "") text = cut(text, word)
        gsub(/  +/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); gsub(/ [.]$/, ".", text)
        print text
        right += good
        if (!good) print "lost: " list " in: " $0 >"/dev/stderr"
    }
    END { if (counted) print right + 0 " of " NR " with every span" >"/dev/stderr" }'
}

for place in usual random; do
    rm -f "$room"/*
    make_lines $place
    echo "spans at $place places"
    "$heed" translate --model "$model" "$@" "$room/plain" | rests 0 >"$room/plain.rest"
    "$heed" translate --model "$model" "$@" "$room/marked" >"$room/marked.out"
    rests 1 <"$room/marked.out" 2>&1 >"$room/marked.rest"
    rests 0 <"$room/reference" >"$room/reference.rest"
    printf 'without spans:    '
    "$heed" evaluate --reference "$room/reference.rest" --metric bleu "$room/plain.rest"
    printf 'around the spans: '
    "$heed" evaluate --reference "$room/reference.rest" --metric bleu "$room/marked.rest"
done
