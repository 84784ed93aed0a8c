/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files of sections, keys and values. */
#include "kinparse.h"

#include <string.h>

#define LINE 256

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *trim(char *start, char *end)
{
    while (start < end && is_space(*start))
        start++;
    while (end > start && is_space(end[-1]))
        end--;
    *end = 0;
    return start;
}

static char *unquote(char *value)
{
    size_t length = strlen(value);
    if (length >= 2 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0]) {
        value[length - 1] = 0;
        return value + 1;
    }
    for (size_t i = 1; i < length; i++) {
        if (value[i] == '#' && is_space(value[i - 1])) {
            return trim(value, value + i);
        }
    }
    return value;
}

/* Returns 0, or the number of the first line that is wrong, or that the handler refuses. */
int ini_parse(const char *text, size_t length, ini_handler handler, void *context)
{
    char line[LINE], section[LINE] = "";
    size_t at = 0;
    int number = 0;
    while (at < length) {
        size_t used = 0;
        number++;
        while (at < length && text[at] != '\n') {
            if (used + 1 >= sizeof line)
                return number;
            line[used++] = text[at++];
        }
        at++;
        char *start = trim(line, line + used);
        if (*start == 0 || *start == '#' || *start == ';')
            continue;
        if (*start == '[') {
            char *close = strchr(start, ']');
            if (!close || close[1] != 0)
                return number;
            char *name = trim(start + 1, close);
            memcpy(section, name, strlen(name) + 1);
            continue;
        }
        char *equals = strchr(start, '=');
        if (!equals || equals == start)
            return number;
        char *value = unquote(trim(equals + 1, equals + strlen(equals)));
        char *key = trim(start, equals);
        if (handler(context, section, key, value) != 0)
            return number;
    }
    return 0;
}

static int same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char lower = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a;
        if (lower != *b)
            return 0;
    }
    return *a == *b;
}

int parse_bool(const char *text)
{
    static const char *const YES[] = {"1", "yes", "true", "on", "enabled"};
    static const char *const NO[] = {"0", "no", "false", "off", "disabled"};
    if (!text || !*text)
        return -1;
    for (size_t i = 0; i < sizeof YES / sizeof *YES; i++) {
        if (same_word(text, YES[i]))
            return 1;
        if (same_word(text, NO[i]))
            return 0;
    }
    return -1;
}
