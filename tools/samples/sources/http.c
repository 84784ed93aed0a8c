/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP/1. */
#include "kinproto.h"

#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int is_token(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return 1;
    return c && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

/* Reads the first line; returns where the headers start, or -1. */
int http_parse_request(const char *text, size_t length, struct http_request *request)
{
    size_t at = 0, used = 0;
    while (at < length && is_token(text[at])) {
        if (used + 1 >= sizeof request->method)
            return -1;
        request->method[used++] = text[at++];
    }
    request->method[used] = 0;
    if (used == 0 || at >= length || text[at++] != ' ')
        return -1;
    for (used = 0; at < length && text[at] != ' '; at++) {
        if ((uint8_t)text[at] <= 0x20 || text[at] == 0x7f || used + 1 >= sizeof request->target)
            return -1;
        request->target[used++] = text[at];
    }
    request->target[used] = 0;
    if (used == 0 || (request->target[0] != '/' && strcmp(request->target, "*") != 0))
        return -1;
    if (length - at < 10 || memcmp(text + at, " HTTP/1.", 8) != 0)
        return -1;
    at += 8;
    if (text[at] != '0' && text[at] != '1')
        return -1;
    request->minor = text[at++] - '0';
    if (text[at] == '\r')
        at++;
    if (at >= length || text[at] != '\n')
        return -1;
    return (int)at + 1;
}

/* The length of a header's value, -1 when it is not there, -2 when a line is wrong. */
int http_find_header(const char *text, size_t length, const char *name, char *out, size_t room)
{
    size_t at = 0;
    while (at < length && text[at] != '\r' && text[at] != '\n') {
        const char *wanted = name;
        int same = 1;
        size_t start = at;
        for (; at < length && is_token(text[at]); at++) {
            if (same && *wanted && lower(text[at]) == lower(*wanted))
                wanted++;
            else
                same = 0;
        }
        if (at == start || at >= length || text[at] != ':')
            return -2;
        at++;
        while (at < length && (text[at] == ' ' || text[at] == '\t'))
            at++;
        start = at;
        while (at < length && text[at] != '\n')
            at++;
        if (at == length)
            return -2;
        size_t end = at++;
        while (end > start && (text[end - 1] == '\r' || text[end - 1] == ' '))
            end--;
        if (same && *wanted == 0) {
            if (end - start + 1 > room)
                return -2;
            memcpy(out, text + start, end - start);
            out[end - start] = 0;
            return (int)(end - start);
        }
    }
    return -1;
}

int http_decode_chunked(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t at = 0, used = 0;
    for (;;) {
        size_t size = 0;
        int digits = 0;
        for (; at < length; at++, digits++) {
            char c = lower((char)data[at]);
            if (c >= '0' && c <= '9')
                size = size << 4 | (size_t)(c - '0');
            else if (c >= 'a' && c <= 'f')
                size = size << 4 | (size_t)(c - 'a' + 10);
            else
                break;
            if (digits >= 7)
                return -1;
        }
        if (digits == 0)
            return -1;
        while (at < length && data[at] != '\n')
            at++;
        if (at++ >= length)
            return -1;
        if (size == 0)
            return (int)used;
        if (size > length - at || size > room - used)
            return -1;
        memcpy(out + used, data + at, size);
        used += size;
        at += size;
        if (length - at < 2 || data[at] != '\r' || data[at + 1] != '\n')
            return -1;
        at += 2;
    }
}

/* bytes=0-99, bytes=100-, bytes=-50; -1 when it is wrong or outside of the file. */
int http_parse_range(const char *value, uint32_t size, uint32_t *first, uint32_t *last)
{
    uint64_t from = 0, to = 0;
    int has_from = 0, has_to = 0;
    if (size == 0 || strncmp(value, "bytes=", 6) != 0)
        return -1;
    for (value += 6; *value >= '0' && *value <= '9' && from <= UINT32_MAX; value++) {
        from = 10 * from + (uint64_t)(*value - '0');
        has_from = 1;
    }
    if (*value++ != '-')
        return -1;
    for (; *value >= '0' && *value <= '9' && to <= UINT32_MAX; value++) {
        to = 10 * to + (uint64_t)(*value - '0');
        has_to = 1;
    }
    if (*value != 0 || (!has_from && !has_to))
        return -1;
    if (!has_from) {
        if (to == 0)
            return -1;
        from = to >= size ? 0 : size - to;
        to = size - 1;
    } else if (!has_to || to >= size) {
        to = size - 1;
    }
    if (from > to)
        return -1;
    *first = (uint32_t)from;
    *last = (uint32_t)to;
    return 0;
}
