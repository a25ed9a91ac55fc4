#!/bin/sh
# deb.sh: the Debian packages of `make deb` install on a bare Debian 12, and work there: the program
# translates with the model that comes with it, finds its manual page, and a program outside is
# compiled against libheed-dev.  Skipped without root or mmdebstrap.
set -u
if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
    echo 'deb.sh: skipped: it takes root and mmdebstrap to make a bare Debian'
    exit 77
fi
machine=$(mktemp -d)
trap 'umount -l "$machine/proc" 2>/dev/null; rm -rf --one-file-system "$machine"' EXIT
passed=0 failed=0
# inside WHAT COMMAND: a command of the bare machine succeeds.
inside() {
    if chroot "$machine" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive sh -c "cd /tmp && $2" >"$machine/tmp/out" 2>&1; then
        passed=$((passed + 1))
    else
        echo "failed: $1"
        cat "$machine/tmp/out"
        failed=$((failed + 1))
    fi
}
mmdebstrap --quiet --variant=apt bookworm "$machine" /etc/apt/sources.list.d/debian.sources || exit 1
mount -t proc proc "$machine/proc"
cp /etc/resolv.conf /etc/hosts "$machine/etc/" 2>/dev/null
cp /etc/apt/apt.conf.d/99* "$machine/etc/apt/apt.conf.d/" 2>/dev/null
rm -f build/deb/*dbgsym*
cp build/deb/*.deb tests/install/outside.c "$machine/tmp/"
inside 'heed installs' 'apt-get update -qq && apt-get install -y -qq ./heed_*.deb'
inside 'it translates' '[ "$(echo "Good morning!" | heed translate)" = "Guten Morgen!" ]'
inside 'it has manual pages and completion' \
    '[ -s /usr/share/man/man1/heed-train.1.gz ] && [ -s /usr/share/bash-completion/completions/heed ]'
inside 'heed-mpi installs, and knows its MPI' 'apt-get install -y -qq ./heed-mpi_*.deb && heed-mpi --version | grep "Open MPI"'
inside 'the library installs' 'apt-get install -y -qq gcc libc6-dev pkgconf ./libheed*.deb'
inside 'a program is compiled and runs' \
    'gcc -o outside outside.c $(pkg-config --cflags --libs heed) && ./outside | grep "loss 5"'
inside 'they can be removed' 'apt-get remove -y -qq heed libheed0 && [ ! -e /usr/bin/heed ]'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
