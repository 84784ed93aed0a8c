/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: flat tokens that point into the text. */
#include "kinparse.h"

#include <string.h>

#define DEEPEST 32

static int hex4(const char *text)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            value = value << 4 | (c - 'A' + 10);
        else
            return -1;
    }
    return value;
}

/* Where the string that starts behind the quote at "at" ends; 0 when it does not. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length; at++) {
        if (text[at] == '"')
            return at;
        if ((uint8_t)text[at] < 0x20)
            return 0;
        if (text[at] == '\\') {
            at++;
            if (at < length && text[at] == 'u' && (length - at < 5 || hex4(text + at + 1) < 0))
                return 0;
        }
    }
    return 0;
}

static size_t skip_digits(const char *text, size_t length, size_t at)
{
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

static size_t skip_number(const char *text, size_t length, size_t at)
{
    if (text[at] == '-')
        at++;
    size_t whole = at;
    at = skip_digits(text, length, at);
    if (at == whole || (text[whole] == '0' && at > whole + 1))
        return 0;
    if (at < length && text[at] == '.') {
        size_t part = at + 1;
        at = skip_digits(text, length, part);
        if (at == part)
            return 0;
    }
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < length && (text[at] == '+' || text[at] == '-'))
            at++;
        size_t power = at;
        at = skip_digits(text, length, at);
        if (at == power)
            return 0;
    }
    return at;
}

static size_t skip_word(const char *text, size_t length, size_t at)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(WORDS[i]);
        if (length - at >= size && memcmp(text + at, WORDS[i], size) == 0)
            return at + size;
    }
    return 0;
}

/* Returns the number of tokens, or -1 at a wrong text, or -2 when there is no room. */
int json_tokenize(const char *text, size_t length, struct json_token *tokens, size_t room)
{
    int open[DEEPEST], depth = 0, count = 0, wants_value = 1;
    size_t at = 0;
    while (at < length) {
        char c = text[at];
        size_t start = at, end;
        int kind;
        switch (c) {
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            at++;
            continue;
        case ':':
        case ',':
            if (depth == 0 || wants_value)
                return -1;
            wants_value = 1;
            at++;
            continue;
        case '}':
        case ']':
            if (depth == 0)
                return -1;
            depth--;
            if (tokens[open[depth]].kind != (c == '}' ? JSON_OBJECT : JSON_ARRAY))
                return -1;
            if (wants_value && tokens[open[depth]].children > 0)
                return -1;
            tokens[open[depth]].end = (int32_t)(at + 1);
            wants_value = 0;
            at++;
            continue;
        case '{':
        case '[':
            kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
            end = at + 1;
            break;
        case '"':
            kind = JSON_STRING;
            start = at + 1;
            end = skip_string(text, length, at);
            break;
        case 't':
        case 'f':
        case 'n':
            kind = JSON_WORD;
            end = skip_word(text, length, at);
            break;
        default:
            if (c != '-' && (c < '0' || c > '9'))
                return -1;
            kind = JSON_NUMBER;
            end = skip_number(text, length, at);
            break;
        }
        if (end == 0 || !wants_value)
            return -1;
        if ((size_t)count >= room)
            return -2;
        if (depth > 0)
            tokens[open[depth - 1]].children++;
        tokens[count] = (struct json_token){kind, (int32_t)start, (int32_t)end, 0};
        wants_value = 0;
        if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
            if (depth == DEEPEST)
                return -1;
            open[depth++] = count;
            wants_value = 1;
        }
        count++;
        at = kind == JSON_STRING ? end + 1 : end;
    }
    return depth == 0 && count > 0 ? count : -1;
}

/* The token behind a value and all that it holds. */
static int after_value(const struct json_token *tokens, int count, int token)
{
    int end = tokens[token].end;
    for (token++; token < count && tokens[token].start < end; token++)
        ;
    return token;
}

int json_find(const char *text, const struct json_token *tokens, int count, int object,
              const char *key)
{
    size_t wanted = strlen(key);
    if (object < 0 || object >= count || tokens[object].kind != JSON_OBJECT)
        return -1;
    int token = object + 1;
    for (int left = tokens[object].children; left >= 2; left -= 2) {
        const struct json_token *name = tokens + token;
        if (name->kind != JSON_STRING || token + 1 >= count)
            return -1;
        size_t size = (size_t)(name->end - name->start);
        if (size == wanted && memcmp(text + name->start, key, size) == 0)
            return token + 1;
        token = after_value(tokens, count, token + 1);
    }
    return -1;
}

int json_unescape(const char *text, size_t length, char *out, size_t room)
{
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
    size_t used = 0;
    for (size_t at = 0; at < length; at++) {
        if (room - used < 4)
            return -1;
        if (text[at] != '\\') {
            out[used++] = text[at];
            continue;
        }
        if (++at >= length)
            return -1;
        if (text[at] == 'u') {
            if (length - at < 5)
                return -1;
            int point = hex4(text + at + 1);
            at += 4;
            if (point >= 0xd800 && point < 0xdc00 && length - at > 6 && text[at + 1] == '\\' &&
                text[at + 2] == 'u') {
                int low = hex4(text + at + 3);
                if (low < 0xdc00 || low > 0xdfff)
                    return -1;
                point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                at += 6;
            }
            int size = point < 0 ? -1 : utf8_encode((uint32_t)point, (uint8_t *)out + used);
            if (size < 0)
                return -1;
            used += (size_t)size;
            continue;
        }
        const char *found = strchr(FROM, text[at]);
        if (!found || text[at] == 0)
            return -1;
        out[used++] = TO[found - FROM];
    }
    return (int)used;
}
