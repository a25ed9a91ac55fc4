/* span_numbers.c: digits with what belongs to them. */
#include "text/span_match.h"

/* ---- numbers ---- */

/* Whether a number may begin here: not inside of a word, and not behind the point of another. */
static bool begins_number(const heed__cursor *p)
{
    return is_digit(at(p, 0)) && begins_word(p) &&
           !(p->before > 1 && strchr(".,:/", p->text[-1]) && is_digit(p->text[-2]));
}

/* Bytes of 7, 1.5, 1,234.50 at `i`; 0 if there is no digit. */
static size_t number_at(const heed__cursor *p, size_t i)
{
    size_t n = run(p, i, is_digit);
    while (n && (at(p, i + n) == '.' || at(p, i + n) == ',') && is_digit(at(p, i + n + 1)))
        n += 1 + run(p, i + n + 1, is_digit);
    return n;
}

/* The length, if neither a letter nor a digit follows. */
static size_t if_ends(const heed__cursor *p, size_t n)
{
    return n && !word_at(p, n) ? n : 0;
}

size_t heed__match_decimal(const heed__cursor *p)
{
    const size_t n = begins_number(p) ? number_at(p, 0) : 0;
    return n > run(p, 0, is_digit) && at(p, n) != '-' ? if_ends(p, n) : 0;
}

size_t heed__match_percent(const heed__cursor *p)
{
    static const char per_mille[] = "\xE2\x80\xB0";
    size_t n = begins_number(p) ? number_at(p, 0) : 0;
    if (!n)
        return 0;
    n += at(p, n) == ' ';
    if (at(p, n) == '%' && at(p, n + 1) != '%')
        return if_ends(p, n + 1);
    return p->left - n >= 3 && memcmp(p->text + n, per_mille, 3) == 0 ? n + 3 : 0;
}

static const char *const units[] = {
    "km/h", "m/s", "mph", "km²", "m²", "cm²", "m³",  "cm³", "km",  "cm",   "mm",  "nm",
    "µm",   "m",   "kg",  "mg",  "g",  "ml",  "cl",  "l",   "kHz", "MHz",  "GHz", "Hz",
    "kB",   "KB",  "MB",  "GB",  "TB", "kW",  "kWh", "MW",  "mA",  "mV",   "kV",  "V",
    "W",    "°C",  "°F",  "K",   "px", "dpi", "ms",  "hPa", "kPa", "kcal",
};

/* Digits, at most one space, a unit, and no word after it. */
size_t heed__match_quantity(const heed__cursor *p)
{
    size_t n = begins_number(p) ? number_at(p, 0) : 0;
    if (!n)
        return 0;
    n += at(p, n) == ' ';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t size = strlen(units[i]);
        if (p->left - n >= size && memcmp(p->text + n, units[i], size) == 0 &&
            !word_at(p, n + size) && at(p, n + size) != '\'')
            return n + size;
    }
    return 0;
}

/* ---- money ---- */

/* Bytes of a sign or a code of a currency at `i`. */
static size_t currency_at(const heed__cursor *p, size_t i)
{
    static const char *const signs[] = {"$",  "€",   "£",   "¥",   "₹",   "₽", "₩",  "₺",
                                        "zł", "EUR", "USD", "GBP", "CHF", "JPY", "CNY"};
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        const size_t n = strlen(signs[k]);
        if (i <= p->left && p->left - i >= n && memcmp(p->text + i, signs[k], n) == 0)
            return n;
    }
    return 0;
}

size_t heed__match_money(const heed__cursor *p)
{
    size_t n = currency_at(p, 0);
    if (n && (!is_alpha(at(p, 0)) || begins_word(p))) {
        n += at(p, n) == ' ';
        const size_t amount = number_at(p, n);
        return amount ? if_ends(p, n + amount) : 0;
    }
    n = begins_number(p) ? number_at(p, 0) : 0;
    const size_t blank = at(p, n) == ' ', sign = n ? currency_at(p, n + blank) : 0;
    return sign ? if_ends(p, n + blank + sign) : 0;
}

/* ---- dates ---- */

/* 28/01/1966, 1966/1/28, 28.1.66 */
size_t heed__match_date(const heed__cursor *p)
{
    if (!begins_number(p))
        return 0;
    const size_t a = run(p, 0, is_digit), b = run(p, a + 1, is_digit);
    const char mark = at(p, a);
    const size_t c = run(p, a + b + 2, is_digit), n = a + b + c + 2;
    if ((mark != '/' && mark != '.') || at(p, a + b + 1) != mark)
        return 0;
    const bool sizes =
        b >= 1 && b <= 2 && ((a <= 2 && (c == 2 || c == 4)) || (a == 4 && c && c <= 2));
    return sizes && at(p, n) != '/' ? if_ends(p, n) : 0;
}

/* Bytes of an English month at `i`, with the point of its abbreviation. */
static size_t month_at(const heed__cursor *p, size_t i)
{
    static const char *const months[] = {
        "january",   "february", "march",    "april",    "may", "june", "july", "august",
        "september", "october",  "november", "december", "jan", "feb",  "mar",  "apr",
        "jun",       "jul",      "aug",      "sept",     "sep", "oct",  "nov",  "dec"};
    for (size_t k = 0; is_upper(at(p, i)) && k < sizeof months / sizeof *months; k++) {
        const size_t n = strlen(months[k]);
        if (has_at(p, i, months[k]) && !word_at(p, i + n))
            return n + (n <= 4 && k >= 12 && at(p, i + n) == '.' && at(p, i + n + 1) == ' ');
    }
    return 0;
}

static size_t ordinal_ending_at(const heed__cursor *p, size_t i)
{
    static const char *const endings[] = {"st", "nd", "rd", "th"};
    for (size_t k = 0; k < 4; k++)
        if (has_at(p, i, endings[k]) && !word_at(p, i + 2))
            return 2;
    return 0;
}

/* Bytes of a day of the month at `i`, 3 or 3rd. */
static size_t day_at(const heed__cursor *p, size_t i)
{
    const size_t n = run(p, i, is_digit);
    if (n < 1 || n > 2)
        return 0;
    const size_t ending = ordinal_ending_at(p, i + n);
    return word_at(p, i + n + ending) ? 0 : n + ending;
}

/* Bytes of ` 2024` or `, 2024` at `i`. */
static size_t year_at(const heed__cursor *p, size_t i)
{
    const size_t begin = i + (at(p, i) == ',');
    return at(p, begin) == ' ' && run(p, begin + 1, is_digit) == 4 && !word_at(p, begin + 5)
               ? begin + 5 - i
               : 0;
}

/* The length of a date that begins at `i`. */
static size_t date_at(const heed__cursor *p, size_t i)
{
    size_t n = i + day_at(p, i);
    if (n > i) { /* 3 May 2024, 3rd of May */
        n += at(p, n) == ' ';
        n += has_at(p, n, "of ") ? 3 : 0;
        const size_t month = month_at(p, n);
        return month ? n + month + year_at(p, n + month) : 0;
    }
    n += month_at(p, i); /* May 3, 2024 */
    const size_t day = n > i && at(p, n) == ' ' ? day_at(p, n + 1) : 0;
    n += 1 + day;
    const bool goes_on = at(p, n) == ':' || at(p, n) == '-' || at(p, n) == '%' ||
                         ((at(p, n) == '.' || at(p, n) == ',') && is_digit(at(p, n + 1)));
    return day && !goes_on ? n + year_at(p, n) : 0;
}

/* "on" belongs to it; "In May 12 people came" has no date. */
size_t heed__match_named_date(const heed__cursor *p)
{
    const bool in = p->before >= 3 && (p->text[-3] | 0x20) == 'i' && (p->text[-2] | 0x20) == 'n';
    if (!begins_word(p) || (is_digit(at(p, 0)) ? !begins_number(p) : in && before(p) == ' '))
        return 0;
    return date_at(p, has_at(p, 0, "on ") ? 3 : 0);
}

/* 1990s, '90s */
size_t heed__match_decade(const heed__cursor *p)
{
    const size_t mark = at(p, 0) == '\'';
    const size_t n = (mark || begins_number(p)) && begins_word(p) ? run(p, mark, is_digit) : 0;
    const bool sizes = n == 4 || n == 2;
    return sizes && at(p, mark + n - 1) == '0' && has_at(p, mark + n, "s")
               ? if_ends(p, mark + n + 1)
               : 0;
}

size_t heed__match_in_decade(const heed__cursor *p)
{
    static const char in[] = "in the ";
    if (!has_at(p, 0, in) || !begins_word(p))
        return 0;
    const size_t n = strlen(in);
    const heed__cursor behind = {p->text + n, p->left - n, p->before + n};
    const size_t decade = heed__match_decade(&behind);
    return decade ? n + decade : 0;
}

size_t heed__match_ordinal(const heed__cursor *p)
{
    const size_t n = begins_number(p) ? run(p, 0, is_digit) : 0;
    return n && ordinal_ending_at(p, n) ? n + 2 : 0;
}

/* ---- times ---- */

/* Bytes of 11:31 or 11:31:05. */
static size_t clock(const heed__cursor *p)
{
    const size_t hour = begins_number(p) ? run(p, 0, is_digit) : 0;
    size_t n = hour;
    while (hour >= 1 && hour <= 2 && at(p, n) == ':' && run(p, n + 1, is_digit) == 2)
        n += 3;
    return n > hour ? n : 0;
}

size_t heed__match_time(const heed__cursor *p)
{
    return if_ends(p, clock(p));
}

/* A point that ends the text as well is not part of it. */
size_t heed__match_half_day(const heed__cursor *p)
{
    size_t n = clock(p), hour = begins_number(p) ? run(p, 0, is_digit) : 0;
    n = n ? n : hour <= 2 ? hour : 0;
    if (!n)
        return 0;
    n += at(p, n) == ' ';
    const bool points = has_at(p, n, "a.m") || has_at(p, n, "p.m");
    if (!points && !has_at(p, n, "am") && !has_at(p, n, "pm"))
        return 0;
    n += points ? 3 : 2;
    const bool last = n + 1 >= p->left || at(p, n + 1) != ' ' || is_upper(at(p, n + 2));
    return if_ends(p, n + (points && at(p, n) == '.' && !last));
}

/* ---- fractions and superscripts ---- */

static bool is_vulgar(int32_t c)
{
    return (c >= 0xBC && c <= 0xBE) || (c >= 0x2150 && c <= 0x215E);
}

static bool is_raised(int32_t c)
{
    return c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x2070 && c <= 0x209C);
}

/* Bytes of characters at `i` that satisfy `is`. */
static size_t characters(const heed__cursor *p, size_t i, bool (*is)(int32_t))
{
    int32_t c;
    size_t n = i;
    for (size_t size; (size = heed__utf8_next(p->text + n, p->left - n, &c)) && is(c);)
        n += size;
    return n - i;
}

size_t heed__match_fraction(const heed__cursor *p)
{
    const size_t whole = begins_number(p) ? run(p, 0, is_digit) : 0;
    const size_t own = characters(p, whole, is_vulgar);
    if (own)
        return whole + own;
    const size_t below = whole && at(p, whole) == '/' ? run(p, whole + 1, is_digit) : 0;
    const size_t n = whole + 1 + below;
    return below && whole <= 4 && below <= 4 && at(p, n) != '/' ? if_ends(p, n) : 0;
}

/* Short words are part of it: m², mc². */
size_t heed__match_superscript(const heed__cursor *p)
{
    size_t letters = begins_word(p) ? run(p, 0, is_alpha) : 0;
    if (letters > 3)
        return 0;
    const size_t raised = characters(p, letters, is_raised);
    return raised ? letters + raised : 0;
}

/* ---- versions and addresses ---- */

/* v2.3.1, 2.3.1-rc1 */
size_t heed__match_version(const heed__cursor *p)
{
    const size_t letter = at(p, 0) == 'v' || at(p, 0) == 'V';
    if (!begins_word(p) || !is_digit(at(p, letter)) || (!letter && !begins_number(p)))
        return 0;
    size_t n = letter + run(p, letter, is_digit), points = 0;
    for (; at(p, n) == '.' && is_digit(at(p, n + 1)); points++)
        n += 1 + run(p, n + 1, is_digit);
    return letter || points > 1 ? if_ends(p, n) : 0;
}

size_t heed__match_ip(const heed__cursor *p)
{
    size_t n = 0;
    for (int part = 0; begins_number(p) && part < 4; part++) {
        const size_t digits = run(p, n, is_digit);
        if (digits < 1 || digits > 3 || (part < 3 && at(p, n + digits) != '.'))
            return 0;
        n += digits + (part < 3);
    }
    const size_t more = n && (at(p, n) == '/' || at(p, n) == ':') ? run(p, n + 1, is_digit) : 0;
    return if_ends(p, n + (more ? 1 + more : 0));
}

/* Fewest digits of a serial number; 10-12 and 3-2 may be written differently in another
 * language. */
#define SERIAL_DIGITS 5

/* Groups of digits with hyphens between them, not continued by other characters. */
size_t heed__match_serial(const heed__cursor *p)
{
    if (!is_digit(at(p, 0)) || !begins_word(p) || (p->before && strchr(".,/-", p->text[-1])))
        return 0;
    size_t n = run(p, 0, is_digit), digits = n;
    while (at(p, n) == '-' && is_digit(at(p, n + 1))) {
        size_t more = run(p, n + 1, is_digit);
        digits += more;
        n += 1 + more;
    }
    const bool goes_on = word_at(p, n) || at(p, n) == '-' || at(p, n) == '/' ||
                         (strchr(".,:", at(p, n)) && is_digit(at(p, n + 1)));
    return digits < n && digits >= SERIAL_DIGITS && !goes_on ? n : 0;
}
