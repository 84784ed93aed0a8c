/* SPDX-License-Identifier: Apache-2.0 */
/* Whole-number expressions with the operators of C. */
#include "kinparse.h"

#define DEEPEST 64

struct reader {
    const char *at;
    int failed;
    int depth;
};

static int64_t read_sum(struct reader *reader);

static char peek(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
    return *reader->at;
}

static int64_t read_literal(struct reader *reader)
{
    uint64_t value = 0;
    if (reader->at[0] == '0' && (reader->at[1] == 'x' || reader->at[1] == 'X')) {
        reader->at += 2;
        for (;; reader->at++) {
            char c = *reader->at;
            if (c >= '0' && c <= '9')
                value = value << 4 | (uint64_t)(c - '0');
            else if (c >= 'a' && c <= 'f')
                value = value << 4 | (uint64_t)(c - 'a' + 10);
            else
                return (int64_t)value;
        }
    }
    while (*reader->at >= '0' && *reader->at <= '9')
        value = 10 * value + (uint64_t)(*reader->at++ - '0');
    return (int64_t)value;
}

static int64_t read_atom(struct reader *reader)
{
    char c = peek(reader);
    int64_t value;
    if (++reader->depth > DEEPEST) {
        reader->failed = 1;
        return 0;
    }
    if (c == '(') {
        reader->at++;
        value = read_sum(reader);
        if (peek(reader) == ')')
            reader->at++;
        else
            reader->failed = 1;
    } else if (c == '-') {
        reader->at++;
        value = (int64_t)(0 - (uint64_t)read_atom(reader));
    } else if (c == '~') {
        reader->at++;
        value = ~read_atom(reader);
    } else if (c == '!') {
        reader->at++;
        value = !read_atom(reader);
    } else if (c >= '0' && c <= '9') {
        value = read_literal(reader);
    } else {
        reader->failed = 1;
        value = 0;
    }
    reader->depth--;
    return value;
}

static int64_t read_product(struct reader *reader)
{
    int64_t value = read_atom(reader);
    while (!reader->failed) {
        char c = peek(reader);
        if (c != '*' && c != '/' && c != '%' && c != '&')
            break;
        reader->at++;
        int64_t right = read_atom(reader);
        if (c == '*') {
            value = (int64_t)((uint64_t)value * (uint64_t)right);
        } else if (c == '&') {
            value &= right;
        } else if (right == 0 || (right == -1 && value == INT64_MIN)) {
            reader->failed = 1;
        } else {
            value = c == '/' ? value / right : value % right;
        }
    }
    return value;
}

static int64_t read_sum(struct reader *reader)
{
    int64_t value = read_product(reader);
    while (!reader->failed) {
        char c = peek(reader);
        if (c != '+' && c != '-' && c != '|' && c != '^')
            break;
        reader->at++;
        uint64_t right = (uint64_t)read_product(reader), left = (uint64_t)value;
        if (c == '+')
            value = (int64_t)(left + right);
        else if (c == '-')
            value = (int64_t)(left - right);
        else if (c == '|')
            value = (int64_t)(left | right);
        else
            value = (int64_t)(left ^ right);
    }
    return value;
}

int expression_evaluate(const char *text, int64_t *result)
{
    struct reader reader = {text, 0, 0};
    *result = read_sum(&reader);
    if (reader.failed || peek(&reader) != 0)
        return -1;
    return 0;
}
