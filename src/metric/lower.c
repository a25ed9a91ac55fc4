/* lower.c: lower case as Python's str.lower: Unicode's full mapping without locale.  Two characters
 * differ from the one-to-one mapping: capital I with dot above becomes two, and a capital sigma
 * depends on its neighbours. */
#include "metric/codes.h"

#include <utf8proc.h>

enum { SIGMA = 0x3A3, SMALL_SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2, I_DOT = 0x130, DOT_ABOVE = 0x307 };

/* Unicode's Case_Ignorable: marks, modifiers and format characters, and the punctuation that may
 * stand inside a word (Word_Break MidLetter, MidNumLet and Single_Quote). */
static bool case_ignorable(int32_t c)
{
    static const int32_t inside[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,
                                     0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                     0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (c == inside[i])
            return true;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

/* Unicode's Cased, for a character that is not Case_Ignorable. */
static bool cased(int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
        return true;
    default: /* Other_Lowercase and Other_Uppercase: ordinals, Roman numerals, circled letters */
        return c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) ||
               (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
               (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    }
}

/* Whether a cased character follows i in direction step, with nothing but ignorable ones between.
 */
static bool meets_cased(const heed__codes *in, int64_t i, int step)
{
    for (i += step; i >= 0 && i < in->count; i += step)
        if (!case_ignorable(in->at[i]))
            return cased(in->at[i]);
    return false;
}

void heed__lower(heed__codes *out, const heed__codes *in)
{
    for (int64_t i = 0; i < in->count; i++) {
        int32_t c = in->at[i];
        if (c < 0x80) {
            heed__codes_add(out, c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
        } else if (c == SIGMA) {
            bool final = meets_cased(in, i, -1) && !meets_cased(in, i, 1);
            heed__codes_add(out, final ? FINAL_SIGMA : SMALL_SIGMA);
        } else if (c == I_DOT) {
            heed__codes_add(out, 'i');
            heed__codes_add(out, DOT_ABOVE);
        } else {
            heed__codes_add(out, utf8proc_tolower(c));
        }
    }
}
