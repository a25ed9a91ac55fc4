#!/bin/sh
# readme.sh [HEED] [--write]: runs every command of the README, in both languages, and of the pages under docs/
# that are for users, in a folder with small files of the names that they use.  Catches a command that is wrong or
# out of date, output that the program no longer prints (--write puts in what it prints now), a link to nothing,
# and a page that grows too long.
#
#   ```console   `$ command`, and exactly what it prints to standard output
#   ```sh        commands, whatever they print;    | ... | `heed ...` |  one in a table
#   ```c         a program, which compiles and runs
# Trainings are cut to a few updates of a small model; of `make ...` only the target's name is checked.
write=
[ "${2-}" = --write ] && write=1
. "$(dirname "$0")/case.inc"
here=$room/here bin=$room/bin
mkdir "$here" "$bin"
cd "$here" || exit 1

# ---- what the pages take for granted ----
ln -s "$tree/models" "$tree/recipes" "$tree/examples" .
mkdir build
ln -s "$(dirname "$(readlink -f "$heed")")" build/gcc
awk -f "$tree/tests/sentences.awk" -v lines=420 >all.tsv
for part in 'train 1,300' 'val 301,340' 'test 341,380' 'mine 381,420'; do
    sed -n "${part#* }p" all.tsv >"${part% *}.tsv"
    cut -f 1 "${part% *}.tsv" >"${part% *}.en"
    cut -f 2 "${part% *}.tsv" >"${part% *}.de"
done
cp val.tsv dev.tsv
gzip -k train.tsv
cut -f 1 "$tree/recipes/en-de/news.tsv" | head -n 5 >news.en
cut -f 2 "$tree/recipes/en-de/news.tsv" | head -n 5 >news.de
awk -F '\t' '{ print (NR % 2 ? "odd" : "even") "\t" $1 }' train.tsv >questions.tsv
awk -F '\t' '{ print (NR % 2 ? "odd" : "even") "\t" $1 }' val.tsv >questions-dev.tsv
awk -F '\t' '{ n = split($1, w, " "); for (i = 1; i <= n; i++) print w[i], i == 1 ? "B-first" : "O"; print "" }' val.tsv >words.conll
cut -f 1 train.tsv >corpus.txt
cp corpus.txt book.txt
cut -f 1 test.tsv >other.txt
cut -f 1 val.tsv >lines.txt
paste lines.txt lines.txt >alike.tsv
. "$tree/tests/pictures.inc"
mkdir -p photos/cat photos/dog captioned
for i in 1 2 3 4 5 6; do
    awk -v r=$((i * 40)) 'BEGIN { print "P3 8 8 255"; for (k = 0; k < 64; k++) print r, 255 - r, k }' | to_binary >captioned/$i.ppm
    printf '%s.ppm\tA red square\ta red square here\n' $i
done >photos.tsv
cp captioned/[123].ppm photos/cat
cp captioned/[456].ppm photos/dog
cp -r photos/cat more-photos
cp captioned/2.ppm one.png # known by its first bytes
cat >"$bin/heed" <<END
#!/bin/bash
more=()
case \$1 in
train)
    case " \$* " in
    *' --resume '*) ;;
    *' --images '*) more=(--max-updates 2 --warmup 0) ;;
    *' --preset '* | *' --from '* | *' --arch '* | *' --d '*) more=(--max-updates 2 --batch-tokens 128) ;;
    *) more=(--max-updates 2 --batch-tokens 128 --preset tiny) ;;
    esac
    more+=(--threads 1)
    ;;
lab) case " \$* " in *' --preset '*) set -- "\$1" "\$2" --quick "\${@:5}"; more=(--updates 3) ;; esac ;;
bench) [ "\$2" = kernels ] || more=(--seconds 0.01) ;;
esac
exec "$heed" "\$@" "\${more[@]}"
END
chmod +x "$bin/heed"
PATH=$bin:$PATH
export PATH

# try COMMAND: it succeeds; out and err are in the room.
try() {
    what="$page: $1"
    case $1 in
    make\ *)
        make -n -C "$tree" $(printf '%s\n' "$1" | sed 's/^make *//; s/#.*//') >"$room/out" 2>"$room/err"
        ;;
    *) bash -c "set -o pipefail; $1" >"$room/out" 2>"$room/err" </dev/null ;;
    esac
    rc=$?
    cp "$room/out" "$room/err" .
    exits 0
}

# A `console` block: what each command prints is compared with the lines below it, or put there.
console() {
    local command='' line
    : >"$room/said"
    compare() {
        [ "$command" ] || return 0
        try "$command"
        if [ "$write" ]; then
            { printf '$ %s\n' "$command" && cat "$room/out"; } >>"$room/page"
            return 0
        fi
        cp "$room/out" out
        diff "$room/said" "$room/out" >err
        verdict $? 'it prints something else (tests/readme.sh build/heed --write puts that in)'
        : >"$room/said"
    }
    while IFS= read -r line; do
        case $line in
        '$ '*)
            compare
            command=${line#\$ }
            ;;
        *) printf '%s\n' "$line" >>"$room/said" ;;
        esac
    done
    compare
}

c_program() {
    what="$page: the program"
    cat >page.c
    gcc -std=c11 -Wall -Wextra -Werror -I"$tree/include" -o page page.c -L"$(dirname "$(readlink -f "$heed")")" \
        -lheed -Wl,-rpath,"$(dirname "$(readlink -f "$heed")")" >out 2>err &&
        ./page 'I have lost my keys.' >out 2>err && grep -q . out
    verdict $? 'it does not compile or run'
}

run_page() {
    page=$1
    local kind='' line
    : >"$room/page"
    # A page that does not train `m` has it.
    grep -q '^heed train --model m ' "$tree/$page" || heed train --model m --tsv train.tsv >out 2>err
    while IFS= read -r line; do
        case $kind,$line in
        ,'```console' | ,'```sh' | ,'```c')
            kind=${line#'```'}
            : >"$room/block"
            [ "$write" ] && printf '%s\n' "$line" >>"$room/page"
            ;;
        ,*)
            # One command in the last cell of a row.
            case $line in '| '*' | `heed '*) try "$(printf '%s\n' "$line" | sed 's/.*| `\(heed [^`]*\)` |$/\1/')" ;; esac
            [ "$write" ] && printf '%s\n' "$line" >>"$room/page"
            ;;
        *,'```')
            case $kind in
            console) console <"$room/block" ;;
            c) c_program <"$room/block" ;;
            sh) while IFS= read -r line; do [ -z "${line%%#*}" ] || try "$line"; done <"$room/block" ;;
            esac
            [ "$write" ] && { [ $kind = console ] || cat "$room/block"; echo '```'; } >>"$room/page"
            kind=
            ;;
        *) printf '%s\n' "$line" >>"$room/block" ;;
        esac
    done <"$tree/$page"
    if [ "$write" ]; then cp "$room/page" "$tree/$page"; fi
    # Links within the tree.
    for link in $(grep -o '](\([^)#:]*\))' "$tree/$page" | sed 's/](//; s/)//'); do
        what="$page: link to $link"
        [ -e "$tree/$(dirname "$page")/$link" ]
        verdict $? 'it is not there'
    done
    rm -rf m m[0-9] m-* mine numbers
}

: >out
: >err
for page in README.md README.zh-CN.md; do
    what="$page"
    [ "$(wc -l <"$tree/$page")" -lt 150 ]
    verdict $? 'it has 150 lines or more'
done
# The Chinese page has the same commands, with the same output, so they need not run again.
code_of() {
    awk '/^```/ { on = !on } on || /^\| .*\| `heed / { sub(/.*\| `heed /, "heed "); sub(/ +#.*/, ""); print }' "$tree/$1"
}
code_of README.md >"$room/english"
code_of README.zh-CN.md >"$room/chinese"
what='README.zh-CN.md'
diff "$room/english" "$room/chinese" >out
verdict $? 'its commands are not those of README.md'
for page in README.md ${write:+README.zh-CN.md} docs/TRANSLATE.md docs/TRAIN.md docs/INSPECT.md docs/EMBED.md docs/CLASSIFY.md docs/SEE.md; do
    run_page $page
done
finish
