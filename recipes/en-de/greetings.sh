#!/bin/sh
# greetings.sh MODEL [OPTION...]: how many of forty openings and closings of letters come out as one of the ways
# that greetings.tsv lists (English, then German in the columns behind).  The options go to `heed translate`.
set -eu
model=${1:?usage: $0 MODEL [options of heed translate]}
shift
heed=${HEED:-build/heed}
list=$(dirname "$0")/greetings.tsv
cut -f 1 "$list" | "$heed" translate --model "$model" "$@" | paste - "$list" | awk -F '\t' '
    { good = 0; for (i = 3; i <= NF; i++) good += $1 == $i
      right += good > 0
      if (!good) print "  " $2 " -> " $1 }
    END { print "greetings: " right + 0 " of " NR }'
