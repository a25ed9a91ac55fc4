#!/bin/sh
# learn_attention.sh: every mechanism of attention learns something from the command line: sequences are
# copied (recipes/copy.sh) by the Transformer with every score and by a recurrent translator with every
# other window and choice; and a recurrent translator's attention is where the translated word is
# (recipes/word-order.sh).
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
# shellcheck disable=SC2086
. "$(dirname "$0")/case.inc"
tried=

# copies LEAST MECHANISM OPTION...: of a thousand held-out sequences so many are exact.
copies() {
    least=$1 tried="$tried $2" what="recipes/copy.sh $*"
    shift 2
    HEED=$heed "$tree/recipes/copy.sh" copy --max-updates 250 --valid-every 250 "$@" >out 2>err <in
    rc=$?
    right=$(sed -n '$s/^\([0-9]*\) of 1000 exact$/\1/p' out)
    exits 0; [ "${right:-0}" -ge "$least" ]
    verdict $? "${right:-none} of 1000 exact, expected $least"
}

# Catches a score that is computed, has its gradient, and does not learn in multi-head attention.
for score in dot general additive cosine location; do
    copies 980 "$score" --attention-score "$score"
done

# Catches a pattern that hides from a query what it needs, or shows it what comes later.
for form in band:8+global:1 dilated:4:2:2 random:4+block:4 strided:3:heads+fixed:4:1 star etc:4:1+axial:3 \
    bigbird:2:1+bpt:1 block-image:3:2; do
    copies 980 "$(printf '%s' "$form" | sed 's/:[^+]*//g; s/+/ /g')" --attention-pattern "$form"
done

# Catches projections of global positions, pooled keys and active queries that learn nothing.
copies 980 longformer --attention-pattern longformer:6:1
copies 980 poolingformer --attention-memory poolingformer:4:2
copies 850 probsparse --attention-queries probsparse:1
# Catches a choice of keys that does not follow what is learned, or that decoding makes otherwise.
copies 950 top-k --attention-pattern top-k:2 --max-updates 400
copies 950 top-k --attention-pattern top-k:1:approximate+band:3 --max-updates 400
copies 950 lsh --attention-pattern lsh:2:2 --max-updates 400
copies 850 routing --attention-pattern routing:2 --max-updates 400

# Catches running sums that forget, or see what comes later; the state of a row that decodes.
copies 850 elu --attention-normaliser elu --positions rotary --max-updates 400

# Catches a state that forgets, and a decoder that begins with zeros in one place and BOS in another.
copies 900 ssru --decoder-unit ssru --zero-start --positions sinusoid-marian

# The same with other features, sums that fade, and the delta rule.
copies 850 performer --attention-normaliser performer:64 --positions rotary --max-updates 400
copies 850 rfa --attention-normaliser rfa:64 --positions rotary --max-updates 400
tried="$tried delta" # needs a decoder alone: tests/test_toy_language.c

# Catches a window that follows the wrong word, and choices that are not rewarded for what they did.
rnn='--arch rnn --cell gru-after --bidirectional --encoder-layers 1 --decoder-layers 1 --d 64'
rnn="$rnn --attend before --attention-score additive"
copies 950 local-m $rnn --attention-pattern local-m:2
copies 850 hard $rnn --attention-normaliser hard

# aligns MECHANISM OPTION...: the largest weight is on the right word, for 95 of 100 words.
aligns() {
    tried="$tried $1" what="recipes/word-order.sh $*"
    shift
    HEED=$heed WORD_ORDER=$(dirname "$heed")/examples/word_order \
        "$tree/recipes/word-order.sh" order "$@" >out 2>err <in
    rc=$?
    percent=$(sed -n '$s/^.* words aligned, \([0-9]*\)\.[0-9] %$/\1/p' out)
    exits 0; [ "${percent:-0}" -ge 95 ]; verdict $? "${percent:-none} % aligned, expected 95"
}

# Catches attention that translates by looking elsewhere: shifted by one, at the wrong moment.
aligns global
aligns local-p --attention-pattern local-p:4

# Catches a mechanism that nothing here has tried; scaled-dot and soft are what all the others use.
run list attention
for name in $(awk 'NF == 1 { slot = $1 } /; can: / { next }
    NF > 1 && slot ~ /pattern|score|normaliser/ { sub(/[:[].*/, "", $1); print $1 }' out); do
    case " $tried scaled-dot soft " in
    *" $name "*) ;;
    *) what=$name; false; verdict $? 'learns nothing here' ;;
    esac
done

finish
