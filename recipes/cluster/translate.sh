#!/bin/sh
# translate.sh: translate one large file on many machines: in parts, in order, and again from where it was if it
# is interrupted.  N lines in, N lines out.  The machines share the folder of parts (NFS, Lustre).
#
#   translate.sh MODEL IN OUT WORKERS [OPTION...]   all of it on this machine, with WORKERS workers
#   translate.sh split IN FOLDER [LINES]            parts of LINES lines (10000) into FOLDER
#   translate.sh work FOLDER I N MODEL [OPTION...]  worker I of N (0 to N - 1): every N-th part that is not done
#   translate.sh join FOLDER OUT                    checks all parts, puts them together, removes FOLDER
#
# The options go to `heed translate`.  On several machines:
#   translate.sh split big.en parts
#   seq 0 31 | parallel -j 4 --sshloginfile hosts --wd "$PWD" translate.sh work parts {} 32 m --threads 4
#   translate.sh join parts big.de
# As a Slurm array: sbatch --array=0-31 --cpus-per-task=4 --wrap \
#   'translate.sh work parts $SLURM_ARRAY_TASK_ID 32 m --threads 4'
set -eu
heed=${HEED:-heed}
lines_of() { wc -l <"$1" | tr -d ' '; }
fail() { echo "translate.sh: $*" >&2; exit 1; }

split_file() { # IN FOLDER LINES
    [ -f "$1" ] || fail "there is no file '$1'"
    if [ -e "$2/split" ]; then
        [ "$(cat "$2/split")" = "$(cksum <"$1")" ] || fail "'$2' has parts of another file: remove it"
        return
    fi
    rm -rf "$2.tmp"
    mkdir "$2.tmp"
    # A last line without its end gets one: parts end with lines.
    awk -v n="$3" -v folder="$2.tmp" '
        (NR - 1) % n == 0 { if (part) close(part); part = sprintf("%s/%09d.in", folder, (NR - 1) / n) }
        { print >part }' "$1"
    cksum <"$1" >"$2.tmp/split"
    mv "$2.tmp" "$2"
}

work() { # FOLDER I N MODEL OPTION...
    folder=$1 i=$2 n=$3 model=$4
    shift 4
    [ -e "$folder/split" ] || fail "'$folder' has no parts: translate.sh split"
    k=0
    for in in "$folder"/*.in; do
        [ -e "$in" ] || return 0 # an empty file has none
        out=${in%.in}.out
        if [ $((k % n)) = "$i" ] && [ ! -e "$out" ]; then
            "$heed" translate --model "$model" "$@" <"$in" >"$out.$i.tmp"
            [ "$(lines_of "$in")" = "$(lines_of "$out.$i.tmp")" ] ||
                fail "'$in' has $(lines_of "$in") lines, its translation $(lines_of "$out.$i.tmp")"
            mv "$out.$i.tmp" "$out"
        fi
        k=$((k + 1))
    done
}

join_parts() { # FOLDER OUT
    [ -e "$1/split" ] || fail "'$1' has no parts: translate.sh split"
    missing=0
    for in in "$1"/*.in; do
        [ ! -e "$in" ] || [ -e "${in%.in}.out" ] || missing=$((missing + 1))
    done
    [ $missing = 0 ] || fail "$missing parts are not done: start their workers again"
    : >"$2.tmp"
    for in in "$1"/*.in; do
        [ ! -e "$in" ] || cat "${in%.in}.out" >>"$2.tmp"
    done
    mv "$2.tmp" "$2"
    rm -rf "$1"
}

case ${1-} in
split) [ $# -ge 3 ] || fail "split IN FOLDER [LINES]" && split_file "$2" "$3" "${4:-10000}" ;;
work) shift && [ $# -ge 4 ] || fail "work FOLDER I N MODEL" && work "$@" ;;
join) [ $# = 3 ] || fail "join FOLDER OUT" && join_parts "$2" "$3" ;;
*)
    [ $# -ge 4 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
    model=$1 in=$2 out=$3 workers=$4
    shift 4
    [ "$workers" -ge 1 ] 2>/dev/null || fail "WORKERS is '$workers', expected a number from 1"
    split_file "$in" "$out.parts" "${LINES_A_PART:-10000}"
    i=0 all=
    while [ $i -lt "$workers" ]; do
        work "$out.parts" $i "$workers" "$model" "$@" &
        all="$all $!" i=$((i + 1))
    done
    trap 'kill $all 2>/dev/null; exit 130' INT TERM
    bad=0
    for process in $all; do
        wait "$process" || bad=1
    done
    [ $bad = 0 ] || fail "a worker has failed; start again to go on"
    join_parts "$out.parts" "$out"
    ;;
esac
