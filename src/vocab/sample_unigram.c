/* sample_unigram.c: subword regularisation (Kudo, "Subword Regularization", ACL 2018): a
 * segmentation x1 .. xn of the text is drawn with probability proportional to
 * (p(x1) ... p(xn))^strength, where a piece's score is log p.
 *
 * below[i] = log of the sum, over all segmentations of text[i..), of their weights is computed from
 * the right; then pieces are drawn from the left, each in proportion to its weight times that of
 * all continuations.  This is exact, and the lattice is never stored. */
#include "base/error.h"
#include "vocab/sample_subwords.h"

#include <math.h>

/* Score of an unknown character below the worst piece, as in SentencePiece. */
#define UNKNOWN_PENALTY 10.0

/* Iterates over the pieces that begin at one position. */
struct edges {
    const heed__sampler *c;
    size_t begin, end;
    int32_t node; /* of the trie, for text[begin..end) */
    bool stopped; /* there is no longer piece */
};

static struct edges edges_from(const heed__sampler *c, size_t begin)
{
    return (struct edges){.c = c, .begin = begin, .end = begin};
}

/* Advances to e->end + step; false if no piece begins like that. */
static bool follow(struct edges *e, size_t step)
{
    const heed__trie *trie = &e->c->v->trie;
    for (size_t stop = e->end + step; e->end < stop; e->end++) {
        e->node = heed__trie_next(trie, e->node, e->c->text[e->end]);
        if (!e->node) {
            e->end = stop;
            return false;
        }
    }
    return true;
}

/* The next piece's weight, to the power of strength, as a logarithm; false if there is no more.
 * The first character always is one, if necessary an unknown one; a placeholder is a single piece.
 */
static bool next_edge(struct edges *e, double *weight)
{
    const heed_vocab *v = e->c->v;
    while (!e->stopped && e->end < e->c->length) {
        bool frozen, first = e->end == e->begin;
        size_t step = heed__sampler_step(e->c, e->end, &frozen);
        if (frozen && !first)
            return false;
        bool known = follow(e, step);
        e->stopped = frozen || !known;
        int32_t id = known ? v->trie.piece[e->node] : -1;
        if (id < 0 && !first)
            continue;
        double score = id < 0 ? v->least_score - UNKNOWN_PENALTY : v->pieces.item[id].score;
        *weight = e->c->strength * score;
        return true;
    }
    return false;
}

/* log(exp(a) + exp(b)) */
static double add_logs(double a, double b)
{
    double larger = a > b ? a : b, smaller = a > b ? b : a;
    return smaller == -INFINITY ? larger : larger + log1p(exp(smaller - larger));
}

static size_t draw_piece(heed__sampler *c, const double *below, size_t begin)
{
    double rest = heed__sampler_draw(c), weight;
    struct edges e = edges_from(c, begin);
    size_t end = begin;
    while (next_edge(&e, &weight)) {
        double p = exp(weight + below[e.end] - below[begin]);
        if (p > 0 || end == begin)
            end = e.end; /* by rounding there may be a rest after the last one */
        rest -= p;
        if (rest < 0)
            break;
    }
    return end;
}

heed_status heed__sample_unigram(heed__sampler *c, heed_error *err)
{
    double *below = heed_arena_allocate(c->arena, (c->length + 1) * sizeof *below);
    size_t *place = heed_arena_allocate(c->arena, (c->length + 1) * sizeof *place);
    if (!below || !place)
        return heed__fail(err, HEED_MEMORY, "out of memory for sampling %zu bytes", c->length);
    size_t places = 0;
    bool frozen;
    for (size_t at = 0; at < c->length; at += heed__sampler_step(c, at, &frozen))
        place[places++] = at;
    below[c->length] = 0;
    while (places-- > 0) {
        struct edges e = edges_from(c, place[places]);
        double sum = -INFINITY, weight;
        while (next_edge(&e, &weight))
            sum = add_logs(sum, weight + below[e.end]);
        below[e.begin] = sum;
    }
    for (size_t at = 0, end; at < c->length; at = end) {
        end = draw_piece(c, below, at);
        heed__sampler_add(c, at, end);
    }
    return HEED_OK;
}
