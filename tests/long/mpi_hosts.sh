#!/bin/sh
# Trains on two hosts, which are network namespaces joined by a cable: bits of one process, whatever the network does;
# rank 1 has neither rank 0's directory nor its working one; and without the cable both end.  As root, with iproute2
# and /dev/net/tun.
. "$(dirname "$0")/../case.inc"
tree=$(cd "$tree/.." && pwd)
unset MAKEFLAGS MFLAGS
[ "$(id -u)" = 0 ] && command -v ip >/dev/null && [ -c /dev/net/tun ] && ip netns list >/dev/null 2>&1 || {
    echo "needs root, ip netns and /dev/net/tun"
    exit 77
}
awk 'BEGIN {
    srand(1)
    for (i = 0; i < 300; i++) {
        n = 3 + int(rand() * 4); s = ""; t = ""
        for (k = 0; k < n; k++) { w = "w" int(rand() * 10); s = s (k ? " " : "") w; t = w (k ? " " : "") t }
        print s >"s"; print t >"t"
    }
}'
mkdir models
options="--source $room/s --target $room/t --hold-out 10 --recipe paper --tokens whitespace --encoder-layers 2
    --decoder-layers 2 --d 64 --ff 128 --heads 2 --longest 32 --batch-tokens 128 --warmup 20 --threads 1
    --valid-every 10 --valid-beam 1 --valid-lines 2 --max-updates 20 --average 2 --dropout 0.1"
# shellcheck disable=SC2086
run train --model models/one $options --accumulate 2; exits 0

# on KIND [MBIT MICROSECONDS] -- ARGUMENT...
on() {
    what="two hosts, $*"
    MPI=$1 program=$tree/build/gcc/$1/heed-mpi
    shift
    set -- "$@" end
    wire=
    while [ "$1" != -- ]; do wire="$wire $1"; shift; done
    shift
    words=
    while [ "$1" != end ]; do words="$words $1"; shift; done
    # shellcheck disable=SC2086
    MPI=$MPI HIDDEN=$room/models timeout 300 sh "$tree/tests/long/two_hosts.sh" $wire -- "$program" $words >out 2>err <in
    rc=$?
}

# Catches ranks that wait for ever behind a cable that carries nothing more, on either side of it.
cut() {
    what="$1, the cable is cut" program=$tree/build/gcc/$1/heed-mpi
    rm -rf models/two
    # shellcheck disable=SC2086
    MPI=$1 HIDDEN=$room/models WIRE=$room/cable timeout 300 sh "$tree/tests/long/two_hosts.sh" 1000 100 -- \
        "$program" train --model models/two $options --max-updates 100000 >out 2>err <in &
    hosts=$! i=0
    while [ ! -e models/two/training/step-10 ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done
    kill -STOP "$(cat cable)"
    i=0
    while pgrep -f "^$program " >/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done
    [ -z "$(pgrep -f "^$program ")" ]; verdict $? "a rank goes on for 10 s"
    mentions 'nothing has been heard of rank 1 on heed-b-'
    # The starter waits for the other host.
    pgrep -f "^mpirun\\.$1 .*$program" | xargs -r kill -9
    kill -CONT "$(cat cable)"
    wait $hosts
}
for kind in openmpi mpich; do
    make --no-print-directory -s -C "$tree" MPI=$kind build >out 2>err
    for wire in "" "1000 100" "1000 1000" "100 1000"; do
        rm -rf models/two
        # shellcheck disable=SC2086
        on $kind $wire -- train --model models/two $options; exits 0
        same models/one/model.safetensors models/two/model.safetensors
        same models/one/training/step-20/moments.safetensors models/two/training/step-20/moments.safetensors
    done
    on $kind -- train --resume models/two --max-updates 30; exits 0
    cut $kind
done
finish
