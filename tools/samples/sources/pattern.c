/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns and near misses. */
#include "kinparse.h"

#include <string.h>

#define LONGEST 128

static const char *match_class(const char *pattern, char c, int *found)
{
    int negate = *pattern == '!' || *pattern == '^';
    const char *first = pattern += negate;
    *found = 0;
    while (*pattern && (*pattern != ']' || pattern == first)) {
        char low = *pattern++, high = low;
        if (*pattern == '-' && pattern[1] && pattern[1] != ']') {
            high = pattern[1];
            pattern += 2;
        }
        if (low <= c && c <= high)
            *found = 1;
    }
    if (negate)
        *found = !*found;
    return *pattern == ']' ? pattern + 1 : NULL;
}

int glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        const char *next = NULL;
        int matched = 0;
        switch (*pattern) {
        case '*':
            star = ++pattern;
            retry = text;
            continue;
        case '?':
            matched = 1;
            next = pattern + 1;
            break;
        case '[':
            next = match_class(pattern + 1, *text, &matched);
            if (!next)
                return -1;
            break;
        case '\\':
            if (pattern[1])
                pattern++;
            /* fall through */
        default:
            matched = *pattern == *text;
            next = pattern + 1;
            break;
        }
        if (matched) {
            pattern = next;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static int match_one(const char *pattern, char c)
{
    if (c == 0)
        return 0;
    if (*pattern == '\\') {
        switch (pattern[1]) {
        case 'd':
            return c >= '0' && c <= '9';
        case 'w':
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_';
        case 's':
            return c == ' ' || c == '\t' || c == '\n';
        default:
            return c == pattern[1];
        }
    }
    return *pattern == '.' || *pattern == c;
}

static int match_here(const char *pattern, const char *text)
{
    for (;;) {
        if (*pattern == 0)
            return 1;
        if (*pattern == '$' && pattern[1] == 0)
            return *text == 0;
        const char *after = pattern + (*pattern == '\\' && pattern[1] ? 2 : 1);
        if (*after == '*' || *after == '+') {
            const char *end = text;
            while (match_one(pattern, *end))
                end++;
            for (const char *least = text + (*after == '+'); end >= least; end--)
                if (match_here(after + 1, end))
                    return 1;
            return 0;
        }
        if (*after == '?') {
            if (match_one(pattern, *text) && match_here(after + 1, text + 1))
                return 1;
            pattern = after + 1;
            continue;
        }
        if (!match_one(pattern, *text))
            return 0;
        pattern = after;
        text++;
    }
}

/* Where the first match starts, or -1. */
int regex_search(const char *pattern, const char *text)
{
    if (*pattern == '^')
        return match_here(pattern + 1, text) ? 0 : -1;
    for (int at = 0;; at++) {
        if (match_here(pattern, text + at))
            return at;
        if (text[at] == 0)
            return -1;
    }
}

int edit_distance(const char *a, const char *b)
{
    int row[LONGEST + 1];
    size_t rows = strlen(a), columns = strlen(b);
    if (columns > LONGEST)
        return -1;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= rows; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= columns; j++) {
            int best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[columns];
}
