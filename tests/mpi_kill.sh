#!/bin/sh
# Kills a rank of a training with two, at any moment, HEED_KILLS times (6), lets one fall silent, and interrupts
# mpirun: all ranks end within ten seconds, the rank is named, and what goes on from there ends with the bits of a run
# that was never interrupted.  Then a disk that is full, and signals.  Skipped where there is no MPI.
. "$(dirname "$0")/case.inc"
kills=${HEED_KILLS:-6}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
unset MAKEFLAGS MFLAGS

awk 'BEGIN {
    srand(1)
    for (i = 0; i < 300; i++) {
        n = 3 + int(rand() * 4); s = ""; t = ""
        for (k = 0; k < n; k++) { w = "w" int(rand() * 10); s = s (k ? " " : "") w; t = w (k ? " " : "") t }
        print s >"s"; print t >"t"
    }
}'
options="--source s --target t --hold-out 10 --recipe paper --tokens whitespace --encoder-layers 2
    --decoder-layers 2 --d 64 --ff 128 --heads 2 --longest 32 --batch-tokens 256 --warmup 20 --threads 1
    --valid-every 10 --valid-beam 1 --valid-lines 2 --average 2 --average-kind last"

# The processes of this program, rank 0 and those of it that mpirun has started: those whose parents are mpirun's.
ranks_of() {
    for process in $(pgrep -f "^$program "); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null |
            sed -n "s/^OMPI_COMM_WORLD_RANK=\([0-9]*\)$/$process \1/p; s/^PMI_RANK=\([0-9]*\)$/$process \1/p"
    done
}
now() { date +%s%N; }
# ends_in_time PROCESS BEGIN [ANY]: all ranks do, not as if all were well (ANY: whatever mpirun's exit code is).
ends_in_time() {
    wait "$1"
    rc=$?
    ended_in_time "$2" "${3-}"
}
ended_in_time() { # BEGIN [ANY]
    [ "$rc$2" != 0 ]; verdict $? "the exit code is 0"
    seconds=$((($(now) - $1) / 1000000000))
    [ $seconds -lt 10 ]; verdict $? "it took $seconds s to end"
    [ -z "$(ranks_of)" ]; verdict $? "a rank goes on"
}
ends_in_the_same_bits() {
    for file in training/latest/model.safetensors training/latest/moments.safetensors model.safetensors; do
        same "whole/$file" "m/$file"
    done
}
# after SAVE: waits for it.
after() {
    i=0
    while [ ! -e "$1" ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done
}

# shellcheck disable=SC2086
all_cases() {
    what="$kind, whole"
    "$heed" train --model whole $options --max-updates 200 --accumulate 2 >out 2>err <in
    rc=$?; exits 0
    n=0 killed=0 random=$(($$ % 1000))
    while [ $killed -lt "$kills" ] && [ $n -lt $((4 * kills)) ]; do
        n=$((n + 1)) what="$kind, run $n"
        random=$(((random * 1103 + 12345) % 65536))
        if [ -e m ]; then set -- --resume m; else set -- --model m $options; fi
        "$mpirun" -n 2 "$program" train "$@" --max-updates 200 >out 2>err <in &
        starter=$!
        # Once both are there, somewhere in what follows.
        i=0
        while kill -0 $starter 2>/dev/null && [ "$(ranks_of | wc -l)" -lt 2 ] && [ $i -lt 200 ]; do
            sleep 0.05
            i=$((i + 1))
        done
        sleep "$((random % 2)).$((random / 7 % 10))"
        victim=$((random / 3 % 2))
        process=$(ranks_of | sed -n "s/ $victim$//p" | head -n 1)
        begin=$(now) hit=
        if [ -n "$process" ] && kill -9 "$process" 2>/dev/null; then hit=1; fi
        wait $starter
        rc=$?
        if grep -q '^done:' out; then # too late: the next one kills another training
            ends_in_the_same_bits
            rm -rf m
        elif [ "$hit" ]; then
            killed=$((killed + 1))
            ended_in_time "$begin"
            grep -qiE "rank $victim|rank $((1 - victim)) .*lost|PID[ =]$process" err out
            verdict $? "nothing says which rank was lost"
        fi
    done
    what="$kind, $killed kills"
    [ $killed = "$kills" ]; verdict $? "$killed ranks were killed, expected $kills"
    if [ -e m ]; then
        "$mpirun" -n 2 "$program" train --resume m --max-updates 200 >out 2>err <in
    else
        "$mpirun" -n 2 "$program" train --model m $options --max-updates 200 >out 2>err <in
    fi
    rc=$?; exits 0
    ends_in_the_same_bits
    rm -rf m

    # Catches ranks that wait for ever for a machine that says nothing more, and an end that loses what was saved.
    what="$kind, a rank is silent"
    "$mpirun" -n 2 "$program" train --model m $options --max-updates 200 >out 2>err <in &
    starter=$!
    after m/training/step-10
    begin=$(now)
    kill -STOP "$(ranks_of | sed -n 's/ 1$//p' | head -n 1)"
    ends_in_time $starter "$begin"
    mentions "heed: rank 0 on $(uname -n): nothing has been heard of rank 1 on $(uname -n) for 6 seconds"

    # Catches an interrupted mpirun whose ranks do not save.
    # Open MPI passes the signal on after a while, MPICH at once, and its exit code may be 0.
    what="$kind, mpirun is interrupted"
    OMPI_MCA_odls_base_sigkill_timeout=5 "$mpirun" -n 2 "$program" train --resume m --max-updates 1000000 \
        >out 2>err <in &
    starter=$!
    after m/training/step-40
    begin=$(now)
    kill -INT $starter
    ends_in_time $starter "$begin" any
    mentions 'and saved; go on with: heed train --resume m'
    what="$kind, silent, interrupted and resumed"
    all=$(sed -n 's/^stopped after update \([0-9]*\) .*/\1/p' err)
    all=$((${all:-0} / 10 * 10 + 20))
    for model in m whole; do
        "$mpirun" -n 2 "$program" train --resume $model --max-updates $((all > 220 ? all : 220)) >out 2>err <in
        rc=$?; exits 0
    done
    ends_in_the_same_bits
    rm -rf m whole

    # Catches a wish of one rank that the others do not hear of, or that is not saved for.
    what="$kind, asked to stop"
    "$mpirun" -n 2 "$program" train --model m $options --max-updates 1000000 >out 2>err <in &
    starter=$!
    after m/training/step-10
    kill -USR1 "$(ranks_of | sed -n 's/ 1$//p' | head -n 1)"
    wait $starter
    mentions 'and saved; go on with: heed train --resume m'
    "$heed" train --resume m --max-updates 5 >out 2>err <in
    rc=$?; exits 0
    rm -rf m

    # Catches ranks that wait for ever for one that cannot save, and a save that is lost with it.
    if unshare -m true 2>/dev/null; then
        what="$kind, a full disk"
        mkdir disk
        unshare -m sh -c 'mount -t tmpfs -o size=3000k none disk; "$@"; echo $? >code
            ls disk/m/training >saves' sh timeout 60 "$mpirun" -n 2 "$program" train --model disk/m $options \
            --max-updates 1000 >out 2>err <in
        mentions "heed: rank 0 on $(uname -n): cannot write 'disk/m/training/"
        mentions 'No space left on device'
        [ "$(cat code)" != 124 ] && grep -q '^step-' saves; verdict $? "exit $(cat code); $(cat saves)"
        rm -rf disk
    fi
}

found=
for kind in openmpi mpich; do
    command -v "mpirun.$kind" >/dev/null || continue
    program=$tree/build/gcc/$kind/heed-mpi mpirun=mpirun.$kind found="$found $kind"
    what="make MPI=$kind"
    make --no-print-directory -s -C "$tree" MPI=$kind build >out 2>err
    verdict $? "it does not build"
    all_cases
done
[ "$found" ] || { echo "neither Open MPI nor MPICH is installed"; exit 77; }
finish
