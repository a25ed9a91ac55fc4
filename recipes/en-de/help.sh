#!/bin/sh
# help.sh: paragraphs of LibreOffice's help in two languages, as English TAB German: those with the
# same id in both, without their marks.  The Document Foundation publishes it (MPL-2.0); on Debian
# `apt-get install --no-install-recommends libreoffice-help-en-us libreoffice-help-de` installs it.
#   gives: 26,357 pairs (LibreOffice 7.4), 5,087 of them with more than 25 English words
# HELP: another folder than /usr/share/libreoffice/help.
set -eu
help=${HELP:-/usr/share/libreoffice/help}
if [ ! -d "$help/en-US/text" ] || [ ! -d "$help/de/text" ]; then
    echo "there is no help in English and German under $help" >&2
    exit 1
fi

# The English page, then the German one; a paragraph ends in </p>.
pair_page() {
    awk -v RS='</p>' '
    FNR == 1 { page++ }
    match($0, /<p id="par_id[0-9a-z]*"/) {
        id = substr($0, RSTART + 7, RLENGTH - 8)
        text = substr($0, RSTART)
        gsub(/<[^>]*>/, "", text)
        gsub(/&nbsp;/, " ", text); gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
        gsub(/&quot;/, "\"", text); gsub(/&amp;/, "\\&", text)
        gsub(/[ \t\r\n]+/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text)
        if (page == 1) english[id] = text
        else if (id in english && english[id] != "" && text != "" && english[id] != text) {
            # A paragraph that was not translated, or whose halves are of different lengths, teaches nothing.
            a = length(english[id]); b = length(text)
            if (a < 2.5 * b + 20 && b < 2.5 * a + 20) print english[id] "\t" text
        }
    }' "$1" "$2"
}

cd "$help/en-US"
find text -name '*.html' | LC_ALL=C sort | while read -r page; do
    [ ! -f "$help/de/$page" ] || pair_page "$page" "$help/de/$page"
done | LC_ALL=C awk '!seen[$0]++'
