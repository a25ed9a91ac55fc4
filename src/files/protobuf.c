/* protobuf.c: see protobuf.h. */
#include "files/protobuf.h"

uint64_t heed__varint_next(heed__message *m)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    m->broken = true;
    return 0;
}

bool heed__field_next(heed__message *m, heed__field *f)
{
    if (m->broken || m->at == m->end)
        return false;
    uint64_t key = heed__varint_next(m);
    *f = (heed__field){.number = key >> 3, .wire = (int)(key & 7)};
    if (f->wire == HEED__WIRE_VARINT)
        f->value = heed__varint_next(m);
    else if (f->wire == HEED__WIRE_BYTES)
        f->size = (size_t)heed__varint_next(m);
    else if (f->wire == HEED__WIRE_FIXED32 || f->wire == HEED__WIRE_FIXED64)
        f->size = f->wire == HEED__WIRE_FIXED32 ? 4 : 8;
    else
        m->broken = true;
    if (f->number == 0 || f->size > (size_t)(m->end - m->at))
        m->broken = true;
    if (m->broken)
        return false;
    f->bytes = m->at;
    m->at += f->size;
    return true;
}
