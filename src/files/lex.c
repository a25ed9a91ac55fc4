/* lex.c: see lex.h.  The checksum is of every u64 from byte 16 on; a last half word is not
 * counted. */
#include "files/lex.h"
#include "base/error.h"

#define HEADER 48

static uint64_t checksum_of(const unsigned char *bytes, size_t size)
{
    heed__byte_cursor c = heed__bytes_over(bytes + 16, size - 16);
    uint64_t h = 0;
    while (heed__bytes_left(&c) >= 8)
        h ^= heed__read_u64(&c) + 0x9e3779b9u + (h << 6) + (h >> 2);
    return h;
}

int64_t heed__lex_offset(const heed__lex *l, int64_t i)
{
    heed__byte_cursor c = heed__bytes_over(l->offset + 8 * i, 8);
    return (int64_t)heed__read_u64(&c);
}

int32_t heed__lex_id(const heed__lex *l, int64_t k)
{
    heed__byte_cursor c = heed__bytes_over(l->id + 4 * k, 4);
    return (int32_t)heed__read_u32(&c);
}

/* Offsets ascend from 0 to the number of ids; ids ascend within a piece. */
static heed_status check_entries(const heed__lex *l, const char *name, int64_t targets,
                                 heed_error *err)
{
    for (int64_t s = 0; s < l->sources; s++) {
        const int64_t begin = heed__lex_offset(l, s), end = heed__lex_offset(l, s + 1);
        if (begin < 0 || end < begin || end > l->entries || (s == 0 && begin != 0))
            return heed__fail(
                err, HEED_FORMAT,
                "cannot open '%s': the ids of source piece %lld are %lld to %lld, the "
                "file has %lld",
                name, (long long)s, (long long)begin, (long long)end, (long long)l->entries);
        for (int64_t k = begin; k < end; k++) {
            const int32_t id = heed__lex_id(l, k);
            if (id < 0 || id >= targets || (k > begin && id <= heed__lex_id(l, k - 1)))
                return heed__fail(err, HEED_FORMAT,
                                  "cannot open '%s': source piece %lld has target id %d, expected "
                                  "ascending ids below %lld: it belongs to another vocabulary",
                                  name, (long long)s, id, (long long)targets);
        }
    }
    return heed__lex_offset(l, l->sources) == l->entries
               ? HEED_OK
               : heed__fail(err, HEED_FORMAT,
                            "cannot open '%s': its last offset is %lld, expected %lld", name,
                            (long long)heed__lex_offset(l, l->sources), (long long)l->entries);
}

heed_status heed__lex_open(heed__lex *l, const char *name, const void *bytes, size_t size,
                           int64_t sources, int64_t targets, heed_error *err)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    const uint64_t magic = heed__read_u64(&c), checksum = heed__read_u64(&c);
    const uint64_t first = heed__read_u64(&c), best = heed__read_u64(&c);
    const uint64_t offsets = heed__read_u64(&c), entries = heed__read_u64(&c);
    *l = (heed__lex){0};
    if (c.broken || magic != HEED__LEX_MAGIC)
        return heed__fail(err, HEED_FORMAT,
                          "cannot open '%s': it is no shortlist of Bergamot's, which begins with "
                          "0xF11A48D5013417F5",
                          name);
    if (offsets < 1 || offsets > size / 8 || entries > size / 4 ||
        size != HEADER + 8 * offsets + 4 * entries)
        return heed__fail(err, HEED_FORMAT,
                          "cannot open '%s': it has %zu bytes, which %llu offsets and %llu ids do "
                          "not make",
                          name, size, (unsigned long long)offsets, (unsigned long long)entries);
    if (first > INT32_MAX || best > INT32_MAX)
        return heed__fail(err, HEED_FORMAT, "cannot open '%s': its counts cannot be", name);
    if (sources && (uint64_t)sources + 1 != offsets)
        return heed__fail(
            err, HEED_FORMAT,
            "cannot open '%s': it has %llu source pieces, expected %lld: it belongs to "
            "another vocabulary",
            name, (unsigned long long)offsets - 1, (long long)sources);
    if (checksum_of(bytes, size) != checksum)
        return heed__fail(err, HEED_FORMAT, "cannot open '%s': its checksum is wrong", name);
    l->first = (int64_t)first;
    l->best = (int64_t)best;
    l->sources = (int64_t)offsets - 1;
    l->entries = (int64_t)entries;
    l->offset = heed__read_bytes(&c, 8 * offsets);
    l->id = heed__read_bytes(&c, 4 * entries);
    return check_entries(l, name, targets, err);
}

heed_status heed__lex_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    heed__lex l;
    f->format = "lexical shortlist";
    heed_status status = heed__lex_open(&l, f->path, bytes, size, 0, INT32_MAX, err);
    const struct {
        const char *name;
        int64_t value;
    } facts[] = {{"source pieces", l.sources},
                 {"always", l.first},
                 {"best of each piece", l.best},
                 {"entries", l.entries}};
    for (size_t i = 0; !status && i < sizeof facts / sizeof *facts; i++)
        status = heed__found_say(f, facts[i].name, json_integer((json_int_t)facts[i].value), err);
    return status;
}
