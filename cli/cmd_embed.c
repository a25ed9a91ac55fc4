/* cmd_embed.c: `heed embed`: vectors of lines, and which lines are alike. */
#include "encoder_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    const char *model, *output, *similar;
    int64_t top;
    bool json;
    int64_t threads;
};
static const heed_option fields[] = {
    ENCODER_MODEL_OPTION(struct settings, model),
    HEED_OPTION_TEXT(struct settings, output, "output", NULL, "FILE",
                     "write the vectors into FILE, which ends in .npy (float32, a row a line)"),
    HEED_OPTION_TEXT(struct settings, similar, "similar", NULL, "FILE",
                     "print the lines of FILE that are most like each line: cosine TAB line"),
    HEED_OPTION_INT(struct settings, top, "top", "5", 1, 1000000, "N",
                    "lines of --similar to print for each line"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL, "one JSON object a line"),
    ENCODER_THREADS_OPTION(struct settings, threads),
};
static const char *const examples[] = {
    "heed embed --model all-MiniLM-L6-v2 lines.txt --output vectors.npy",
    "echo 'How do I get a refund?' | heed embed --model m --similar questions.txt --top 3",
    NULL,
};
const heed_option_set embed_options = {
    .command = "heed embed",
    .summary = "Print a vector of length 1 for each line, or the lines most like it",
    .arguments = "[FILE]",
    .most = 1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

/* ---- .npy ---- */

/* Version 1.0: magic, header length, a dictionary that fills up to 64 bytes with its line end. */
#define NPY_HEADER 128

struct npy {
    FILE *file;
    const char *path;
    char temporary[4096];
    int64_t rows, columns;
};

static bool npy_header(struct npy *n)
{
    char header[NPY_HEADER + 1];
    memset(header, ' ', NPY_HEADER);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(NPY_HEADER - 10);
    header[9] = 0;
    const int used = snprintf(header + 10, NPY_HEADER - 10,
                              "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                              (long long)n->rows, (long long)n->columns);
    header[10 + used] = ' ';
    header[NPY_HEADER - 1] = '\n';
    return fwrite(header, 1, NPY_HEADER, n->file) == NPY_HEADER;
}

static bool npy_failed(struct npy *n)
{
    complain("cannot write '%.255s': %s", n->path, strerror(errno));
    if (n->file) {
        fclose(n->file);
        unlink(n->temporary);
    }
    n->file = NULL;
    return false;
}

/* The number of rows is known at the end: the header is written then. */
static bool npy_open(struct npy *n, const char *path, int64_t columns)
{
    *n = (struct npy){.path = path, .columns = columns};
    if (!ends_with(path, ".npy")) {
        complain("option '--output' is '%.255s', expected a name that ends in .npy", path);
        return false;
    }
    snprintf(n->temporary, sizeof n->temporary, "%.4000s.tmp", path);
    n->file = fopen(n->temporary, "wb");
    return n->file && npy_header(n) ? true : npy_failed(n);
}

static bool npy_rows(struct npy *n, const heed_real *x, int64_t rows)
{
    for (int64_t i = 0; i < rows * n->columns; i++) {
        const float value = (float)x[i];
        unsigned char byte[4];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (int k = 0; k < 4; k++)
            byte[k] = (unsigned char)(bits >> 8 * k);
        if (fwrite(byte, 1, 4, n->file) != 4)
            return npy_failed(n);
    }
    n->rows += rows;
    return true;
}

static bool npy_close(struct npy *n)
{
    if (fflush(n->file) || fseek(n->file, 0, SEEK_SET) || !npy_header(n) || fflush(n->file) ||
        fsync(fileno(n->file)))
        return npy_failed(n);
    FILE *f = n->file;
    n->file = NULL;
    if (fclose(f) || rename(n->temporary, n->path)) {
        unlink(n->temporary);
        return npy_failed(n);
    }
    return true;
}

/* ---- lines ---- */

struct work {
    const struct settings *s;
    struct npy npy;
    heed_arena *arena; /* of the lines that others are compared with */
    const char *const *line;
    const heed_real *vector; /* (lines,D) */
    int64_t lines, d;
};

static bool embed(struct encoder_run *r, const char *const *line, int64_t count, heed_arena *arena,
                  const heed_real **vector)
{
    heed_error err = {0};
    if (heed_encoder_embed(r->encoder, line, count, arena, vector, &err))
        complain("%s", err.text);
    return !err.status;
}

static void print_vector(const heed_real *v, int64_t d, const char *between)
{
    for (int64_t i = 0; i < d; i++)
        printf("%s%.7g", i ? between : "", (double)v[i]);
}

struct found {
    double cosine;
    int64_t line;
};

static int nearest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->cosine != y->cosine)
        return x->cosine < y->cosine ? 1 : -1;
    return x->line < y->line ? -1 : 1;
}

static bool print_similar(const struct work *w, struct encoder_run *r, const char *text,
                          const heed_real *v, bool first)
{
    const int64_t top = w->s->top < w->lines ? w->s->top : w->lines;
    struct found *found = heed_arena_allocate(r->arena, (size_t)(w->lines + 1) * sizeof *found);
    if (!found) {
        complain("out of memory for %lld lines", (long long)w->lines);
        return false;
    }
    for (int64_t i = 0; i < w->lines; i++) {
        double sum = 0;
        for (int64_t k = 0; k < w->d; k++)
            sum += (double)v[k] * (double)w->vector[i * w->d + k];
        found[i] = (struct found){sum, i};
    }
    if (w->lines)
        qsort(found, (size_t)w->lines, sizeof *found, nearest_first);
    if (w->s->json) {
        printf("{\"text\": ");
        print_json_text(text);
        printf(", \"similar\": [");
    } else if (!first)
        putchar('\n');
    for (int64_t i = 0; i < top; i++) {
        const char *line = w->line[found[i].line];
        if (!w->s->json) {
            printf("%.4f\t%s\n", found[i].cosine, line);
            continue;
        }
        printf("%s{\"line\": %lld, \"cosine\": %.6g, \"text\": ", i ? ", " : "",
               (long long)found[i].line + 1, found[i].cosine);
        print_json_text(line);
        putchar('}');
    }
    if (w->s->json)
        puts("]}");
    return true;
}

static bool embed_some(void *context, struct encoder_run *r, const char *const *line, int64_t count)
{
    struct work *w = context;
    const heed_real *v;
    bool good = embed(r, line, count, r->arena, &v);
    if (good && w->s->output)
        return npy_rows(&w->npy, v, count);
    for (int64_t i = 0; good && i < count; i++, v += w->d) {
        if (w->s->similar) {
            good = print_similar(w, r, line[i], v, r->before + i == 0);
            continue;
        }
        if (w->s->json) {
            printf("{\"text\": ");
            print_json_text(line[i]);
            printf(", \"vector\": [");
        }
        print_vector(v, w->d, w->s->json ? ", " : " ");
        puts(w->s->json ? "]}" : "");
    }
    return good;
}

/* The vectors of the lines of --similar, some at a time. */
static bool read_others(struct work *w, struct encoder_run *r)
{
    w->lines = encoder_read_all(w->s->similar, w->arena, &w->line);
    if (w->lines < 0)
        return false;
    heed_real *all = heed_arena_allocate(w->arena, (size_t)(w->lines * w->d + 1) * sizeof *all);
    if (!all) {
        complain("out of memory for %lld vectors", (long long)w->lines);
        return false;
    }
    w->vector = all;
    for (int64_t at = 0, n; at < w->lines; at += n) {
        const heed_real *v;
        n = w->lines - at < ENCODER_LINES ? w->lines - at : ENCODER_LINES;
        heed_arena_reset(r->arena);
        if (!embed(r, w->line + at, n, r->arena, &v))
            return false;
        memcpy(all + at * w->d, v, (size_t)(n * w->d) * sizeof *all);
    }
    return true;
}

static int work(struct work *w, struct encoder_run *r, const char *file)
{
    w->d = heed_encoder_configuration(r->encoder)->d;
    if (w->s->output && !npy_open(&w->npy, w->s->output, w->d))
        return EXIT_USAGE;
    if (w->s->similar && !read_others(w, r))
        return EXIT_FAILED;
    const int code = encoder_lines(r, file, ENCODER_LINES, embed_some, w);
    if (!w->npy.file)
        return code;
    if (code == EXIT_DONE)
        return npy_close(&w->npy) ? EXIT_DONE : EXIT_FAILED;
    fclose(w->npy.file);
    unlink(w->npy.temporary);
    return code;
}

int embed_run(int argc, const char *const *argv)
{
    invocation in;
    struct settings s;
    int code = EXIT_FAILED;
    if (!invocation_begin(&in, &embed_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if (s.output && s.similar) {
        complain("options '--output' and '--similar' cannot stand together");
        code = EXIT_USAGE;
    } else {
        struct encoder_run r;
        struct work w = {.s = &s, .arena = in.arena};
        if (encoder_open(&r, s.model, HEED_ENCODER_EMBED, s.threads))
            code = work(&w, &r, encoder_file(&in));
        encoder_close(&r);
    }
    invocation_end(&in);
    return code;
}
