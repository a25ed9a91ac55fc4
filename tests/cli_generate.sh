#!/bin/sh
# cli_generate.sh: `heed generate` and `heed score --text`: what is printed, in which form, and what
# is refused; a published model writes what its own program writes.
set -u
. "$(dirname "$0")/case.inc"

awk -f "$tree/tests/sentences.awk" -v lines=300 | cut -f1 >text.txt
# shellcheck disable=SC2086
train() { # FOLDER OPTION...
    folder=$1
    shift
    run train --arch decoder --model "$folder" --text text.txt --context 32 --decoder-layers 1 --d 32 \
        --ff 64 --heads 2 --batch-tokens 256 --rate 0.01 --threads 1 "$@"
    exits 0
}
train m --tokens characters --max-updates 150
train words --tokens whitespace --max-updates 60

# Catches a prompt that is not printed, and texts that differ by where the prompt comes from.
run generate --model m --prompt 'The man' --temperature 0 --max-tokens 50 --threads 1
exits 0; says '^The man'; cp out greedy
printf 'The man\n' >prompt
run generate --model m --temperature 0 --max-tokens 50 --threads 1 prompt
exits 0; same greedy out
cp prompt in
run generate --model m --temperature 0 --max-tokens 50 --threads 1 -
exits 0; same greedy out
: >in
run generate --model m --prompt 'The man' --temperature 0 --max-tokens 50 --threads 2
exits 0; same greedy out
run generate --model m --max-tokens 20
exits 0; [ "$(wc -c <out)" -ge 20 ]; verdict $? 'no text without a prompt'

# Catches sampling that does not follow the seed, and samples that follow each other.
run generate --model m --prompt The --samples 3 --max-tokens 40 --seed 5
exits 0; cp out three
run generate --model m --prompt The --samples 3 --max-tokens 40 --seed 5 --json
exits 0; [ "$(wc -l <out)" = 3 ]; verdict $? 'not an object a line'
says '"stop":"length"'; says '^{"text":"The'; says '"log_probs":\[-'; says '"prompt":"The"'
run generate --model m --prompt The --samples 3 --max-tokens 40 --seed 6
exits 0; ! cmp -s out three; verdict $? 'another seed writes the same'
run generate --model m --prompt The --max-tokens 40 --seed 5
exits 0; head -c 40 out >one; head -c 40 three >first; same one first

# Catches a text that goes on behind what ends it, and a stop that is not told.
run generate --model m --prompt The --temperature 0 --max-tokens 60 --stop . --json
exits 0; says '"stop":"string"'; ! grep -q '"text":"[^"]*\.' out
verdict $? 'the text to stop at is in it'
run generate --model words --prompt 'The man' --max-tokens 400 --json
exits 0; says '"stop":"eos"'
run generate --model words --prompt 'The man' --max-tokens 60 --past-end
exits 0; [ "$(wc -l <out)" -gt 1 ]; verdict $? 'no line end where a line ends'
run generate --model m --prompt 'The man' --max-tokens 5 --timing
exits 0; mentions '5 tokens in'

# Catches a program of the library's that writes something else.
story=$(dirname "$heed")/examples/story
if [ -x "$story" ]; then
    what='examples/story'
    "$story" m The >out 2>err
    rc=$?; exits 0; says '^The'; says '^-- [0-9]* tokens$'; sed '/^-- /d' out >told
    run generate --model m --prompt The --max-tokens 200 --threads 1
    same told out
    what='examples/story without a model'
    "$story" >out 2>err
    rc=$?; exits 1; mentions 'story: '
fi

# Catches a context that ends where it is full: 32 tokens, and a prompt that is longer.
run generate --model m --prompt "$(head -n 3 text.txt)" --max-tokens 200 --json --temperature 0
exits 0; says '"stop":"length"'; tokens=$(sed 's/.*"tokens":\[\([^]]*\)\].*/\1/' out | tr ',' '\n' | wc -l)
what='tokens beyond the context'; [ "$tokens" = 200 ]; verdict $? "found $tokens, expected 200"

# Catches int8 that writes no text, and a converted model that scores otherwise.
run convert m m8 --quantize int8
exits 0
run generate --model m8 --prompt 'The man' --temperature 0 --max-tokens 50
exits 0; says '^The man'
run score --model m --text text.txt --json
exits 0; says '^{"nll": [0-9.]*, "tokens": [0-9]*, "bytes": [0-9]*, "unknown": 0, "perplexity": '
perplexity() { sed 's/.*"perplexity": \([0-9.]*\).*/\1/' out; }
fp32=$(perplexity)
run score --model m8 --text text.txt --json
int8=$(perplexity)
what='perplexity of int8'
awk -v a="$fp32" -v b="$int8" 'BEGIN { exit !(a > 1 && a < 6 && b > a * 0.98 && b < a * 1.02) }'
verdict $? "$int8, and $fp32 of fp32"
run score --model words --text text.txt
exits 0; says '^loss [0-9.]* nats a token, perplexity '
gzip -c text.txt >text.gz
run score --model m --text text.gz --json
exits 0; [ "$(perplexity)" = "$fp32" ]; verdict $? 'a .gz scores otherwise'

# Catches attention of a language model that cannot be looked at, or a row that sees what follows.
run inspect --model m --attention 'The man' --pieces
exits 0; says 'Decoder self-attention'; says '^1 '
run inspect --model m --attention 'The man' --json --output a.svg
exits 0; says '"text":"The man"'; says '"kind":"decoder","layer":1,"head":2'; says '"weights":\[\[0.[0-9]*,0.[0-9]*,0.0\]'
grep -q 'Decoder self-attention' a.svg; verdict $? 'no picture'
run inspect --model words --attention 'The man loves' --layer 1 --head 2
exits 0; says 'layer 1, head 2'
run inspect --model m --attention 'The man' --target 'Der Mann'
exits 1; mentions "'--target' is for translations"

# Catches benchmarks of language models that do not run.
run bench generate --preset char --vocabulary 100 --seconds 0 --quantize int8 --json
exits 0; says '"bench":"writing","shape":"char int8"'; says '"bench":"reading weights"'; says '"bench":"prompt"'
run bench train --arch decoder --preset char --vocabulary 100 --threads 1 --turns 1 --batch-tokens 64 --json
exits 0; says '"bench":"training","shape":"char","threads":1,'
run bench generate --preset char --context 8
exits 1; mentions '--context is 8, expected 34 at least'

# Catches usage that is taken and ignored, and rubbish.
bad() { # CODE TEXT OPTION...
    code=$1 text=$2
    shift 2
    run "$@"
    exits "$code"; mentions "$text"; quiet_out
}
printf '\377\376' >broken
: >empty
bad 2 "option '--prompt' and a file cannot stand together" generate --model m --prompt a prompt
bad 2 "option '--stop' is empty" generate --model m --stop ''
bad 2 'have no effect with --temperature 0' generate --model m --temperature 0 --top-k 3
bad 1 'the prompt is not UTF-8 (byte 1)' generate --model m broken
bad 1 "cannot read the prompt 'nowhere'" generate --model m nowhere
bad 2 "option '--top-p' is '2'" generate --model m --top-p 2
bad 1 'cannot open the model' generate --model nowhere --prompt a
bad 2 "option '--text' cannot stand with '--source'" score --model m --text text.txt --source a
bad 2 "option '--json' needs '--text'" score --model m --json --source a --target b
bad 2 "are for translations" score --model m --text text.txt --per-token
bad 1 "'empty' is empty, expected text" score --model m --text empty
bad 1 "cannot read 'nowhere'" score --model m --text nowhere
awk -f "$tree/tests/sentences.awk" -v lines=200 >pairs.tsv
run train --model pairs --tsv pairs.tsv --hold-out 10 --vocab-size 100 --encoder-layers 1 \
    --decoder-layers 1 --d 16 --ff 16 --heads 2 --max-updates 1 --warmup 0 --threads 1
exits 0
bad 1 'is no language model' generate --model pairs --prompt a
run generate --model m --prompt '' --max-tokens 3 empty
exits 2
run generate --model m --max-tokens 3 empty
exits 0
run generate --help
exits 0; says 'its last half is read again'
if [ -w /dev/full ]; then
    "$heed" generate --model m --prompt The --max-tokens 10 >/dev/full 2>err
    rc=$? what='heed generate >/dev/full'
    exits 1; mentions 'cannot write to standard output'
fi
"$heed" generate --model m --prompt The --max-tokens 100000 2>err | head -c 20 >out
what='heed generate | head'; quiet_err; [ "$(wc -c <out)" = 20 ]; verdict $? 'no text'

# Catches a published model read wrongly: greedy text of llama2.c's own stories260K.
stories=${DATA:-nowhere}/stories260K
if [ -r "$stories/stories260K.bin" ]; then
    run generate --model "$stories" --temperature 0 --max-tokens 200 --threads 1
    exits 0
    says '^Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball. She wanted to play with it, but it was too high.$'
    run train --model tuned --from "$stories" --text text.txt --max-updates 2 --threads 1
    exits 0
    run generate --model tuned --prompt 'Once upon' --max-tokens 5 --temperature 0
    exits 0; prints 'Once upon a time, there was'
    run score --model "$stories" --text text.txt --threads 1
    exits 0; says "perplexity"
    run generate --model "$stories" --temperature 0 --max-tokens 200 --threads 1
    says "^Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do."
    mv out wanted
    # Catches GGUF or Hugging Face's Llama read wrongly: the same model in their forms writes the same text, and
    # where the weights are quantised, the same log P as a reading of the file in float64.
    python3 "$tree/tests/stories_forms.py" "$stories/stories260K.bin" "$stories/tok512.bin" forms
    for form in f32 f16 hugging-face; do
        run generate --model forms/$form --temperature 0 --max-tokens 200 --threads 1
        exits 0; same wanted out
    done
    for form in q8_0 q4_0; do
        run generate --model forms/$form --temperature 0 --max-tokens 40 --threads 1 --json
        exits 0
        what="log P of $form"
        python3 - "$tree/tests/stories_forms.py" forms/$form/model.gguf <<'END'
import json, subprocess, sys
said = json.load(open('out'))
ids = [str(i) for i in [1] + said['tokens']]
wanted = subprocess.run([sys.executable, sys.argv[1], '--log-probs', sys.argv[2]] + ids, capture_output=True, text=True)
wanted = [float(p) for p in wanted.stdout.split()]
sys.exit(len(wanted) != 40 or max(abs(p - q) for p, q in zip(said['log_probs'], wanted)) > 1e-4)
END
        verdict $? 'another log P than the reading in float64'
    done
else
    echo 'skipped: greedy text of stories260K; DATA=DIR has the folder stories260K'
fi

finish
