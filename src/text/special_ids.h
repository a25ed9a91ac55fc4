/* special_ids.h (internal): tokens that are not text. */
#ifndef HEED_TEXT_SPECIAL_IDS_H
#define HEED_TEXT_SPECIAL_IDS_H

#include <heed/text.h>

/* Which placeholder a token is; -1: none. */
static inline int32_t heed__placeholder_of(const heed_special_ids *s, int32_t token)
{
    const int32_t i = token - s->placeholder;
    return s->placeholder >= 0 && i >= 0 && i < s->placeholders ? i : -1;
}

static inline bool heed__is_placeholder(const heed_special_ids *s, int32_t token)
{
    return heed__placeholder_of(s, token) >= 0;
}

/* A configuration that says nothing of them (all zero) is of heed's own vocabularies. */
static inline heed_special_ids heed__ids_or_own(const heed_special_ids *s)
{
    const bool says = s->unk || s->bos || s->eos || s->start;
    return says ? *s : HEED_OWN_IDS;
}

#define HEED__SPECIAL_IDS 8 /* at most, placeholders aside */
/* All of them but the placeholders; list has HEED__SPECIAL_IDS places.  Returns how many. */
static inline int heed__ids_list(const heed_special_ids *s, int32_t *list)
{
    const int32_t all[HEED__SPECIAL_IDS] = {s->unk,  s->bos, s->eos, s->pad,
                                            s->mask, s->cls, s->sep, s->start};
    int n = 0;
    for (int i = 0; i < HEED__SPECIAL_IDS; i++) {
        bool known = all[i] < 0;
        for (int k = 0; k < n; k++)
            known |= list[k] == all[i];
        if (!known)
            list[n++] = all[i];
    }
    return n;
}

#endif
