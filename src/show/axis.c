/* axis.c: round ticks for any range: 1, 2 or 5 times a power of ten apart. */
#include "show/axis.h"
#include "show/draw.h"

#include <math.h>

/* Beyond this, differences and labels would overflow. */
#define LARGEST 1e100
#define SMALLEST 1e-100

heed__axis heed__axis_new(bool logarithmic)
{
    return (heed__axis){.low = 1, .high = 0, .logarithmic = logarithmic, .divisor = 1};
}

bool heed__axis_takes(const heed__axis *a, double v)
{
    return isfinite(v) && fabs(v) <= LARGEST && (!a->logarithmic || v >= SMALLEST);
}

void heed__axis_include(heed__axis *a, double v)
{
    if (!heed__axis_takes(a, v))
        return;
    if (a->low > a->high) {
        a->low = a->high = v;
        return;
    }
    a->low = fmin(a->low, v);
    a->high = fmax(a->high, v);
}

/* The smallest of 1, 2, 5, 10 times a power of ten that is not below v. */
static double round_up(double v)
{
    double power = pow(10, floor(log10(v)));
    double times = v / power;
    return power * (times <= 1.0001 ? 1 : times <= 2.0001 ? 2 : times <= 5.0001 ? 5 : 10);
}

static void linear_ticks(heed__axis *a, int wanted, bool outwards)
{
    double step = round_up((a->high - a->low) / wanted);
    if (outwards) {
        a->low = floor(a->low / step + 1e-9) * step;
        a->high = ceil(a->high / step - 1e-9) * step;
    }
    double first = ceil(a->low / step - 1e-9);
    a->ticks = 0;
    for (double i = first; i * step <= a->high + step * 1e-9 && a->ticks < HEED_AXIS_TICKS; i++)
        a->tick[a->ticks++] = i == 0 ? 0 : i * step;
    a->decimals = (int)fmax(0, ceil(-log10(step / a->divisor) - 1e-9));
}

/* Powers of ten, every n-th if there are many, with 2 and 5 times them if there are few. */
static void decade_ticks(heed__axis *a, int wanted)
{
    static const double times[] = {1, 2, 5};
    double first = floor(log10(a->low)), last = ceil(log10(a->high));
    int each = (int)fmax(1, ceil((last - first) / wanted));
    int parts = each == 1 && (last - first) * 2 <= wanted ? 3 : 1;
    a->ticks = 0;
    for (double e = first; e <= last; e += each)
        for (int i = 0; i < parts; i++) {
            double v = times[i] * pow(10, e);
            if (v >= a->low * (1 - 1e-9) && v <= a->high * (1 + 1e-9) && a->ticks < HEED_AXIS_TICKS)
                a->tick[a->ticks++] = v;
        }
    a->decimals = (int)fmax(0, ceil(-log10(a->low / a->divisor) - 1e-9));
}

void heed__axis_finish(heed__axis *a, int wanted, bool outwards)
{
    if (a->low > a->high) {
        a->low = a->logarithmic ? 0.1 : 0;
        a->high = 1;
    }
    /* Values closer than their labels can show count as one. */
    double size = fmax(fabs(a->low), fabs(a->high));
    if (a->high - a->low <= size * 1e-9) {
        double around = size > 0 ? size * 0.1 : 1;
        a->low -= around;
        a->high += around;
    }
    size = fmax(fabs(a->low), fabs(a->high));
    a->divisor = size < 1e4 ? 1 : size < 1e6 ? 1e3 : size < 1e9 ? 1e6 : size < 1e12 ? 1e9 : 0;
    bool wide = a->logarithmic && a->high > 20 * a->low;
    if (size < 1e-4 || (wide && a->low < 1e-4))
        a->divisor = 0;
    if (wide)
        decade_ticks(a, wanted);
    else
        linear_ticks(a, wanted, outwards && !a->logarithmic);
    if (a->divisor == 0)
        a->decimals = 1;
    if (a->decimals > 9)
        a->decimals = 9;
}

double heed__axis_position(const heed__axis *a, double v)
{
    if (a->logarithmic)
        return (log(v) - log(a->low)) / (log(a->high) - log(a->low));
    return (v - a->low) / (a->high - a->low);
}

void heed__axis_label(heed__string *s, const heed__axis *a, double v, int more)
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    int decimals = a->decimals + more > 9 ? 9 : a->decimals + more;
    if (a->divisor > 0) {
        heed__draw_number(s, v / a->divisor, decimals);
        if (v != 0)
            heed__string_add(s, a->divisor >= 1e9   ? "G"
                                : a->divisor >= 1e6 ? "M"
                                : a->divisor >= 1e3 ? "k"
                                                    : "");
        return;
    }
    if (v == 0) {
        heed__string_add(s, "0");
        return;
    }
    int e = (int)floor(log10(fabs(v)) + 1e-9);
    double leading = v * pow(10, -e);
    if (fabs(leading - 1) > 1e-6) {
        heed__draw_number(s, leading, decimals);
        heed__string_add(s, "×");
    }
    heed__string_add(s, e < 0 ? "10⁻" : "10");
    char digits[8];
    int n = 0;
    for (int rest = e < 0 ? -e : e; n == 0 || rest; rest /= 10)
        digits[n++] = (char)(rest % 10);
    while (n)
        heed__string_add(s, raised[(int)digits[--n]]);
}
