/* sample_unigram.c: subword regularisation (Kudo, "Subword Regularization", ACL 2018): a
 * segmentation x1 .. xn of the text is drawn with probability proportional to
 * (p(x1) ... p(xn))^strength, where a piece's score is log p.
 *
 * below[i] = log of the sum, over all segmentations of text[i..), of their weights is computed from
 * the right; then pieces are drawn from the left, each in proportion to its weight times that of
 * what may follow.  That is exact, and the lattice is never stored. */
#include "base/error.h"
#include "text/sample.h"

#include <math.h>

/* SentencePiece's unknown characters are this much worse than the worst piece. */
#define UNKNOWN_PENALTY 10.0

/* The pieces that begin at one place, one after the other. */
struct edges {
    const heed__cutting *c;
    size_t begin, end, last; /* last: no piece ends behind this */
    bool single;             /* the piece is the first character alone, or a placeholder */
    bool stopped;
};

static struct edges edges_from(const heed__cutting *c, size_t begin)
{
    size_t room = c->length - begin;
    size_t last = begin + (room < c->v->longest ? room : c->v->longest);
    return (struct edges){.c = c, .begin = begin, .end = begin, .last = last};
}

/* The next piece's weight, to the power of strength, as a logarithm; false if there is no more.
 * The first character is always one, if need be as an unknown. */
static bool next_edge(struct edges *e, double *weight)
{
    const heed__cutting *c = e->c;
    while (!e->stopped && e->end < c->length) {
        bool frozen;
        size_t step = heed__cut_step(c, e->end, &frozen);
        e->single = e->end == e->begin;
        if ((frozen && !e->single) || (!e->single && e->end + step > e->last))
            return false;
        e->end += step;
        e->stopped = frozen; /* a placeholder stands alone */
        int32_t id = heed__cut_find(c, e->begin, e->end);
        if (id < 0 && !e->single)
            continue;
        double score = id < 0 ? c->v->least_score - UNKNOWN_PENALTY : c->v->pieces.item[id].score;
        *weight = c->strength * score;
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

static size_t draw_piece(heed__cutting *c, const double *below, size_t begin)
{
    double rest = heed__cut_draw(c), weight;
    struct edges e = edges_from(c, begin);
    size_t end = begin;
    while (next_edge(&e, &weight)) {
        double p = exp(weight + below[e.end] - below[begin]);
        if (p > 0 || end == begin)
            end = e.end; /* rounding may leave a rest behind the last one */
        rest -= p;
        if (rest < 0)
            break;
    }
    return end;
}

heed_status heed__sample_unigram(heed__cutting *c, heed_error *err)
{
    double *below = heed_arena_allocate(c->arena, (c->length + 1) * sizeof *below);
    size_t *place = heed_arena_allocate(c->arena, (c->length + 1) * sizeof *place);
    if (!below || !place)
        return heed__fail(err, HEED_MEMORY, "out of memory for sampling %zu bytes", c->length);
    size_t places = 0;
    bool frozen;
    for (size_t at = 0; at < c->length; at += heed__cut_step(c, at, &frozen))
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
        heed__cut_add(c, at, end);
    }
    return HEED_OK;
}
