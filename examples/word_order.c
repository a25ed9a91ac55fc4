/* word_order.c: a made-up language pair whose right alignment is known, and how often a model's
 * attention finds it:
 *
 *     word_order make 5000 1          sentence<TAB>translation, 5000 of them, with seed 1
 *     word_order check MODEL TSV      "6123 of 6240 words aligned, 98.1 %"
 *
 * Every word has one translation (w17 is v17).  Sentences have 4 to 12 words of three kinds: an
 * adjective (numbers that 3 divides) stands before its noun (remainder 1) and its translation
 * behind it; two adjectives change places as well.  A word is aligned if the largest of its weights
 * is on the word that it translates; with several heads, the largest of their mean. */
#include <heed/translate.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 150, SHORTEST = 4, LONGEST = 12 };
enum { ADJECTIVE, NOUN, OTHER, KINDS };

/* Whether a group of words that is turned round goes on from word i to the next: "a a n", "a n". */
static bool goes_on(const int *word, int n, int i)
{
    return i + 1 < n && word[i] % KINDS == ADJECTIVE && word[i + 1] % KINDS != OTHER;
}

/* place[i] is where word i of the translation stands in the source. */
static void order_of(const int *word, int n, int *place)
{
    int m = 0;
    for (int begin = 0, end; begin < n; begin = end) {
        for (end = begin; goes_on(word, n, end) && end < begin + 2;)
            end++;
        for (int i = end++; i >= begin; i--)
            place[m++] = i;
    }
}

static void make(int64_t count, uint64_t seed)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed});
    for (int64_t line = 0; line < count; line++) {
        int word[LONGEST], place[LONGEST];
        const uint64_t at = (uint64_t)line * (LONGEST + 1);
        const int n = SHORTEST + (int)heed_rng_below(&rng, at, LONGEST - SHORTEST + 1);
        for (int i = 0; i < n; i++) {
            word[i] = (int)heed_rng_below(&rng, at + 1 + (uint64_t)i, WORDS);
            printf("%sw%d", i ? " " : "", word[i]);
        }
        order_of(word, n, place);
        for (int i = 0; i < n; i++)
            printf("%cv%d", i ? ' ' : '\t', word[place[i]]);
        putchar('\n');
    }
}

/* ---- checking ---- */

struct count {
    int64_t right, all;
};

/* The weight of source word j, on average over the maps, when translation word i was written. */
static double weight(const heed_attention_map *maps, int64_t n, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        if (maps[k].kind == HEED_CROSS)
            sum += (double)maps[k].weight[i * maps[k].keys + j];
    return sum;
}

static heed_status check_pair(const heed_translator *tr, heed_arena *arena, const char *source,
                              const char *target, struct count *c, heed_error *err)
{
    const heed_attention_map *maps;
    heed_tokens from, to;
    heed_status status;
    int64_t found;
    int word[LONGEST], place[LONGEST], n = 0;
    heed_arena_reset(arena);
    for (const char *at = source; at && n < LONGEST; at = strchr(at, ' '), at += at ? 1 : 0)
        word[n++] = atoi(at + 1);
    order_of(word, n, place);
    if ((status = heed_vocab_encode(heed_translator_source(tr), source, strlen(source), arena,
                                    &from, err)) ||
        (status = heed_vocab_encode(heed_translator_target(tr), target, strlen(target), arena, &to,
                                    err)) ||
        (status = heed_engine_attention(heed_translator_engine(tr), &from, &to, arena, &maps,
                                        &found, err)))
        return status;
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int j = 1; j <= n; j++) /* the last is the end of the sentence */
            best = weight(maps, found, i, j) > weight(maps, found, i, best) ? j : best;
        c->right += best == place[i];
        c->all++;
    }
    return HEED_OK;
}

static int check(const char *model, const char *path)
{
    heed_error err = {0};
    struct count c = {0, 0};
    char line[1024];
    heed_translator *tr = heed_translator_open(model, 1, NULL, &err);
    heed_arena *arena = tr ? heed_arena_new(NULL, &err) : NULL;
    FILE *f = arena ? fopen(path, "r") : NULL;
    if (arena && !f)
        snprintf(err.text, sizeof err.text, "cannot read '%.400s'", path);
    while (f && !err.status && fgets(line, sizeof line, f)) {
        char *target = strchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        if (target)
            *target++ = '\0';
        if (target)
            check_pair(tr, arena, line, target, &c, &err);
    }
    if (f)
        fclose(f);
    heed_arena_free(arena);
    heed_translator_free(tr);
    if (err.text[0] || !c.all) {
        fprintf(stderr, "word_order: %s\n", err.text[0] ? err.text : "no pair of sentences");
        return 1;
    }
    printf("%" PRId64 " of %" PRId64 " words aligned, %.1f %%\n", c.right, c.all,
           100 * (double)c.right / (double)c.all);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check(argv[2], argv[3]);
    if (argc != 4 || strcmp(argv[1], "make") != 0) {
        fputs("usage: word_order make COUNT SEED | check MODEL TSV\n", stderr);
        return 2;
    }
    make(strtoimax(argv[2], NULL, 10), strtoumax(argv[3], NULL, 10));
    return ferror(stdout) || fclose(stdout) ? 1 : 0;
}
