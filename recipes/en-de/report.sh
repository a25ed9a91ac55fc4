#!/bin/sh
# report.sh MODEL [OPTION...]: what a general translator can do, from DATA/dev.tsv (with TEST=1: test.tsv):
# the set itself; those of its lines that no training sentence resembles; its lines joined to longer ones; its
# lines as careless people type them; the 200 pairs outside of the training text, with the names and
# numbers that must be copied; protected spans.  The options go to `heed translate`.
# DATA: the folder with train.tsv.gz, dev.tsv, test.tsv (English TAB German).
set -eu
: "${DATA:?is not set; see recipes/README.md}"
model=${1:?usage: DATA=dir $0 MODEL [options of heed translate]}
shift
heed=${HEED:-build/heed}
here=$(dirname "$0")
set=$DATA/dev.tsv
[ -z "${TEST:-}" ] || set=$DATA/test.tsv
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
options=$*

# score WHAT PAIRS [OPTION...]: translations go to $room/out; the options to `heed evaluate`.
score() {
    what=$1 pairs=$2
    shift 2
    cut -f 1 "$pairs" >"$room/en"
    cut -f 2 "$pairs" >"$room/de"
    # shellcheck disable=SC2086
    "$heed" translate --model "$model" $options "$room/en" >"$room/out"
    printf '%s: %s lines\n' "$what" "$(wc -l <"$pairs")"
    "$heed" evaluate --reference "$room/de" --metric bleu,chrf "$@" "$room/out"
}

score "$(basename "$set")" "$set"

# Two sentences are near when they are equal but for one word, put in, left out or changed; case and
# punctuation do not count.  far: the lines of the set that are not near any training sentence.
zcat "$DATA/train.tsv.gz" | LC_ALL=C awk -F '\t' '
function words_of(line) {
    line = tolower(line); gsub(/[^a-z0-9\200-\377'\'' ]/, " ", line)
    return split(line, word, " ")
}
# The sentence without word i; with something in its place.
function without(i, n, mark,   k, text) {
    for (k = 1; k <= n; k++) text = text (k == i ? mark : word[k]) " "
    gsub(/  +/, " ", text)
    return text
}
function is_near(number) { near[number] = 1 }
# keep KEY: the lines of the set with it, as a list of numbers.
function keep(kind, text) { lines[kind text] = lines[kind text] " " FNR }
function look(kind, text,   k, m, found) {
    if (kind text in lines) {
        m = split(lines[kind text], found, " ")
        for (k = 1; k <= m; k++) is_near(found[k])
    }
}
NR == FNR {
    pair[FNR] = $0; count = FNR
    n = words_of($1)
    keep("=", without(0, n, ""))
    for (i = 1; i <= n; i++) { keep("-", without(i, n, "")); keep("*", without(i, n, "*")) }
    next
}
{
    n = words_of($1)
    whole = without(0, n, "")
    look("=", whole); look("-", whole)
    for (i = 1; i <= n; i++) { look("=", without(i, n, "")); look("*", without(i, n, "*")) }
}
END { for (i = 1; i <= count; i++) if (!(i in near)) print pair[i] }' "$set" - >"$room/far.tsv"
score 'more than one word away from every training sentence' "$room/far.tsv"

for n in 2 4 8; do
    awk -F '\t' -v n=$n '
    { en = en (en == "" ? "" : " ") $1; de = de (de == "" ? "" : " ") $2 }
    NR % n == 0 { print en "\t" de; en = de = "" }
    END { if (en != "") print en "\t" de }' "$set" >"$room/joined.tsv"
    score "joined to $n sentences a line" "$room/joined.tsv"
done

# The same lines, compared without regard to case.
plain() { sed 's/ß/ss/g' "$1"; }
plain "$set" >"$room/plain.tsv"
score 'case does not count' "$room/plain.tsv" --lowercase
awk -F '\t' '{ print toupper($1) "\t" $2 }' "$room/plain.tsv" >"$room/capitals.tsv"
score 'IN CAPITALS, CASE DOES NOT COUNT' "$room/capitals.tsv" --lowercase
awk -F '\t' '{ print tolower(substr($1, 1, 1)) substr($1, 2) "\t" $2 }' "$set" >"$room/small.tsv"
score 'with a small letter at the beginning' "$room/small.tsv"
awk -F '\t' '$1 ~ /[^.][.]$/ && $2 ~ /[^.][.]$/' "$set" >"$room/stops.tsv"
score 'lines that end in a full stop' "$room/stops.tsv"
sed 's/[.]\t/\t/; s/[.]$//' "$room/stops.tsv" >"$room/open.tsv"
score 'the same without it' "$room/open.tsv"

# Words that stand in the source and in the reference and are a name (a capital, not at the
# beginning) or have a digit: how many are in the translation?
: >"$room/copies"
for kind in letters news instructions; do
    score "$kind" "$here/$kind.tsv"
    paste "$here/$kind.tsv" "$room/out" >>"$room/copies"
done
LC_ALL=C awk -F '\t' '
function clean(text) { gsub(/[^A-Za-z0-9\200-\377]+/, " ", text); return " " text " " }
{
    n = split(clean($1), word, " ")
    for (i = 2; i <= n; i++)
        if (word[i] ~ /^[A-Z].|[0-9]/ && index(clean($2), " " word[i] " ")) {
            kind = word[i] ~ /[0-9]/ ? "numbers" : "names"
            all[kind]++
            if (index(clean($3), " " word[i] " ")) copied[kind]++
            else missing = missing " " word[i]
        }
}
END {
    for (kind in all) print kind " copied: " copied[kind] + 0 " of " all[kind]
    print "not copied:" missing
}' "$room/copies"
awk -F '\t' '{ print $1 "\t" $2 }' "$room/copies" >"$room/outside.tsv"
score 'all three' "$room/outside.tsv"

"$here/spans.sh" "$model" "$@"
