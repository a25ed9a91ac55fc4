/* snail_tasks.c: see snail_tasks.h.  Classes are always new: a prototype is N(0,I) and an example
 * lies around it with `noise`; a made-up character is a number that nobody has drawn before. */
#include "snail_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 28, DRAWERS = 20, TURNS = 4, SECOND_SET = 1 << 30, CHARACTERS = 1623 };

int64_t snail_source_side(const snail_source *s)
{
    return s->task == SNAIL_PROTOTYPES ? 0 : SIDE;
}

/* ---- Omniglot ---- */

static heed_status fail(heed_error *err, heed_status status, const char *path, const char *what)
{
    if (!err->status) {
        err->status = status;
        snprintf(err->text, sizeof err->text, "%.400s %s", path, what);
    }
    return err->status;
}

static heed_pictures *open_set(const char *folder, const char *name, heed_error *err)
{
    char images[4096], labels[4096];
    snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, name);
    snprintf(labels, sizeof labels, "%s/%s-labels-idx1-short.gz", folder, name);
    return heed_pictures_idx(images, labels,
                             &(heed_pictures_options){.height = SIDE, .width = SIDE, .channels = 1},
                             NULL, err);
}

/* The last column of a line of characters.tsv. */
static int part_of(const char *line)
{
    static const char *const names[] = {"train", "valid", "test"};
    const char *tab = strrchr(line, '\t');
    const size_t n = tab ? strcspn(tab + 1, "\r\n") : 0;
    for (int i = 0; i < 3; i++)
        if (n && n == strlen(names[i]) && strncmp(tab + 1, names[i], n) == 0)
            return i;
    return -1;
}

/* The part of each character, by its label. */
static heed_status read_split(const char *folder, int part[CHARACTERS], heed_error *err)
{
    char path[4096], line[512];
    int found = 0;
    snprintf(path, sizeof path, "%s/characters.tsv", folder);
    FILE *f = fopen(path, "r");
    if (!f)
        return fail(err, HEED_IO, path, "cannot be opened");
    for (int i = 0; i < CHARACTERS; i++)
        part[i] = -1;
    while (fgets(line, sizeof line, f)) {
        const long label = strtol(line, NULL, 10);
        const int p = part_of(line);
        if (p < 0 || label < 0 || label >= CHARACTERS || part[label] >= 0)
            continue; /* the line of names */
        part[label] = p;
        found++;
    }
    fclose(f);
    return found == CHARACTERS ? HEED_OK
                               : fail(err, HEED_FORMAT, path,
                                      "does not say train, valid or test of 1,623 characters");
}

static heed_status sort_out(snail_source *s, const char *folder, heed_arena *arena, heed_error *err)
{
    int part[CHARACTERS];
    if (read_split(folder, part, err))
        return err->status;
    for (int p = 0; p < 3; p++)
        if (!(s->first[p] = heed_arena_allocate(arena, CHARACTERS * sizeof *s->first[p])))
            return fail(err, HEED_MEMORY, folder, "needs more memory than there is");
    for (int k = 0; k < 2; k++) {
        const int64_t n = heed_pictures_describe(s->set[k]).count;
        for (int64_t i = 0; i < n; i += DRAWERS) {
            const int64_t label = heed_pictures_label(s->set[k], i);
            if (i + DRAWERS > n || label >= CHARACTERS ||
                heed_pictures_label(s->set[k], i + DRAWERS - 1) != label)
                return fail(err, HEED_FORMAT, folder, "has not twenty pictures of each character");
            const int p = part[label];
            s->first[p][s->count[p]++] = (int32_t)i + (k ? SECOND_SET : 0);
        }
    }
    return HEED_OK;
}

heed_status snail_source_open(snail_source *s, snail_task task, double noise, const char *folder,
                              heed_arena *arena, heed_error *err)
{
    *s = (snail_source){.task = task, .noise = noise};
    if (task != SNAIL_OMNIGLOT)
        return HEED_OK;
    if ((s->set[0] = open_set(folder, "background", err)) &&
        (s->set[1] = open_set(folder, "evaluation", err)))
        return sort_out(s, folder, arena, err);
    return err->status;
}

void snail_source_close(snail_source *s)
{
    heed_pictures_free(s->set[0]);
    heed_pictures_free(s->set[1]);
}

/* Class c of a part: character c / 4, turned by c % 4 quarters; its picture `drawer`. */
static void take_omniglot(const snail_source *s, snail_part part, int64_t c, int64_t drawer,
                          heed_real *out)
{
    uint8_t pixels[SIDE * SIDE];
    const int32_t first = s->first[part][c / TURNS];
    heed_pictures_load(s->set[first >= SECOND_SET], first % SECOND_SET + drawer, pixels, NULL);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int v = y, u = x;
            for (int q = 0; q < c % TURNS; q++) {
                const int kept = v;
                v = u;
                u = SIDE - 1 - kept;
            }
            out[y * SIDE + x] = (heed_real)(pixels[v * SIDE + u] / 255.0);
        }
}

/* ---- episodes ---- */

/* A class of an episode: a number that tells where its examples come from. */
static uint64_t draw_class(const snail_source *s, snail_part part, drawing_dice *d)
{
    if (s->task == SNAIL_OMNIGLOT)
        return (uint64_t)heed_rng_below(d->rng, d->next++, TURNS * s->count[part]);
    const uint64_t low = heed_rng_bits(d->rng, d->next++);
    return ((uint64_t)part << 32 | low) + 1;
}

static void draw_example(const snail_source *s, snail_part part, uint64_t class, int64_t drawer,
                         drawing_dice *d, heed_real *out)
{
    if (s->task == SNAIL_OMNIGLOT) {
        take_omniglot(s, part, (int64_t) class, drawer, out);
        return;
    }
    if (s->task == SNAIL_CHARACTERS) {
        drawing_character(out, SIDE, class, d);
        return;
    }
    const heed_rng own = heed_rng_stream(&(heed_rng_key){.seed = class, .node = 5});
    for (int i = 0; i < SNAIL_PROTOTYPE; i++)
        out[i] = (heed_real)(heed_rng_normal(&own, (uint64_t)i) +
                             s->noise * heed_rng_normal(d->rng, d->next++));
}

/* A random order of n things. */
static void shuffle(int32_t *order, int64_t n, drawing_dice *d)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = heed_rng_below(d->rng, d->next++, i + 1);
        const int32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

enum { MOST_WAYS = 64 };

/* Classes that differ, in class[0 .. ways). */
static void draw_classes(const snail_source *s, snail_part part, int64_t ways, drawing_dice *d,
                         uint64_t *class)
{
    for (int64_t i = 0; i < ways; i++) {
        bool known = true;
        while (known) {
            class[i] = draw_class(s, part, d);
            known = false;
            for (int64_t k = 0; k < i; k++)
                known = known || class[k] == class[i];
        }
    }
}

static void draw_episode(const snail_source *s, const snail_sizes *z, snail_part part,
                         drawing_dice *d, int32_t *order, snail_batch *b, int64_t episode)
{
    const int64_t shown = z->ways * z->shots, length = shown + 1,
                  size = z->side ? z->side * z->side : z->width;
    uint64_t class[MOST_WAYS];
    int32_t drawers[MOST_WAYS][DRAWERS];
    draw_classes(s, part, z->ways, d, class);
    for (int64_t k = 0; k < z->ways; k++)
        shuffle(drawers[k], DRAWERS, d);
    shuffle(order, shown, d);
    const int64_t asked = heed_rng_below(d->rng, d->next++, z->ways);
    for (int64_t i = 0; i < length; i++) {
        /* The question is by another drawer than the examples. */
        const int64_t k = i < shown ? order[i] % z->ways : asked,
                      drawer = drawers[k][i < shown ? order[i] / z->ways : z->shots];
        const int64_t at = episode * length + i;
        draw_example(s, part, class[k], drawer, d, b -> shown + at * size);
        b->label[at] = (int32_t)k;
    }
}

bool snail_draw(const snail_source *s, const snail_sizes *z, snail_part part, int64_t episodes,
                const heed_rng *rng, heed_arena *arena, snail_batch *b)
{
    const int64_t length = z->ways * z->shots + 1, size = z->side ? z->side * z->side : z->width;
    drawing_dice d = {rng, 0};
    int32_t *order = heed_arena_allocate(arena, (size_t)length * sizeof *order);
    *b = (snail_batch){
        heed_arena_allocate(arena, (size_t)(episodes * length * size) * sizeof(heed_real)),
        heed_arena_allocate(arena, (size_t)(episodes * length) * sizeof(int32_t)), episodes};
    if (!b->shown || !b->label || !order)
        return false;
    for (int64_t i = 0; i < episodes; i++)
        draw_episode(s, z, part, &d, order, b, i);
    return true;
}

int64_t snail_bayes(const snail_sizes *z, const snail_batch *b)
{
    const int64_t shown = z->ways * z->shots, length = shown + 1;
    int64_t right = 0;
    for (int64_t e = 0; e < b->episodes; e++) {
        double mean[MOST_WAYS][SNAIL_PROTOTYPE] = {{0}};
        const heed_real *x = b->shown + e * length * z->width;
        const int32_t *label = b->label + e * length;
        for (int64_t i = 0; i < shown; i++)
            for (int64_t k = 0; k < z->width; k++)
                mean[label[i]][k] += (double)x[i * z->width + k] / (double)z->shots;
        int64_t best = 0;
        double least = 1e300;
        for (int64_t c = 0; c < z->ways; c++) {
            double far = 0;
            for (int64_t k = 0; k < z->width; k++) {
                const double gap = (double)x[shown * z->width + k] - mean[c][k];
                far += gap * gap;
            }
            if (far < least) {
                least = far;
                best = c;
            }
        }
        right += best == label[shown];
    }
    return right;
}
