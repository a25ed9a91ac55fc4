/* placeholder.h (internal): the tokens that stand for protected spans. */
#ifndef HEED_TEXT_PLACEHOLDER_H
#define HEED_TEXT_PLACEHOLDER_H

#include <heed/text.h>

static inline bool heed__is_placeholder(int32_t token)
{
    return token >= HEED_PLACEHOLDER && token < HEED_PLACEHOLDER + HEED_PLACEHOLDERS;
}

#endif
