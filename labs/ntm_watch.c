/* ntm_watch.c: a trained machine at work, as in the paper's figures 6, 9, 12, 15 and 18: what it is
 * shown and says, what it adds and reads, and where its heads are, step by step; and whether a head
 * walks: the algorithm that the paper finds in the copy task moves it by one location a step. */
#include "lab.h"
#include "ntm.h"

#include <math.h>

/* ---- moves ---- */

static int64_t strongest(const heed_real *w, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = w[i] > w[best] ? i : best;
    return best;
}

static const heed_real *weights(const ntm *m, const ntm_state *state, int64_t sequence,
                                int64_t head)
{
    return heed_tensor_data(state->w) + sequence * heed_tensor_stride(state->w) +
           head * m->sizes.locations;
}

double ntm_walking(const ntm *m, const ntm_state *states, int64_t first, int64_t end, int64_t head)
{
    int64_t batch = heed_tensor_rows(states[0].w), n = m->sizes.locations, up = 0, down = 0;
    for (int64_t s = 0; s < batch; s++)
        for (int64_t i = first + 1; i < end; i++) {
            int64_t from = strongest(weights(m, &states[i - 1], s, head), n);
            int64_t to = strongest(weights(m, &states[i], s, head), n);
            up += (from + 1) % n == to;
            down += (to + 1) % n == from;
        }
    return (double)(up > down ? up : down) / (double)(batch * (end - first - 1));
}

/* ---- pictures ---- */

/* A panel to be filled step by step. */
struct page {
    heed_arena *arena;
    int64_t steps;
    heed_heat_panel panels[8];
    int count;
};

static heed_real *add_panel(struct page *p, const char *title, int64_t rows, double low,
                            double high)
{
    size_t count = (size_t)(rows * p->steps);
    heed_real *value = heed_arena_allocate(p->arena, count * sizeof *value);
    if (value)
        for (size_t i = 0; i < count; i++)
            value[i] = (heed_real)low;
    p->panels[p->count++] = (heed_heat_panel){title, value, rows, p->steps, low, high};
    return value;
}

/* Puts a column of numbers at a step. */
static void put(struct page *p, heed_real *panel, int64_t step, const heed_real *from, int64_t rows)
{
    for (int64_t i = 0; panel && i < rows; i++)
        panel[i * p->steps + step] = from[i];
}

static bool has_negative(const ntm_batch *b)
{
    for (int64_t i = 0; i < b->steps * b->in; i++)
        if (b->x[i] < 0)
            return true;
    return false;
}

static void put_said(struct page *p, const ntm_batch *b, const heed_tensor *z)
{
    heed_real *shown = add_panel(p, "input", b->in, has_negative(b) ? -1 : 0, 1);
    heed_real *target = add_panel(p, "target", b->out, 0, 1);
    heed_real *said = add_panel(p, "output", b->out, 0, 1);
    for (int64_t i = 0; i < b->steps; i++)
        put(p, shown, i, b->x + i * b->in, b->in);
    for (int64_t i = b->first; i < b->steps; i++) {
        put(p, target, i, b->target + (i - b->first) * b->out, b->out);
        for (int64_t j = 0; said && j < b->out; j++) {
            double logit = (double)heed_tensor_data(z)[(i - b->first) * b->out + j];
            said[j * p->steps + i] = (heed_real)(1 / (1 + exp(-logit)));
        }
    }
}

/* The length of every location. */
static void put_memory(struct page *p, const ntm *m, heed_real *panel, int64_t step,
                       const heed_tensor *memory)
{
    int64_t n = m->sizes.locations;
    for (int64_t i = 0; panel && i < n; i++) {
        double square = 0;
        for (int64_t j = 0; j < m->sizes.width; j++)
            square += pow((double)heed_tensor_data(memory)[j * n + i], 2);
        panel[i * p->steps + step] = (heed_real)sqrt(square);
    }
}

static void put_heads(struct page *p, const ntm *m, const ntm_state *states)
{
    const ntm_sizes *z = &m->sizes;
    int64_t read = z->read_heads, write = z->write_heads;
    heed_real *added = add_panel(p, "written: add vectors", write * z->width, -1, 1);
    heed_real *to = add_panel(p, "write weights", write * z->locations, 0, 1);
    heed_real *memory =
        add_panel(p, "memory: length of every location", z->locations, 0, sqrt((double)z->width));
    heed_real *got = add_panel(p, "read vectors", read * z->width, -1, 1);
    heed_real *from = add_panel(p, "read weights", read * z->locations, 0, 1);
    for (int64_t i = 0; i < p->steps; i++) {
        put(p, added, i, heed_tensor_data(states[i].add), write * z->width);
        put(p, to, i, weights(m, &states[i], 0, read), write * z->locations);
        put_memory(p, m, memory, i, states[i].memory);
        put(p, got, i, heed_tensor_data(states[i].r), read * z->width);
        put(p, from, i, weights(m, &states[i], 0, 0), read * z->locations);
    }
}

heed_status ntm_picture(const ntm *m, const ntm_batch *b, const heed_tensor *z,
                        const ntm_state *states, const char *title, heed_arena *arena,
                        const char **svg, heed_error *err)
{
    struct page p = {.arena = arena, .steps = b->steps};
    put_said(&p, b, z);
    if (m->sizes.arch != NTM_NO_MEMORY)
        put_heads(&p, m, states);
    for (int i = 0; i < p.count; i++)
        if (!p.panels[i].value) {
            *svg = NULL;
            return lab_fail(err, HEED_MEMORY, "out of memory for a picture");
        }
    return heed_heat_svg(title, "step", p.panels, p.count, arena, svg, err);
}
