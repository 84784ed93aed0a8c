/* SPDX-License-Identifier: Apache-2.0 */
/* Words, fields and lines. */
#include "kinparse.h"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Splits a command line in place, with the quotes of a shell; -1 when a quote stays open. */
int split_arguments(char *line, char **arguments, int most)
{
    char *from = line, *to = line;
    int count = 0;
    for (;;) {
        while (*from == ' ' || *from == '\t')
            from++;
        if (*from == 0 || *from == '#')
            return count;
        if (count == most)
            return -2;
        arguments[count++] = to;
        char quote = 0;
        for (; *from && (quote || (*from != ' ' && *from != '\t')); from++) {
            if (quote) {
                if (*from == quote)
                    quote = 0;
                else if (*from == '\\' && quote == '"' && (from[1] == '"' || from[1] == '\\'))
                    *to++ = *++from;
                else
                    *to++ = *from;
            } else if (*from == '"' || *from == '\'') {
                quote = *from;
            } else if (*from == '\\' && from[1]) {
                *to++ = *++from;
            } else {
                *to++ = *from;
            }
        }
        if (quote)
            return -1;
        if (*from)
            from++;
        *to++ = 0;
    }
}

/* The next field: its length, -1 behind the last one, -2 when it is wrong or too long. */
int csv_field(const char *line, size_t length, size_t *at, char *out, size_t room)
{
    size_t used = 0, i = *at;
    if (i > length)
        return -1;
    if (i < length && line[i] == '"') {
        for (i++;; i++) {
            if (i >= length)
                return -2;
            if (line[i] == '"') {
                if (i + 1 < length && line[i + 1] == '"')
                    i++;
                else
                    break;
            }
            if (used + 1 >= room)
                return -2;
            out[used++] = line[i];
        }
        i++;
        if (i < length && line[i] != ',')
            return -2;
    } else {
        for (; i < length && line[i] != ','; i++) {
            if (line[i] == '"' || used + 1 >= room)
                return -2;
            out[used++] = line[i];
        }
    }
    out[used] = 0;
    *at = i + 1;
    return (int)used;
}

/* 1.10 is later than 1.9, and 1.0 is later than 1.0-rc2. */
int compare_versions(const char *a, const char *b)
{
    for (;;) {
        uint32_t left = 0, right = 0;
        while (is_digit(*a))
            left = 10 * left + (uint32_t)(*a++ - '0');
        while (is_digit(*b))
            right = 10 * right + (uint32_t)(*b++ - '0');
        if (left != right)
            return left < right ? -1 : 1;
        if (*a == 0 && *b == 0)
            return 0;
        if (*a == '-' && *b != '-')
            return -1;
        if (*b == '-' && *a != '-')
            return 1;
        while (*a && *b && !is_digit(*a) && !is_digit(*b)) {
            if (*a != *b)
                return *a < *b ? -1 : 1;
            a++;
            b++;
        }
        if (*a == 0 && *b)
            return -1;
        if (*b == 0 && *a)
            return 1;
        if (is_digit(*a) != is_digit(*b))
            return is_digit(*a) ? -1 : 1;
    }
}

/* Numbers by their value, letters without regard to case. */
int compare_natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            int bias = 0;
            while (*a == '0' && is_digit(a[1]))
                a++;
            while (*b == '0' && is_digit(b[1]))
                b++;
            while (is_digit(*a) && is_digit(*b)) {
                if (bias == 0 && *a != *b)
                    bias = *a < *b ? -1 : 1;
                a++;
                b++;
            }
            if (is_digit(*a))
                return 1;
            if (is_digit(*b))
                return -1;
            if (bias)
                return bias;
            continue;
        }
        char left = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a;
        char right = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (left != right)
            return left < right ? -1 : 1;
        a++;
        b++;
    }
    return *a ? 1 : *b ? -1 : 0;
}

/* Breaks lines at spaces, in place; returns the number of lines. */
int wrap_text(char *text, int columns)
{
    char *space = NULL;
    int column = 0, lines = 1;
    for (char *at = text; *at; at++) {
        if (*at == '\n') {
            lines++;
            column = 0;
            space = NULL;
            continue;
        }
        if (*at == ' ')
            space = at;
        if (++column > columns && space) {
            *space = '\n';
            column = (int)(at - space);
            space = NULL;
            lines++;
        }
    }
    return lines;
}
