#!/bin/sh
# Catches a public function that crashes where what it works on could not be opened: each one of the headers is
# called in a process of its own with zero in place of every argument, an error excepted.  The calls are made
# from the compiler's list of prototypes, so that no function can be forgotten.
set -eu
out=build/gcc
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
for header in include/heed/*.h; do
    echo "#include <heed/${header##*/}>"
done >"$room/all.c"
gcc -std=c11 -Iinclude -fsyntax-only -aux-info "$room/prototypes" "$room/all.c"
{
    cat "$room/all.c"
    cat <<'END'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static heed_error err;
END
    # `extern T name (A, B (*)(C, D));` becomes a call with (A){0}, (B (*)(C, D)){0}.
    sed -n 's|^/\* include/heed/[^ ]* \*/ extern \(.*\);.*|\1|p' "$room/prototypes" | LC_ALL=C sort -u | awk '
        match($0, /heed_[a-z0-9_]* \(/) {
            name = substr($0, RSTART, RLENGTH - 2)
            rest = substr($0, RSTART + RLENGTH)
            sub(/\)$/, "", rest)
            depth = 0; argument = ""; arguments = ""
            for (i = 1; i <= length(rest) + 1; i++) {
                c = substr(rest, i, 1)
                if (c == "(") depth++
                if (c == ")") depth--
                if ((c == "," && !depth) || c == "") {
                    sub(/^ */, "", argument)
                    value = argument == "heed_error *" ? "&err" : "(" argument "){0}"
                    if (argument != "void" && argument != "...")
                        arguments = arguments (arguments == "" ? "" : ", ") value
                    argument = ""
                } else {
                    argument = argument c
                }
            }
            printf "static void call_%s(void) { (void)%s(%s); }\n", name, name, arguments
            list = list "    {\"" name "\", call_" name "},\n"
        }
        END { printf "static const struct { const char *name; void (*call)(void); } all[] = {\n%s};\n", list }'
    cat <<'END'
int main(void)
{
    int failed = 0, count = sizeof all / sizeof *all;
    for (int i = 0; i < count; i++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            all[i].call();
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            printf("FAILED %s: status %d\n", all[i].name, status);
            failed++;
        }
    }
    printf("%d passed, %d failed\n", count - failed, failed);
    return failed != 0;
}
END
} >"$room/calls.c"
[ "$(grep -c '^static void call_' "$room/calls.c")" = "$(cat tests/abi.txt tests/abi-files.txt | LC_ALL=C sort -u | wc -l)" ] || {
    echo 'not every public function of tests/abi*.txt is called'
    exit 1
}
gcc -std=gnu11 -w -Iinclude "$room/calls.c" -o "$room/calls" -L"$out" -lheed-files -lheed \
    -Wl,-rpath,"$PWD/$out" -Wl,-rpath-link,"$PWD/$out"
"$room/calls" </dev/null
