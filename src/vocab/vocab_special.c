/* vocab_special.c: special pieces of published vocabularies, found by their names. */
#include "vocab/vocabulary.h"

#include <string.h>

struct name {
    const char *text;
    size_t place; /* in heed_special_ids */
    heed__piece_type type;
};

#define PLACE(field) offsetof(heed_special_ids, field)

/* The first of several names for one place that a vocabulary has is it. */
static const struct name names[] = {
    {"<unk>", PLACE(unk), HEED__PIECE_UNKNOWN},
    {"[UNK]", PLACE(unk), HEED__PIECE_UNKNOWN},
    {"<s>", PLACE(bos), HEED__PIECE_CONTROL},
    {"<|begin_of_text|>", PLACE(bos), HEED__PIECE_CONTROL},
    {"<|im_start|>", PLACE(bos), HEED__PIECE_CONTROL},
    {"<|startoftext|>", PLACE(bos), HEED__PIECE_CONTROL},
    {"<|endoftext|>", PLACE(bos), HEED__PIECE_CONTROL},
    {"</s>", PLACE(eos), HEED__PIECE_CONTROL},
    {"<|end_of_text|>", PLACE(eos), HEED__PIECE_CONTROL},
    {"<|im_end|>", PLACE(eos), HEED__PIECE_CONTROL},
    {"<|endoftext|>", PLACE(eos), HEED__PIECE_CONTROL},
    {"<pad>", PLACE(pad), HEED__PIECE_CONTROL},
    {"[PAD]", PLACE(pad), HEED__PIECE_CONTROL},
    {"[MASK]", PLACE(mask), HEED__PIECE_USER},
    {"<mask>", PLACE(mask), HEED__PIECE_USER},
    {"[CLS]", PLACE(cls), HEED__PIECE_CONTROL},
    {"[SEP]", PLACE(sep), HEED__PIECE_CONTROL},
};

static void find_placeholders(heed_vocab *v)
{
    for (int32_t i = 0; i < HEED_PLACEHOLDERS; i++) {
        const char *text = heed__special(HEED_PLACEHOLDER + i);
        const int32_t id = heed__pieces_find(&v->pieces, text, strlen(text));
        if (id < 0 || (i > 0 && id != v->special.placeholder + i))
            return;
        if (i == 0)
            v->special.placeholder = id;
        v->special.placeholders = i + 1;
    }
}

void heed__special_by_name(heed_vocab *v)
{
    v->special = (heed_special_ids){.unk = -1,
                                    .bos = -1,
                                    .eos = -1,
                                    .pad = -1,
                                    .mask = -1,
                                    .cls = -1,
                                    .sep = -1,
                                    .start = -1,
                                    .placeholder = -1};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t id = heed__pieces_find(&v->pieces, names[i].text, strlen(names[i].text));
        int32_t *place = (int32_t *)((char *)&v->special + names[i].place);
        if (id < 0 || *place >= 0)
            continue;
        *place = id;
        v->pieces.item[id].type = names[i].type;
    }
    v->special.start = v->special.bos >= 0 ? v->special.bos : v->special.cls;
    find_placeholders(v);
    if (v->special.placeholders < HEED_PLACEHOLDERS) { /* all of them or none */
        v->special.placeholder = -1;
        v->special.placeholders = 0;
    }
    for (int32_t i = 0; i < v->special.placeholders; i++)
        v->pieces.item[v->special.placeholder + i].type = HEED__PIECE_USER;
}
