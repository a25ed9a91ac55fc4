#!/bin/sh
# cli.sh: the program from outside: stdout, stderr and exit code of each command.
# Takes the program as its argument (build/heed otherwise); closes with `N passed, N failed`.
set -u
. "$(dirname "$0")/case.inc"

# Catches a program that says nothing to someone who does not know it.
run
exits 0; says '^usage: heed <command>'; says '^  selftest '; quiet_err

# Catches a command without help, or help on stderr.
for command in list selftest bench version help; do
    run help $command
    exits 0; says "^usage: heed $command \[options\]"; says '^  -h, --help '; quiet_err
    run $command --help
    exits 0; says "^usage: heed $command \[options\]"; quiet_err
done
run --help
exits 0; says '^usage: heed <command>'

# Catches help that runs over 80 columns.
for command in list selftest bench version help; do "$heed" help $command; done >out 2>err
what='heed help ...'
[ -z "$(awk 'length($0) > 80' out)" ]; verdict $? 'a line is longer than 80 columns'

# Catches an option that stands in no group of a help that has groups.
for command in train translate evaluate; do
    run $command --help
    exits 0; says "'heed $command --help-all' shows every option"; quiet_err
    run $command --help-all
    exits 0; quiet_err
    [ "$(sed -n '/^more:/,/^$/p' out | grep -c -- --)" -le 5 ]
    verdict $? 'an option stands in no group (cli/option_groups.c)'
done

# Catches manual pages and completion that lack a command.
run help --man
exits 0; says '^\.TH HEED 1'; quiet_err
for command in $("$heed" | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    grep -q "heed..$command (1)" out; verdict $? "heed(1) does not name $command"
done
for command in $("$heed" | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    run help --man $command
    exits 0; says '^\.SH SYNOPSIS'; quiet_err
done
run help --completion bash
exits 0; says '^complete .* heed$'; quiet_err
if command -v bash >/dev/null; then
    found=$(bash -c '. ./out; COMP_WORDS=(heed train --arch rn); COMP_CWORD=3; _heed
        echo "${COMPREPLY[@]}"')
    [ "$found" = rnn ]; verdict $? "completion of 'heed train --arch rn' is '$found', expected rnn"
fi
run help --completion zsh
exits 0; says '^#compdef heed$'; quiet_err

# Catches mistakes in the command line that pass, exit other than 2, or dirty stdout.
run benhc
exits 2; complains "heed: unknown command 'benhc'; did you mean 'bench'?"; quiet_out
run xyzzy
exits 2; complains "heed: unknown command 'xyzzy'"; quiet_out
run help bench train
exits 0; says '^usage: heed bench train \[options\]'; quiet_err
run help lab ntm
exits 0; says '^usage: heed lab ntm \[options\]'; quiet_err
run help selftset
exits 2; complains "heed: unknown command 'selftset'; did you mean 'selftest'?"; quiet_out
run selftest --thread 1
exits 2; complains "heed: unknown option '--thread'; did you mean '--threads'?"; quiet_out
complains "try 'heed selftest --help'"
run selftest --threads 65
exits 2; complains "heed: option '--threads' is '65', expected a whole number from 0 to 64"
run selftest --threads
exits 2; complains "heed: option '--threads' needs a value"
run selftest extra
exits 2; complains "heed: unexpected argument 'extra'"
run list
exits 2; complains 'heed: missing argument, expected ops|attention|models'
run list op
exits 2; complains "heed: unknown list 'op'; did you mean 'ops'?"; quiet_out
run bench kernel
exits 2; complains "heed: unknown benchmark 'kernel'; did you mean 'kernels'?"; quiet_out
run list nonsense
exits 2; complains "heed: unknown list 'nonsense', expected ops, attention or models"; quiet_out
run bench --json train
exits 2; complains "heed: 'train' must come before its options: heed bench train [options]"; quiet_out
run bench attention --rows global,band:8,elu --lengths 64,2048,2304
exits 0; quiet_err; says '^band:8  *64 .*tokens/s .*MB .* x dense$'; says '^elu  *time n^.*, memory n^'
run bench attention --rows band:8,strided:8:heads --lengths 32 --both-sides --json
exits 0; says '^{"row":"strided:8:heads","n":32,"forward_ms":.*,"pairs":[0-9]*}$'
run bench attention --rows bnd:8
exits 1; mentions "there is no pattern 'bnd'"; quiet_out
run bench attention --lengths 64,many
exits 2; complains "heed: option '--lengths' has 'many', expected at most 16 numbers from 1 to 1048576"
run bench kernels --only nothing-like-this --threads 1
exits 1; complains "heed: no measurement has 'nothing-like-this' in its name"

# Catches a version that does not say what runs, or an instruction set that cannot be forced.
run --version
exits 0; says '^heed [0-9]*\.[0-9]*\.[0-9]*$'; says '^blas:  *[A-Za-z]'; says '^threads:  *[1-9]'
says '^instruction set: [a-z]'; quiet_err
HEED_ISA=baseline; export HEED_ISA
run version
exits 0; says '^instruction set: baseline$'
HEED_ISA=avx3
run version
exits 0; says '^instruction set: [a-z]'
grep -q "^heed: HEED_ISA is 'avx3', which does not run here; using '[a-z0-9]*'$" err
verdict $? 'HEED_ISA is ignored in silence'
unset HEED_ISA

# Catches an operator list that is empty or lacks its columns.
run list ops
exits 0; says '^softmax  *[0-9]* cases  y'; says '^attention '; quiet_err
[ "$(wc -l <out)" -gt 40 ]; verdict $? 'fewer than 40 operators'

# Catches a mechanism of attention that is not listed, or without its paper and abilities.
run list attention
exits 0; says '^score$'; says '^  additive  *v.tanh(W q + U k)$'; quiet_err
says '^  *Luong et al. 2015; costs .*; can: cross cache weights heads widths$'; says '^  band:W  '
says '^  strided:L\[:merged|heads|layers\]  '
[ "$(grep -c '; can: ' out)" = 46 ]; verdict $? 'not 46 mechanisms'

# Catches a list that programs cannot read, a row that it leaves out, a picture that is none.
run list attention --json
exits 0; quiet_err; [ "$(grep -c '^{"slot":"[a-z]*","name":".*","can":\[".*"\],"paper":".*}$' out)" = 46 ]
verdict $? 'not 46 objects'
says '^{"slot":"pattern","name":"strided",.*"example":"strided:6"}$'
run list attention --output patterns.svg
exits 0; quiet_out; quiet_err; [ "$(grep -c 'class="frame"' patterns.svg)" -ge 28 ]; verdict $? 'not 28 patterns'
run list attention --output patterns.png
exits 2; complains "heed: option '--output' draws an SVG, expected a name like patterns.svg, found 'patterns.png'"
run list attention --output no/where.svg
exits 1; complains "heed: cannot write 'no/where.svg': No such file or directory"
run list ops --json
exits 2; complains "heed: option '--json' has no effect with 'ops': it is of 'heed list attention'"

# Catches a wrong gradient in this build, a summary that scripts cannot read, and a config file or
# its precedence ignored by a command.
run selftest --threads 1
exits 0; says '^[1-9][0-9]* passed, 0 failed$'; says 'error at most 0.01 of'; quiet_err
[ "$(tail -n 1 out | grep -c ' passed, ')" = 1 ]; verdict $? 'the summary is not the last line'
echo '{"threads": 3, "verbose": true}' >config.json
run selftest --config config.json --print-config
exits 0; says '"threads": 3,'; says '"verbose": true'; quiet_err
run selftest --config config.json --print-config --threads 2 --no-verbose
exits 0; says '"threads": 2,'; says '"verbose": false'
echo '{"thread": 3}' >config.json
run selftest --config config.json
exits 1; complains "heed: 'config.json': unknown option 'thread'; did you mean 'threads'?"; quiet_out
run selftest --config missing.json
exits 1; complains "heed: cannot read 'missing.json': No such file or directory"

# Catches benchmark lines that machines cannot read, or fields that are missing.
run bench kernels --threads 1 --only 'add forward' --json
exits 0; quiet_err
says '^{"bench":"add forward+backward","shape":"1x64","threads":1,"value":[0-9.e+-]*,"unit":"us","reference":0.5,"ratio":[0-9.e+-]*,"target":1,"machine":"[^"]*, [a-z0-9]* kernels"}$'
[ "$(wc -l <out)" = 1 ]; verdict $? 'expected one line'

# Catches a model that cannot be measured, lines without their shares of the peak, and workers that
# nobody compares.
run bench decode --preset tiny --d 32 --ff 64 --vocabulary 500 --beam 2 --batch 8 --workers 2 --seconds 0.1 --json
exits 0; quiet_err
for bench in decoding 'decoding memory' 'share of the peak' 'products alone' opening 'two workers'; do
    says "^{\"bench\":\"$bench\",\"shape\":\"tiny int8 beam 2 batch 8\",.*\"value\":[0-9.e+-]*,"
done
[ "$(wc -l <out)" = 6 ]; verdict $? 'expected six lines'

# Catches a table without its columns, and a profile that is not printed or lands among the results.
HEED_PROFILE=1; export HEED_PROFILE
run bench kernels --threads 1 --only 'add forward'
unset HEED_PROFILE
exits 0; says '^bench  *shape  *threads  *value unit  *reference  *ratio target$'
says '^add forward+backward  *1x64  *1 '
grep -q '^operator  *calls  *forward s  *backward s  *share$' err; verdict $? 'no profile on stderr'
grep -q '^add  *[1-9]' err; verdict $? 'the profile lacks add'

# Catches results that are lost in silence, as on a full disk, and noise where a reader had enough.
what='heed list ops >/dev/full'
: >out
"$heed" list ops >/dev/full 2>err </dev/null
rc=$?
exits 1; complains 'heed: cannot write to standard output: No space left on device'
what='heed list ops, into a closed pipe'
{ sleep 0.2; "$heed" list ops 2>err; echo $? >code; } | :
rc=$(cat code)
exits 0; quiet_err
what='heed list ops >&-'
"$heed" list ops >&- 2>err </dev/null
rc=$?
exits 1; complains 'heed: cannot write to standard output: Bad file descriptor'

# Catches a printed config that its own command does not take back.
for command in translate score evaluate train convert inspect 'lab ntm' 'lab pointer' 'bench decode' 'bench train'; do
    # shellcheck disable=SC2086
    run $command --print-config
    exits 0
    cp out config.json
    # shellcheck disable=SC2086
    run $command --config config.json --print-config
    exits 0; same out config.json
done

finish
