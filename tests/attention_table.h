/* attention_table.h: the forms of attention, a row each, that every proof goes through: against an
 * oracle in double (test_attention_table.c), and in models (one_stack.h): tape against engine,
 * cached against all at once, fp32, int8, from a directory.
 *
 * A form of softmax over fewer keys needs no oracle of its own: only what its pattern lets a query
 * see, said in other words than ranges (`lets`).  What is no softmax over keys brings `mix`. */
#ifndef HEED_TESTS_ATTENTION_TABLE_H
#define HEED_TESTS_ATTENTION_TABLE_H

#include "attention/attend.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- what a pattern lets a query see ---- */

/* Query i and key j of a segment; n: the numbers of the pattern's term. */
struct form_pair {
    const int64_t *n;
    int head, layer;
    int64_t i, j, queries, keys;
    bool causal;
};

static inline bool lets_global(const struct form_pair *p)
{
    return p->n[0] == 0 || p->i < p->n[0] || p->j < p->n[0];
}

/* Behind the last key a query stands at the last. */
static inline int64_t form_place(const struct form_pair *p)
{
    return p->i < p->keys ? p->i : p->keys - 1;
}

static inline bool lets_band(const struct form_pair *p)
{
    const int64_t w = p->n[0], before = form_place(p) - p->j;
    return p->causal ? before >= 0 && before < w : before <= w / 2 && -before < w - w / 2;
}

static inline bool lets_local_m(const struct form_pair *p)
{
    return llabs((long long)(p->j - form_place(p))) <= p->n[0];
}

/* A pattern without a row here has no proof. */
static const struct {
    const char *name;
    bool (*lets)(const struct form_pair *p);
} form_lets[] = {
    {"global", lets_global},
    {"band", lets_band},
    {"local-m", lets_local_m},
};

/* Whether a union of terms lets query p->i see key p->j. */
static inline bool form_sees(const heed_slot_spec *pattern, struct form_pair p)
{
    static const int64_t none[HEED_TERM_NUMBERS];
    bool seen = pattern->count == 0;
    if (p.causal && p.j > p.i)
        return false;
    for (int k = 0; k < pattern->count; k++) {
        const char *name = heed__row_of(HEED_SLOT_PATTERN, pattern->term[k].kind)->info.name;
        size_t row = 0;
        while (row < sizeof form_lets / sizeof *form_lets && strcmp(form_lets[row].name, name) != 0)
            row++;
        if (row == sizeof form_lets / sizeof *form_lets)
            fail_msg("pattern %s has no row in attention_table.h", name);
        p.n = pattern->count ? pattern->term[k].number : none;
        seen |= form_lets[row].lets(&p);
    }
    return seen;
}

/* ---- forms that are no softmax over keys ---- */

/* One head of one segment in double, rows without gaps: q (T,Dk), k (S,Dk), v (S,Dv). */
struct form_head {
    const heed_attend_layer *layer;
    int head; /* of the queries */
    bool causal;
    int64_t t, s, dk, dv;
    const double *q, *k, *v;
};

/* phi(q) sum phi(k) v^T / (phi(q) sum phi(k) + 1e-6), phi = elu + 1: pair by pair. */
static inline void mix_elu(const struct form_head *h, double *y)
{
    for (int64_t i = 0; i < h->t; i++) {
        double sum = 0;
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] = 0;
        for (int64_t j = 0; j < h->s && (!h->causal || j <= i); j++) {
            double w = 0;
            for (int64_t d = 0; d < h->dk; d++) {
                const double q = h->q[i * h->dk + d], k = h->k[j * h->dk + d];
                w += (q > 0 ? q + 1 : exp(q)) * (k > 0 ? k + 1 : exp(k));
            }
            sum += w;
            for (int64_t d = 0; d < h->dv; d++)
                y[i * h->dv + d] += w * h->v[j * h->dv + d];
        }
        for (int64_t d = 0; d < h->dv; d++)
            y[i * h->dv + d] /= sum + 1e-6;
    }
}

/* ---- the table ---- */

/* Texts of the slots, as options say them; NULL: the slot's first row. */
struct attention_form {
    const char *memory, *pattern, *bias, *normaliser;
    int kv_heads; /* of 4; 0: 4 */
    /* y (T,Dv), assigned; NULL: softmax over what the pattern lets a query see. */
    void (*mix)(const struct form_head *h, double *y);
};
static const struct attention_form attention_forms[] = {
    {.pattern = "global"},
    {.pattern = "global:3"},
    {.pattern = "band:5"},
    {.pattern = "band:4", .kv_heads = 2},
    {.pattern = "band:3+global:2"},
    {.pattern = "local-m:2"},
    {.bias = "alibi", .kv_heads = 1},
    {.bias = "table:3", .pattern = "band:7"},
    {.memory = "persistent:3"},
    {.memory = "persistent:2", .pattern = "band:4+global:1", .bias = "table:4", .kv_heads = 2},
    {.normaliser = "elu", .mix = mix_elu},
    {.normaliser = "elu", .kv_heads = 2, .mix = mix_elu},
};
#define ATTENTION_FORMS ((int)(sizeof attention_forms / sizeof *attention_forms))

/* "persistent:3 global none soft" */
static inline const char *attention_form_name(const struct attention_form *f)
{
    static char text[256];
    const char *part[] = {f->memory, f->pattern, f->bias, f->normaliser};
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (part[i])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", n ? ", " : "", part[i]);
    if (f->kv_heads)
        snprintf(text + n, sizeof text - (size_t)n, ", %d heads of keys", f->kv_heads);
    return text;
}

static inline heed_slot_spec form_slot(heed_attention_slot slot, const char *text)
{
    heed_slot_spec spec = {0};
    heed_error err = {0};
    if (text && heed_slot_parse(slot, text, &spec, &err))
        fail_msg("%s: %s", text, err.text);
    return spec;
}

/* The form's slots in the options of a layer. */
static inline heed_attend_options attention_form_options(const struct attention_form *f,
                                                         bool causal)
{
    return (heed_attend_options){.memory = form_slot(HEED_SLOT_MEMORY, f->memory),
                                 .pattern = form_slot(HEED_SLOT_PATTERN, f->pattern),
                                 .position_bias = form_slot(HEED_SLOT_BIAS, f->bias),
                                 .normaliser = form_slot(HEED_SLOT_NORMALISER, f->normaliser),
                                 .heads = 4,
                                 .kv_heads = f->kv_heads,
                                 .projected = true,
                                 .causal = causal};
}

static inline bool attention_form_can(const struct attention_form *f, unsigned can)
{
    const heed_attend_options o = attention_form_options(f, false);
    return (heed__attend_can(&o) & can) == can;
}

#endif
