#!/bin/sh
# recipes/cluster/translate.sh: the lines of one `heed translate`, from four workers of which one is killed.
. "$(dirname "$0")/case.inc"
script=$tree/recipes/cluster/translate.sh
model=$tree/models/en-de
export HEED="$heed"

awk 'BEGIN { for (i = 1; i <= 200; i++) print "There are " i " apples in the garden." }' >lines
printf 'the last line has no end' >>lines
"$heed" translate --model "$model" --threads 1 <lines >whole
on() {
    what="translate.sh $*"
    sh "$script" "$@" >out 2>err <in
    rc=$?
}

# Catches parts that are lost, doubled or put together in another order, and a worker that begins anew.
on split lines parts 20; exits 0
set -- parts/*.in
[ $# = 11 ]; verdict $? "$# parts, expected 11"
for i in 0 1 3; do on work parts $i 4 "$model" --threads 1; exits 0; done
on join parts joined; exits 1
complains "translate.sh: 3 parts are not done: start their workers again"
# A stand-in for heed that is killed when half of its part is written.
cat >killed <<'END'
#!/bin/sh
head -n 7
kill -9 $$
END
chmod +x killed
HEED=$PWD/killed on work parts 2 4 "$model"
[ "$rc" != 0 ]; verdict $? "a worker that was killed has not failed"
on join parts joined; exits 1
touch -d '2000-01-01' parts/000000000.out
on work parts 2 4 "$model" --threads 1; exits 0
on work parts 0 4 "$model" --threads 1; exits 0
[ "$(stat -c %Y parts/000000000.out)" = "$(date -d 2000-01-01 +%s)" ]; verdict $? "a part was done twice"
on join parts joined; exits 0
same whole joined
[ ! -e parts ]; verdict $? "the parts are left"

# Catches a translation that has lost a line.
printf '#!/bin/sh\nhead -n 1\n' >short
chmod +x short
HEED=$PWD/short on "$model" lines short.out 2; exits 1
[ ! -e short.out ]; verdict $? "a file with missing lines was made"
on "$model" lines short.out 2 --threads 1; exits 0
same whole short.out

# Catches an empty file, and parts of another one.
: >nothing
on "$model" nothing none 2; exits 0
[ -e none ] && [ ! -s none ]; verdict $? "the translation of nothing is not empty"
on split lines parts 50; exits 0
head -n 5 lines >other
on split other parts; exits 1
complains "translate.sh: 'parts' has parts of another file: remove it"
on; [ "$rc" = 2 ]; verdict $? "exit $rc, expected 2"
on "$model" lines x nine; exits 1
finish
