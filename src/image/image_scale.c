/* image_scale.c: another size and number of channels, and a picture moved about a little.
 *
 * Scaling goes axis by axis: output pixel o covers [o, o + 1) n/m of the input.  Where that is more
 * than a pixel it is the mean of what it covers, else it lies between the two nearest centres. */
#include "image/image_scale.h"

#include "base/min_max.h"

#include <math.h>

/* Channel k of `channels` of a pixel. */
static double channel(const heed_image *from, int64_t y, int64_t x, int64_t k, int64_t channels)
{
    const uint8_t *p = from->pixels + (y * from->width + x) * from->channels;
    if (from->channels == channels)
        return p[k];
    return from->channels == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

/* Input pixels that make output pixel o of n out of m, and the share of the first and the last; a
 * share between 0 and 1 in each, those between count whole. */
typedef struct span {
    int64_t first, last;
    double first_share, last_share, sum;
} span;

static span cover(int64_t o, int64_t from, int64_t to)
{
    const double ratio = (double)from / (double)to;
    span s;
    if (from <= to) {
        const double centre = fmin(fmax(((double)o + 0.5) * ratio - 0.5, 0), (double)(from - 1));
        s.first = (int64_t)centre;
        s.last = heed__min(s.first + 1, from - 1);
        s.last_share = s.last > s.first ? centre - (double)s.first : 0;
        s.first_share = 1 - s.last_share;
        s.sum = 1;
        return s;
    }
    const double begin = (double)o * ratio, end = begin + ratio;
    s.first = (int64_t)begin;
    s.last = heed__min((int64_t)ceil(end) - 1, from - 1);
    s.first_share = (double)(s.first + 1) - begin;
    s.last_share = fmin(end - (double)s.last, 1);
    s.sum = ratio;
    return s;
}

static double share(const span *s, int64_t i)
{
    return i == s->first ? s->first_share : i == s->last ? s->last_share : 1;
}

void heed_image_scale(const heed_image *from, heed_image *to)
{
    if (!from)
        return;
    for (int64_t y = 0; y < to->height; y++) {
        const span down = cover(y, from->height, to->height);
        for (int64_t x = 0; x < to->width; x++) {
            const span across = cover(x, from->width, to->width);
            for (int64_t k = 0; k < to->channels; k++) {
                double sum = 0;
                for (int64_t v = down.first; v <= down.last; v++)
                    for (int64_t u = across.first; u <= across.last; u++)
                        sum += share(&down, v) * share(&across, u) *
                               channel(from, v, u, k, to->channels);
                to->pixels[(y * to->width + x) * to->channels + k] =
                    (uint8_t)(sum / (down.sum * across.sum) + 0.5);
            }
        }
    }
}

/* Output pixel (y,x) is read at the place that the inverse movement gives, between its four
 * neighbours; outside is black. */
void heed__image_move(const uint8_t *from, heed_real *to, int64_t height, int64_t width,
                      int64_t channels, const heed__movement *m)
{
    const double middle_y = (double)(height - 1) / 2, middle_x = (double)(width - 1) / 2;
    const double c = cos(m->turn) / m->zoom, s = sin(m->turn) / m->zoom;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            const double dy = (double)y - middle_y - m->down, dx = (double)x - middle_x - m->right;
            const double v = c * dy - s * dx + middle_y,
                         u = (s * dy + c * dx) * (m->mirror ? -1 : 1) + middle_x;
            const int64_t top = (int64_t)floor(v), left = (int64_t)floor(u);
            const double fy = v - (double)top, fx = u - (double)left;
            for (int64_t k = 0; k < channels; k++) {
                double sum = 0;
                for (int i = 0; i < 4; i++) {
                    const int64_t at_y = top + i / 2, at_x = left + i % 2;
                    if (at_y < 0 || at_x < 0 || at_y >= height || at_x >= width)
                        continue;
                    sum += (i / 2 ? fy : 1 - fy) * (i % 2 ? fx : 1 - fx) *
                           from[(at_y * width + at_x) * channels + k];
                }
                to[(y * width + x) * channels + k] = (heed_real)sum;
            }
        }
}
