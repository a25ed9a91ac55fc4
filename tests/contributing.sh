#!/bin/sh
# Catches examples in CONTRIBUTING.md that do not build or do not work: the pattern, the score and the
# sublayer are cut out of the page, get their lines in the tables of a copy of the sources, and are run.
set -eu
tree=$PWD
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

cp -R include src "$room"
cd "$room"
# Each block begins with the name of its file.
awk '/^```c$/ { inside = 1; file = ""; next } /^```$/ { inside = 0 }
    inside && file == "" && /^\/\* [a-z_]*\.c: / {
        file = $2; sub(/:$/, "", file)
        file = (file ~ /^sublayer/ ? "src/model/" : "src/attention/") file
        print file >"made"
    }
    inside && file != "" { print >file }' "$tree/CONTRIBUTING.md"
sed -i 's/^ *HEED_PATTERN_LOCAL_P,.*/&\n    HEED_PATTERN_PAGES,/; s/^ *HEED_SCORE_LOCATION,.*/&\n    HEED_SCORE_RECTIFIED,/
    s/"cosine", "location"/&, "rectified"/' include/heed/attention.h
sed -i 's/^ *X(pattern_local_p).*/&\n    X(pattern_pages) \\/; s/^ *X(score_location).*/&\n    X(score_rectified) \\/' \
    src/attention/attend.h
echo 'extern const heed_sublayer_class heed__shift_sublayer;' >>src/model/sublayers.h
sed -i 's/^#endif$//' src/model/sublayers.h
echo '#endif' >>src/model/sublayers.h
sed -i 's/&heed__ffn_sublayer,/& \&heed__shift_sublayer,/' src/model/sublayers.c

cat >program.c <<'PROGRAM'
#include <heed/stack.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 10, D = 8 };
static double output(const heed_stack *s, const heed_real *x, int64_t row)
{
    const int64_t n = N;
    heed_tape *t = heed_tape_new(NULL, NULL);
    const heed_segments *rows = heed_segments_new(heed_tape_arena(t), 1, &n);
    heed_flow flow = {.x = heed_variable(t, HEED_SHAPE(N, D), x), .rows = rows};
    heed_tensor *y = heed_stack_apply(t, s, &flow);
    if (heed_backward(t, heed_sum(t, heed_square(t, y), HEED_ALL)))
        printf("%s\n", heed_tape_error(t)->text);
    const double value = y ? (double)heed_tensor_data(y)[row * D] : NAN;
    heed_tape_free(t);
    return value;
}

int main(void)
{
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_params *p = heed_params_new(NULL, &err);
    heed_sublayer_options o = {.mha = {.heads = 2, .score = HEED_SCORE_RECTIFIED},
                               .around = {.place = HEED_NORM_NONE, .residual = true}};
    char text[HEED_OPTION_SPEC_TEXT];
    if (heed_slot_parse(HEED_SLOT_PATTERN, "pages:4+global:1", &o.mha.pattern, &err) ||
        strcmp(heed_slot_format(HEED_SLOT_PATTERN, &o.mha.pattern, text), "pages:4+global:1"))
        printf("%s\n", err.text);
    o.mha.pattern.count = 1; /* pages alone */
    heed_stack pages, shifted;
    heed_stack_init(&pages, arena, D);
    heed_stack_init(&shifted, arena, D);
    heed_scope root = heed_params_scope(p);
    heed_stack_append(&pages, heed_scope_enter(root, "0"), heed_sublayer_class_find("self"), &o);
    heed_stack_append(&shifted, heed_scope_enter(root, "1"), heed_sublayer_class_find("shift"), &o);
    if (heed_params_finish(p, 1, &err))
        printf("%s\n", err.text);
    heed_real x[N * D], other[N * D];
    for (int i = 0; i < N * D; i++)
        other[i] = x[i] = (heed_real)sin(i * i);
    for (int i = 5 * D; i < 6 * D; i++)
        other[i] = 3; /* row 5, of the second page */
    /* Which rows notice: those of its page; the row behind it. */
    for (int i = 0; i < N; i++)
        printf("%d", output(&pages, x, i) != output(&pages, other, i));
    printf(" ");
    for (int i = 0; i < N; i++)
        printf("%d", output(&shifted, x, i) != output(&shifted, other, i));
    printf("\n");
    heed_params_free(p);
    heed_arena_free(arena);
    return 0;
}
PROGRAM
libraries=$(sed -n 's/^Libs.private: //p' "$tree/build/gcc/heed.pc")
# shellcheck disable=SC2046,SC2086
gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -fopenmp -Iinclude -Isrc -o program program.c $(sort -u made) \
    src/attention/registry.c src/model/sublayers.c "$tree/build/gcc/libheed.a" $libraries
found=$(./program)
expected='0000111100 0000011000'
[ "$found" = "$expected" ] || { echo "found '$found', expected '$expected'"; exit 1; }
[ "$(wc -l <made)" = 3 ] || { echo "expected three examples, found: $(cat made)"; exit 1; }
