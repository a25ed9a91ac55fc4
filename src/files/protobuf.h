/* protobuf.h: the fields of a protocol buffer, one after the other. */
#ifndef HEED_FILES_PROTOBUF_H
#define HEED_FILES_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum heed__wire {
    HEED__WIRE_VARINT = 0,
    HEED__WIRE_FIXED64 = 1,
    HEED__WIRE_BYTES = 2,
    HEED__WIRE_FIXED32 = 5,
} heed__wire;

typedef struct heed__field {
    uint64_t number;
    int wire;
    uint64_t value;             /* of a varint */
    const unsigned char *bytes; /* of the others */
    size_t size;
} heed__field;

typedef struct heed__message {
    const unsigned char *at, *end;
    bool broken;
} heed__message;

static inline heed__message heed__message_over(const void *bytes, size_t size)
{
    const unsigned char *begin = bytes;
    return (heed__message){begin, begin + size, false};
}
/* The fields inside of a field. */
static inline heed__message heed__message_in(const heed__field *f)
{
    return heed__message_over(f->bytes, f->size);
}
/* False at the end, or where it is broken. */
bool heed__field_next(heed__message *m, heed__field *f);
/* A varint on its own, as packed numbers are; sets broken. */
uint64_t heed__varint_next(heed__message *m);

#endif
