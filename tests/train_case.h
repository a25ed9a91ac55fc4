/* train_case.h: a training small enough to run hundreds of times: sequences of words to be
 * reversed, in a folder of the test's own.  Include cmocka.h first. */
#ifndef HEED_TESTS_TRAIN_CASE_H
#define HEED_TESTS_TRAIN_CASE_H

#include <ftw.h>
#include <heed/heed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char room[64]; /* the folder */

static const char *in_room(const char *name)
{
    static char path[8][256];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof *path, "%s/%s", room, name);
    return p;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Lines of 3 to 6 of ten words, and the same from back to front. */
static void write_pairs(const char *source, const char *target, int pairs, uint64_t seed)
{
    FILE *s = fopen(source, "w"), *t = fopen(target, "w");
    heed_rng_key key = {.seed = seed};
    heed_rng rng = heed_rng_stream(&key);
    uint64_t at = 0;
    assert_true(s && t);
    for (int i = 0; i < pairs; i++) {
        int word[6], n = 3 + (int)heed_rng_below(&rng, at++, 4);
        for (int k = 0; k < n; k++)
            word[k] = (int)heed_rng_below(&rng, at++, 10);
        for (int k = 0; k < n; k++) {
            fprintf(s, "w%d%c", word[k], k + 1 < n ? ' ' : '\n');
            fprintf(t, "w%d%c", word[n - 1 - k], k + 1 < n ? ' ' : '\n');
        }
    }
    assert_int_equal(fclose(s) | fclose(t), 0);
}

static int make_room(void **state)
{
    (void)state;
    /* In memory where that can be: a save syncs a dozen times, which a disk makes slow. */
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(room, sizeof room, "%s/heed-train-XXXXXX", place);
    if (!mkdtemp(room))
        return -1;
    write_pairs(in_room("train.s"), in_room("train.t"), 60, 1);
    write_pairs(in_room("valid.s"), in_room("valid.t"), 6, 2);
    return 0;
}

static int clear_room(void **state)
{
    (void)state;
    remove_tree(room);
    return 0;
}

/* The defaults of these tests and what is added to them: pairs of words, ended by NULL. */
static inline heed_recipe recipe_with(heed_arena *arena, const char *const *more)
{
    const char *words[96] = {"--source",
                             in_room("train.s"),
                             "--target",
                             in_room("train.t"),
                             "--valid-source",
                             in_room("valid.s"),
                             "--valid-target",
                             in_room("valid.t"),
                             "--recipe",
                             "paper",
                             "--tokens",
                             "whitespace",
                             "--encoder-layers",
                             "1",
                             "--decoder-layers",
                             "1",
                             "--d",
                             "16",
                             "--ff",
                             "16",
                             "--heads",
                             "2",
                             "--longest",
                             "32",
                             "--batch-tokens",
                             "64",
                             "--warmup",
                             "20",
                             "--threads",
                             "1",
                             "--valid-every",
                             "10",
                             "--valid-metric",
                             "loss",
                             "--valid-lines",
                             "2",
                             "--valid-beam",
                             "1",
                             "--log-every",
                             "5",
                             "--max-updates",
                             "30",
                             "--average",
                             "2",
                             "--average-kind",
                             "last"};
    int n = 0;
    while (words[n])
        n++;
    for (int i = 0; more && more[i]; i++)
        words[n++] = more[i];
    /* The names of files must outlive this call. */
    for (int i = 1; i < 8; i += 2) {
        char *copy = heed_arena_allocate(arena, strlen(words[i]) + 1);
        assert_non_null(copy);
        words[i] = strcpy(copy, words[i]);
    }
    heed_recipe r;
    heed_error err = {0};
    if (heed_recipe_parse(&r, n, words, arena, &err))
        fail_msg("%s", err.text);
    return r;
}
#define MORE(...) ((const char *const[]){__VA_ARGS__, NULL})

/* New or resumed, run to its end; the status of whichever call failed. */
static inline heed_status train_in(const char *folder, const char *const *more, bool resume,
                                   const heed_train_hooks *hooks, heed_train_result *result,
                                   heed_error *err)
{
    heed_train_result own;
    heed_arena *arena = heed_arena_new(NULL, err);
    assert_non_null(arena);
    heed_recipe r = recipe_with(arena, more);
    heed_trainer *t = resume ? heed_trainer_resume(folder, &r, hooks, NULL, err)
                             : heed_trainer_new(folder, &r, hooks, NULL, err);
    if (t)
        heed_trainer_run(t, result ? result : &own, err);
    heed_trainer_free(t);
    heed_arena_free(arena);
    return err->status;
}

/* For processes that resume what another one left: a save that is there is whole, or they end. */
static inline void only_whole_saves(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    if (!strstr(line, "is not whole"))
        return;
    fprintf(stderr, "%s\n", line);
    _exit(98);
}

static inline bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The bytes of a file, to be freed. */
static char *bytes_of(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot read '%s'", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    bytes[*size] = '\0';
    fclose(f);
    return bytes;
}

static inline bool same_file(const char *folder_a, const char *folder_b, const char *name)
{
    char a[512], b[512];
    size_t na, nb;
    snprintf(a, sizeof a, "%s/%s", folder_a, name);
    snprintf(b, sizeof b, "%s/%s", folder_b, name);
    char *x = bytes_of(a, &na), *y = bytes_of(b, &nb);
    bool same = na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    return same;
}

#endif
