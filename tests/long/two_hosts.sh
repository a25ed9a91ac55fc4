#!/bin/sh
# two_hosts.sh [MBIT_PER_SECOND MICROSECONDS] -- COMMAND...: runs a program by `mpirun -n 2`, one process in each of
# two network namespaces that are joined by a cable of that speed and delay (wire.c; without them a veth pair, as
# fast as it is).  The second host has another name, and none of what is under the folder that HIDDEN names.
# As root, with iproute2.  MPI: openmpi (if not set) or mpich.  WIRE: a file for the number of the cable's process,
# which carries nothing while it is stopped.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
room=$(mktemp -d)
a=heed-a-$$ b=heed-b-$$ wire=
clear() {
    [ -z "$wire" ] || kill "$wire" 2>/dev/null || true
    ip netns del $a 2>/dev/null || true
    ip netns del $b 2>/dev/null || true
    rm -rf "$room"
}
trap clear EXIT
trap 'exit 130' INT TERM
ip netns add $a
ip netns add $b
if [ "$1" != -- ]; then
    ${CC:-gcc} -O2 -o "$room/wire" "$tree/tests/long/wire.c"
    "$room/wire" "$1" "$2" >"$room/ready" &
    wire=$!
    [ -z "${WIRE-}" ] || echo $wire >"$WIRE"
    while [ ! -s "$room/ready" ]; do kill -0 $wire && sleep 0.05; done
    shift 2
else
    ip link add heed-a type veth peer name heed-b
fi
shift
for side in a b; do
    host=$(eval echo \$$side)
    ip link set heed-$side netns "$host"
    ip -n "$host" addr add 10.99.0.$([ $side = a ] && echo 1 || echo 2)/24 dev heed-$side
    ip -n "$host" link set heed-$side mtu 9000 up
    ip -n "$host" link set lo up
done

# What a starter uses for ssh: HOST, perhaps with options before it, and a command.
cat >"$room/agent" <<END
#!/bin/sh
while [ "\$1" != 10.99.0.1 ] && [ "\$1" != 10.99.0.2 ]; do shift; done
host=$b
[ "\$1" = 10.99.0.2 ] || host=$a
shift
exec ip netns exec \$host unshare -u -m sh -c \\
    'hostname \$0; [ -z "${HIDDEN-}" ] || [ \$0 = $a ] || mount -t tmpfs none "${HIDDEN-}"; eval "\$*"' \$host "\$@"
END
chmod +x "$room/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_TLS=tcp,self
case ${MPI:-openmpi} in
openmpi)
    ip netns exec $a unshare -u sh -c 'hostname $0; exec "$@"' $a mpirun.openmpi --mca plm_rsh_agent "$room/agent" \
        -H 10.99.0.1:1,10.99.0.2:1 --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 --mca pml ob1 \
        --mca oob_tcp_if_include 10.99.0.0/24 --bind-to none -n 2 "$@"
    ;;
mpich)
    ip netns exec $a unshare -u sh -c 'hostname $0; exec "$@"' $a mpirun.mpich -launcher ssh -launcher-exec "$room/agent" \
        -iface heed-a -hosts 10.99.0.1,10.99.0.2 -ppn 1 -n 2 "$@"
    ;;
esac
