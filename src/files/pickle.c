/* pickle.c: a reader of pickles that runs nothing: a stack, a memo and the few operations that a
 * dictionary of tensors needs.  What a pickle calls is compared with a list, never looked up. */
#include "files/pickle.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_DEPTH 100000
#define MOST_MEMO ((uint64_t)1 << 24)

struct machine {
    heed__found *f;
    heed_error *err;
    heed__byte_cursor c;
    heed__pickled **stack; /* (depth) */
    size_t depth, capacity;
    heed__pickled **memo; /* (memos) */
    size_t memos;
    bool failed;
};

/* ---- values ---- */

static void fail(struct machine *m, const char *what)
{
    if (!m->failed)
        heed__found_fail(m->f, m->err, "its pickle is damaged at byte %zu: %s",
                         heed__bytes_offset(&m->c), what);
    m->failed = true;
}

static heed__pickled *new_value(struct machine *m, heed__pickled_kind kind)
{
    heed__pickled *v = heed__found_take(m->f, 1, sizeof *v, m->err);
    if (v)
        *v = (heed__pickled){.kind = kind};
    else
        m->failed = true;
    return v;
}

/* A longer array in the arena, twice as long each time. */
static bool reserve(struct machine *m, heed__pickled ***array, size_t *capacity, size_t needed)
{
    if (needed <= *capacity)
        return true;
    size_t more = *capacity ? *capacity : 16;
    while (more < needed)
        more *= 2;
    heed__pickled **larger = heed__found_take(m->f, more, sizeof *larger, m->err);
    if (!larger) {
        m->failed = true;
        return false;
    }
    memset(larger, 0, more * sizeof *larger);
    if (*capacity)
        memcpy(larger, *array, *capacity * sizeof *larger);
    *array = larger;
    *capacity = more;
    return true;
}

static void push(struct machine *m, heed__pickled *v)
{
    if (m->depth == MOST_DEPTH)
        fail(m, "its stack is too deep");
    else if (v && reserve(m, &m->stack, &m->capacity, m->depth + 1))
        m->stack[m->depth++] = v;
}

static heed__pickled *pop(struct machine *m)
{
    if (m->depth == 0) {
        fail(m, "its stack is empty");
        return NULL;
    }
    return m->stack[--m->depth];
}

static void push_number(struct machine *m, int64_t number)
{
    heed__pickled *v = new_value(m, HEED__PICKLED_NUMBER);
    if (v)
        v->number = number;
    push(m, v);
}

static void push_text(struct machine *m, heed__pickled_kind kind, const unsigned char *text,
                      uint64_t length)
{
    heed__pickled *v = text ? new_value(m, kind) : NULL;
    if (!text)
        fail(m, "a text leaves the file");
    if (v)
        v->text = heed__found_text(m->f, (const char *)text, (size_t)length, m->err);
    m->failed |= v && !v->text;
    push(m, v);
}

/* The last n values as a list. */
static void push_list(struct machine *m, size_t n)
{
    heed__pickled *v = new_value(m, HEED__PICKLED_LIST);
    if (n > m->depth) {
        fail(m, "its stack is too short");
        return;
    }
    if (!v || !reserve(m, &v->item, &v->capacity, n))
        return;
    if (n)
        memcpy(v->item, m->stack + m->depth - n, n * sizeof *v->item);
    v->count = n;
    m->depth -= n;
    push(m, v);
}

/* How many values stand above the last mark, which is taken away. */
static size_t since_mark(struct machine *m)
{
    for (size_t i = m->depth; i-- > 0;)
        if (m->stack[i]->kind == HEED__PICKLED_MARK) {
            const size_t n = m->depth - i - 1;
            memmove(m->stack + i, m->stack + i + 1, n * sizeof *m->stack);
            m->depth--;
            return n;
        }
    fail(m, "it has no mark");
    return 0;
}

/* The last n values go into the list or dictionary below them. */
static void append(struct machine *m, size_t n)
{
    if (m->failed || n >= m->depth) {
        fail(m, "its stack is too short");
        return;
    }
    heed__pickled *to = m->stack[m->depth - n - 1];
    if (to->kind != HEED__PICKLED_LIST && to->kind != HEED__PICKLED_DICT) {
        fail(m, "items for what is no list or dictionary");
        return;
    }
    if (!reserve(m, &to->item, &to->capacity, to->count + n))
        return;
    for (size_t i = 0; i < n; i++)
        to->item[to->count++] = m->stack[m->depth - n + i];
    m->depth -= n;
}

/* ---- calls and names ---- */

static void push_global(struct machine *m)
{
    const size_t left = heed__bytes_left(&m->c);
    const unsigned char *first = left ? memchr(m->c.at, '\n', left) : NULL;
    const unsigned char *second =
        first ? memchr(first + 1, '\n', left - (size_t)(first + 1 - m->c.at)) : NULL;
    if (!second) {
        fail(m, "a name without an end");
        return;
    }
    const size_t length = (size_t)(second - m->c.at), module = (size_t)(first - m->c.at);
    const unsigned char *text = heed__read_bytes(&m->c, length + 1);
    push_text(m, HEED__PICKLED_GLOBAL, text, length);
    if (!m->failed)
        ((char *)m->stack[m->depth - 1]->text)[module] = ' ';
}

static void call(struct machine *m)
{
    heed__pickled *arguments = pop(m), *what = pop(m);
    if (m->failed)
        return;
    const char *name = what->kind == HEED__PICKLED_GLOBAL ? what->text : "";
    if (strcmp(name, "collections OrderedDict") == 0) {
        push(m, new_value(m, HEED__PICKLED_DICT));
    } else if (strcmp(name, "torch._utils _rebuild_tensor_v2") == 0 &&
               arguments->kind == HEED__PICKLED_LIST && arguments->count >= 4) {
        heed__pickled *v = new_value(m, HEED__PICKLED_TENSOR);
        if (v) {
            *v = *arguments;
            v->kind = HEED__PICKLED_TENSOR;
        }
        push(m, v);
    } else if (strcmp(name, "torch._utils _rebuild_parameter") == 0 && arguments->count >= 1) {
        push(m, arguments->item[0]);
    } else if (strcmp(name, "torch Size") == 0 && arguments->count == 1) {
        push(m, arguments->item[0]);
    } else {
        heed__found_fail(
            m->f, m->err,
            "its pickle asks to run '%.100s'; heed runs nothing and reads tensors only", name);
        m->failed = true;
    }
}

static void memorize(struct machine *m, uint64_t at)
{
    if (m->depth == 0 || at > MOST_MEMO)
        fail(m, "a memo that cannot be");
    else if (reserve(m, &m->memo, &m->memos, (size_t)at + 1))
        m->memo[at] = m->stack[m->depth - 1];
}

static void recall(struct machine *m, uint64_t at)
{
    if (at >= m->memos || !m->memo[at])
        fail(m, "a memo that there is not");
    else
        push(m, m->memo[at]);
}

static void persistent(struct machine *m)
{
    heed__pickled *id = pop(m), *v = m->failed ? NULL : new_value(m, HEED__PICKLED_STORAGE);
    if (!v)
        return;
    if (id->kind != HEED__PICKLED_LIST || id->count < 5) {
        fail(m, "a persistent id that is no storage");
        return;
    }
    *v = *id;
    v->kind = HEED__PICKLED_STORAGE;
    push(m, v);
}

/* LONG1: a little-endian number of up to eight bytes. */
static void push_long(struct machine *m)
{
    const int n = (int)heed__read_number(&m->c, 1);
    if (n > 8) {
        fail(m, "a number of more than eight bytes");
        return;
    }
    uint64_t value = n ? heed__read_number(&m->c, n) : 0;
    if (n && n < 8 && value >> (8 * n - 1))
        value |= ~(uint64_t)0 << 8 * n;
    push_number(m, (int64_t)value);
}

/* ---- the loop ---- */

enum {
    PROTO = 0x80,
    TUPLE1 = 0x85,
    TUPLE2,
    TUPLE3,
    NEWTRUE,
    NEWFALSE,
    LONG1,
    SHORT_BINUNICODE = 0x8C,
    MEMOIZE = 0x94,
    FRAME = 0x95,
};

static void step(struct machine *m, int op)
{
    uint64_t n;
    switch (op) {
    case PROTO:
        n = heed__read_number(&m->c, 1);
        if (n < 2 || n > 4)
            fail(m, "expected protocol 2 to 4");
        break;
    case FRAME:
        heed__read_u64(&m->c);
        break;
    case '}':
        push(m, new_value(m, HEED__PICKLED_DICT));
        break;
    case ']':
    case ')':
        push(m, new_value(m, HEED__PICKLED_LIST));
        break;
    case 'N':
        push(m, new_value(m, HEED__PICKLED_NONE));
        break;
    case NEWTRUE:
    case NEWFALSE:
        push_number(m, op == NEWTRUE);
        break;
    case 'J':
        push_number(m, (int32_t)heed__read_u32(&m->c));
        break;
    case 'K':
        push_number(m, (int64_t)heed__read_number(&m->c, 1));
        break;
    case 'M':
        push_number(m, (int64_t)heed__read_number(&m->c, 2));
        break;
    case 'G':
        heed__read_u64(&m->c);
        push_number(m, 0); /* no number of a tensor's is a fraction */
        break;
    case LONG1:
        push_long(m);
        break;
    case 'X':
        n = heed__read_u32(&m->c);
        push_text(m, HEED__PICKLED_TEXT, heed__read_bytes(&m->c, n), n);
        break;
    case 'U':
    case SHORT_BINUNICODE:
        n = heed__read_number(&m->c, 1);
        push_text(m, HEED__PICKLED_TEXT, heed__read_bytes(&m->c, n), n);
        break;
    case 'c':
        push_global(m);
        break;
    case '(':
        push(m, new_value(m, HEED__PICKLED_MARK));
        break;
    case 't':
        push_list(m, since_mark(m));
        break;
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        push_list(m, (size_t)(op - TUPLE1 + 1));
        break;
    case 'a':
        append(m, 1);
        break;
    case 's':
        append(m, 2);
        break;
    case 'e':
    case 'u':
        append(m, since_mark(m));
        break;
    case 'b': /* attributes of an object: not of interest */
        pop(m);
        break;
    case 'q':
        memorize(m, heed__read_number(&m->c, 1));
        break;
    case 'r':
        memorize(m, heed__read_u32(&m->c));
        break;
    case 'h':
        recall(m, heed__read_number(&m->c, 1));
        break;
    case 'j':
        recall(m, heed__read_u32(&m->c));
        break;
    case 'Q':
        persistent(m);
        break;
    case 'R':
        call(m);
        break;
    default:
        fail(m, "an operation that dictionaries of tensors do not have");
    }
}

heed__pickled *heed__pickle_read(heed__found *f, const unsigned char *bytes, size_t size,
                                 heed_error *err)
{
    struct machine m = {.f = f, .err = err, .c = heed__bytes_over(bytes, size)};
    while (!m.failed) {
        const int op = (int)heed__read_number(&m.c, 1);
        if (m.c.broken)
            fail(&m, "it ends too early");
        else if (op == '.')
            return pop(&m);
        else
            step(&m, op);
    }
    return NULL;
}
