/* spm_order.c: see spm_order.h.  Fields of the protocol buffer that are not pieces are copied;
 * where a field of trainer_spec comes twice, the last one counts. */
#include "vocab/spm_order.h"
#include "base/error.h"
#include "files/protobuf.h"

#include <string.h>

enum { PIECES = 1, TRAINER_SPEC = 2, UNK_ID = 40, BOS_ID = 41, EOS_ID = 42, PAD_ID = 43 };

/* A growing file; `at` NULL only counts. */
struct out {
    unsigned char *at;
    size_t size;
};

static void put(struct out *o, const void *bytes, size_t size)
{
    if (o->at && size)
        memcpy(o->at + o->size, bytes, size);
    o->size += size;
}

static void put_varint(struct out *o, uint64_t value)
{
    do {
        const unsigned char byte = (unsigned char)(value | (value >= 0x80 ? 0x80 : 0));
        put(o, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_head(struct out *o, uint64_t field, size_t size)
{
    put_varint(o, field << 3 | HEED__WIRE_BYTES);
    put_varint(o, size);
}

static void put_new_piece(struct out *o, const heed__spm_entry *e)
{
    struct out inner = {NULL, 0};
    static const float score = 0;
    for (int pass = 0; pass < 2; pass++) {
        struct out *to = pass ? o : &inner;
        if (pass)
            put_head(o, PIECES, inner.size);
        put_head(to, 1, strlen(e->text));
        put(to, e->text, strlen(e->text));
        put_varint(to, 2 << 3 | HEED__WIRE_FIXED32);
        put(to, &score, sizeof score);
        put_varint(to, 3 << 3 | HEED__WIRE_VARINT);
        put_varint(to, (uint64_t)e->type);
    }
}

/* What else there is, trainer_spec with its numbers behind what it says. */
static void put_rest(struct out *o, const heed__field *f, int32_t unk, int32_t eos)
{
    const int32_t number[] = {unk, -1, eos, -1};
    struct out more = {NULL, 0};
    if (f->wire != HEED__WIRE_BYTES)
        return;
    for (int pass = 0; pass < 2; pass++) {
        struct out *to = pass ? o : &more;
        if (pass) {
            put_head(o, f->number, f->size + (f->number == TRAINER_SPEC ? more.size : 0));
            put(o, f->bytes, f->size);
        }
        for (int i = 0; f->number == TRAINER_SPEC && i < 4; i++) {
            put_varint(to, (uint64_t)(UNK_ID + i) << 3 | HEED__WIRE_VARINT);
            put_varint(to, (uint64_t)(int64_t)number[i]);
        }
    }
}

static void put_all(struct out *o, const void *spm, size_t size, const heed__field *piece,
                    const heed__spm_entry *entry, int32_t count, int32_t unk, int32_t eos)
{
    for (int32_t i = 0; i < count; i++)
        if (entry[i].from < 0) {
            put_new_piece(o, &entry[i]);
        } else {
            put_head(o, PIECES, piece[entry[i].from].size);
            put(o, piece[entry[i].from].bytes, piece[entry[i].from].size);
        }
    heed__field f;
    for (heed__message m = heed__message_over(spm, size); heed__field_next(&m, &f);)
        if (f.number != PIECES)
            put_rest(o, &f, unk, eos);
}

heed_status heed__spm_order(const void *spm, size_t size, const char *path,
                            const heed__spm_entry *entry, int32_t count, int32_t unk, int32_t eos,
                            heed_arena *arena, const void **bytes, size_t *made, heed_error *err)
{
    heed__field f;
    int32_t pieces = 0;
    for (heed__message m = heed__message_over(spm, size); heed__field_next(&m, &f);)
        pieces += f.number == PIECES && f.wire == HEED__WIRE_BYTES;
    heed__field *piece = heed_arena_allocate(arena, (size_t)pieces * sizeof *piece);
    if (!piece)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%.255s'", path);
    pieces = 0;
    for (heed__message m = heed__message_over(spm, size); heed__field_next(&m, &f);)
        if (f.number == PIECES && f.wire == HEED__WIRE_BYTES)
            piece[pieces++] = f;
    for (int32_t i = 0; i < count; i++)
        if (entry[i].from >= pieces)
            return heed__fail(err, HEED_FORMAT, "vocabulary '%.255s' has no piece %d", path,
                              entry[i].from);
    struct out o = {NULL, 0};
    put_all(&o, spm, size, piece, entry, count, unk, eos);
    o = (struct out){heed_arena_allocate(arena, o.size), 0};
    if (!o.at)
        return heed__fail(err, HEED_MEMORY, "out of memory for vocabulary '%.255s'", path);
    put_all(&o, spm, size, piece, entry, count, unk, eos);
    *bytes = o.at;
    *made = o.size;
    return HEED_OK;
}
