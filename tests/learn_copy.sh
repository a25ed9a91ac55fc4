#!/bin/sh
# learn_copy.sh: recipes/copy.sh, forwards and backwards, from its data to the last held-out line.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

# recipe ARGUMENT...: leaves out, err, rc, and in right how many of the thousand are exact.
recipe() {
    what="recipes/copy.sh $*"
    HEED=$heed "$tree/recipes/copy.sh" "$@" >out 2>err <in
    rc=$?
    right=$(sed -n '$s/^\([0-9]*\) of 1000 exact$/\1/p' out)
}

# Catches a Transformer that does not learn where to look, or a search that is not what was trained.
recipe copy
exits 0; [ "${right:-0}" -ge 990 ]; verdict $? "${right:-none} of 1000 exact, expected 990"

# Catches positions that only work where source and target run side by side.
recipe --reverse reverse
exits 0; [ "${right:-0}" -ge 990 ]; verdict $? "${right:-none} of 1000 exact, expected 990"

# Catches tests that are passed by heart: a held-out sequence among those learned from.
what='held-out sequences'
cut -f 1 copy/train.tsv | grep -Fxf - copy/test.source >out
[ ! -s out ]; verdict $? 'some are in the training data'
[ "$(wc -l <copy/test.source)" = 1000 ]; verdict $? 'they are not 1000'

finish
