#!/bin/sh
# Training with several processes, by each MPI that is installed: the same bits as one process, other
# ranks on resume, and messages of what does not go together.  Skipped where there is none.
. "$(dirname "$0")/case.inc"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
unset MAKEFLAGS MFLAGS

# Lines of 3 to 6 of ten words, and the same from back to front.
awk 'BEGIN {
    srand(1)
    for (i = 0; i < 300; i++) {
        n = 3 + int(rand() * 4); s = ""; t = ""
        for (k = 0; k < n; k++) { w = "w" int(rand() * 10); s = s (k ? " " : "") w; t = w (k ? " " : "") t }
        print s >"s"; print t >"t"
    }
}'
common="--source s --target t --hold-out 10 --recipe paper --tokens whitespace --encoder-layers 1
    --decoder-layers 1 --d 16 --batch-tokens 64 --warmup 20 --threads 1 --valid-every 10 --valid-beam 1
    --valid-lines 2 --max-updates 20 --average 2"
stack="$common --ff 16 --heads 2 --longest 32"

# ranks N ARGUMENT...: N processes of heed-mpi.
ranks() {
    n=$1
    shift
    what="$n ranks: heed-mpi $*"
    timeout 120 "$mpirun" -n "$n" "$program" "$@" >out 2>err <in
    rc=$?
}
# The exit code is the starter's: each has its own.
fails() { [ "$rc" != 0 ] && [ "$rc" != 124 ]; verdict $? "exit $rc, expected another"; }
# same_run A B: what the runs leave.
same_run() {
    for file in model.safetensors config.json training/options.json training/step-20/model.safetensors \
        training/step-20/moments.safetensors; do
        same "$1/$file" "$2/$file"
    done
}

# shellcheck disable=SC2086
all_cases() {
    # Catches every rank that computes, draws, reads or averages something of its own.
    ranks 2 train --model two $stack --dropout 0.1 --ema 0.9 --norm batch; exits 0
    run train --model one $stack --dropout 0.1 --ema 0.9 --norm batch --accumulate 2; exits 0
    same_run one two
    ranks 2 train --model two-rnn $common --arch rnn --attention-normaliser hard; exits 0
    run train --model one-rnn $common --arch rnn --attention-normaliser hard --accumulate 2; exits 0
    same_run one-rnn two-rnn
    language="--arch decoder --text s --valid-text t --tokens whitespace --context 8 --decoder-layers 1 --d 16 --ff 16
        --heads 2 --batch-tokens 64 --warmup 5 --threads 1 --valid-every 10 --max-updates 20 --dropout 0.1"
    ranks 2 train --model two-lm $language; exits 0
    run train --model one-lm $language --accumulate 2; exits 0
    same_run one-lm two-lm

    # Catches ranks that train while rank 0 only looks, moments that are not one whole, and parts that change a bit.
    ranks 2 train --model dry $stack --dry-run; exits 0
    says '^memory '
    [ ! -e dry ]; verdict $? "--dry-run made a model"
    ranks 2 train --model shards $stack --dropout 0.1 --ema 0.9 --norm batch --shard-optimizer; exits 0
    same one/training/step-20/moments.safetensors shards/training/step-20/moments.safetensors
    same one/model.safetensors shards/model.safetensors

    # Catches a save that only as many ranks can go on with, and one that others go on with unasked.
    run train --model whole $stack --accumulate 4; exits 0
    ranks 2 train --model parts $stack --accumulate 2 --max-updates 7; exits 0
    ranks 4 train --resume parts --max-updates 13; exits 0
    run train --resume parts --max-updates 20; exits 0
    same whole/training/step-20/model.safetensors parts/training/step-20/model.safetensors
    same whole/training/step-20/moments.safetensors parts/training/step-20/moments.safetensors
    ranks 3 train --resume parts --max-updates 30; fails
    mentions "heed: rank "
    mentions "4 batches in an update cannot be shared by 3 processes"
    ranks 2 train --resume parts --accumulate 1 --max-updates 30; fails
    mentions "--accumulate cannot change on resume"

    # Catches ranks that compute something together that nobody asked for.
    what='options that differ'
    timeout 60 "$mpirun" -n 1 "$program" train --model m $stack --rate 0.1 : \
        -n 1 "$program" train --model m $stack --rate 0.2 >out 2>err <in
    mentions "the options differ: '--rate 0.2' here, '--rate 0.1' on rank 0"
    [ ! -e m ]; verdict $? "a model was made"
    if unshare -m true 2>/dev/null; then
        what='data that differs'
        tac t >other
        timeout 60 "$mpirun" -n 1 "$program" train --model m $stack : -n 1 unshare -m sh -c \
            'mount --bind other t && shift && exec "$0" "$@"' "$program" x train --model m $stack >out 2>err <in
        mentions "heed: rank 1 on $(uname -n): the data differs: training target bytes"
        [ ! -e m ]; verdict $? "a model was made"
    fi

    # Catches versions that train together.
    what='another version'
    version=$("$program" --version | sed -n '1s/^heed //p')
    LC_ALL=C sed "s/\\x00$version\\x00/\\x00${version%?}x\\x00/" "$program" >other-heed && chmod +x other-heed
    timeout 60 "$mpirun" -n 1 "$program" train --model m $stack : -n 1 ./other-heed train --model m $stack \
        >out 2>err <in
    rc=$?; fails
    mentions "rank 1 on $(uname -n) is heed ${version%?}x in float, and rank 0 is heed $version in float"
    [ ! -e m ]; verdict $? "a model was made"

    # Catches a program that trains as many models as there are processes.
    what='mpirun of the ordinary program'
    timeout 60 "$mpirun" -n 2 "$heed" train --model m $stack >out 2>err <in
    mentions "2 processes were started, and this program trains with one: start heed-mpi instead"
    [ ! -e m ]; verdict $? "a model was made"
    # Catches a program that cannot do without mpirun.
    "$program" train --model alone $stack >out 2>err <in
    rc=$?; exits 0
    "$program" --version >out 2>err; rc=$?; exits 0
    says '^processes: .*MPI'
    rm -rf shards one two one-rnn two-rnn one-lm two-lm whole parts alone
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
