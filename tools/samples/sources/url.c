/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the web. */
#include "kinproto.h"

#include <string.h>

static int copy_part(const char *from, size_t size, char *to, size_t room)
{
    if (size == 0 || size + 1 > room)
        return -1;
    memcpy(to, from, size);
    to[size] = 0;
    return 0;
}

int url_parse(const char *text, struct url *url)
{
    const char *colon = strstr(text, "://");
    if (!colon || copy_part(text, (size_t)(colon - text), url->scheme, sizeof url->scheme) < 0)
        return -1;
    for (char *c = url->scheme; *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + 32);
        else if (*c < 'a' || *c > 'z')
            return -1;
    }
    if (strcmp(url->scheme, "http") == 0)
        url->port = 80;
    else if (strcmp(url->scheme, "https") == 0)
        url->port = 443;
    else if (strcmp(url->scheme, "mqtt") == 0)
        url->port = 1883;
    else
        return -1;
    const char *host = colon + 3, *end = host;
    if (*host == '[') {
        end = strchr(host, ']');
        if (!end || copy_part(host + 1, (size_t)(end - host - 1), url->host, sizeof url->host) < 0)
            return -1;
        end++;
    } else {
        while (*end && *end != ':' && *end != '/' && *end != '?' && *end != '@')
            end++;
        if (*end == '@' || copy_part(host, (size_t)(end - host), url->host, sizeof url->host) < 0)
            return -1;
    }
    if (*end == ':') {
        url->port = 0;
        for (end++; *end >= '0' && *end <= '9'; end++) {
            url->port = 10 * url->port + (uint32_t)(*end - '0');
            if (url->port > 65535)
                return -1;
        }
        if (url->port == 0)
            return -1;
    }
    if (*end == 0)
        end = "/";
    if (*end != '/')
        return -1;
    size_t size = strcspn(end, "#");
    return copy_part(end, size, url->path, sizeof url->path);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int url_decode(const char *text, size_t length, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            if (length - i < 3)
                return -1;
            int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            if (c == 0)
                return -1;
            i += 2;
        }
        if (used + 1 >= room)
            return -1;
        out[used++] = c;
    }
    out[used] = 0;
    return (int)used;
}

int query_value(const char *query, const char *name, char *out, size_t room)
{
    size_t wanted = strlen(name);
    if (*query == '?')
        query++;
    while (*query) {
        size_t size = strcspn(query, "&;");
        size_t key = 0;
        while (key < size && query[key] != '=')
            key++;
        if (key == wanted && memcmp(query, name, key) == 0) {
            if (key == size)
                return url_decode("", 0, out, room);
            return url_decode(query + key + 1, size - key - 1, out, room);
        }
        query += size;
        if (*query)
            query++;
    }
    return -1;
}

/* Takes out "//", "/./" and "/../" in place; -1 when the path leads above the root. */
int normalize_path(char *path)
{
    char *from = path, *to = path;
    if (*path != '/')
        return -1;
    while (*from) {
        while (*from == '/')
            from++;
        size_t size = strcspn(from, "/");
        if (size == 1 && from[0] == '.') {
            from += 1;
        } else if (size == 2 && from[0] == '.' && from[1] == '.') {
            if (to == path)
                return -1;
            do {
                to--;
            } while (*to != '/');
            from += 2;
        } else if (size > 0) {
            *to++ = '/';
            memmove(to, from, size);
            to += size;
            from += size;
        }
    }
    if (to == path)
        *to++ = '/';
    *to = 0;
    return (int)(to - path);
}
