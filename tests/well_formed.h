/* well_formed.h: is a text one XML element, tags closed in order, attributes quoted, signs
 * escaped? */
#ifndef HEED_TESTS_WELL_FORMED_H
#define HEED_TESTS_WELL_FORMED_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool known_entity(const char *p)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(p, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* The end of a tag that starts at p (behind its name), NULL if it is wrong. */
static const char *tag_end(const char *p, bool *closed)
{
    for (;;) {
        p += strspn(p, " \n");
        *closed = *p == '/';
        if (p[*closed] == '>')
            return p + *closed + 1;
        size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-:");
        if (name == 0 || p[name] != '=' || p[name + 1] != '"')
            return NULL;
        for (p += name + 2; *p != '"'; p++)
            if (*p == '\0' || *p == '<' || (*p == '&' && !known_entity(p)))
                return NULL;
        p++;
    }
}

/* NULL if it is; else where it went wrong. */
static const char *not_well_formed(const char *text)
{
    enum { DEEPEST = 16 };
    char open[DEEPEST][32];
    int depth = 0, roots = 0;
    const char *p = text;
    while (*p) {
        if ((unsigned char)*p < 0x20 && *p != '\n')
            return p;
        if (*p == '&' && !known_entity(p))
            return p;
        if (*p != '<') {
            if (depth == 0 && !isspace((unsigned char)*p))
                return p;
            p++;
            continue;
        }
        bool end = p[1] == '/', closed;
        const char *name = p + 1 + end;
        size_t n = 0;
        while (isalnum((unsigned char)name[n]))
            n++;
        if (n == 0 || n >= sizeof open[0])
            return p;
        const char *after = tag_end(name + n, &closed);
        if (!after)
            return p;
        if (end) {
            if (depth == 0 || strncmp(open[depth - 1], name, n) != 0 || open[depth - 1][n])
                return p;
            depth--;
        } else {
            roots += depth == 0;
            if (depth == DEEPEST)
                return p;
            snprintf(open[depth], sizeof open[0], "%.*s", (int)n, name);
            depth += !closed;
        }
        p = after;
    }
    return depth == 0 && roots == 1 ? NULL : p;
}

#endif
