/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text. */
#include "kinmedia.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int base64_encode(const uint8_t *data, size_t length, char *out, size_t room)
{
    size_t needed = (length + 2) / 3 * 4;
    if (needed + 1 > room)
        return -1;
    char *to = out;
    while (length >= 3) {
        uint32_t group = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2];
        *to++ = ALPHABET[group >> 18];
        *to++ = ALPHABET[group >> 12 & 63];
        *to++ = ALPHABET[group >> 6 & 63];
        *to++ = ALPHABET[group & 63];
        data += 3;
        length -= 3;
    }
    if (length > 0) {
        uint32_t group = (uint32_t)data[0] << 16;
        if (length == 2)
            group |= (uint32_t)data[1] << 8;
        *to++ = ALPHABET[group >> 18];
        *to++ = ALPHABET[group >> 12 & 63];
        *to++ = length == 2 ? ALPHABET[group >> 6 & 63] : '=';
        *to++ = '=';
    }
    *to = 0;
    return (int)needed;
}

int base64_decode(const char *text, size_t length, uint8_t *out, size_t room)
{
    uint32_t bits = 0;
    int have = 0, padding = 0;
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '\r' || c == '\n' || c == ' ')
            continue;
        if (c == '=') {
            if (++padding > 2)
                return -1;
            continue;
        }
        int value = base64_value(c);
        if (value < 0 || padding)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have >= 8) {
            have -= 8;
            if (used >= room)
                return -1;
            out[used++] = (uint8_t)(bits >> have);
        }
    }
    if (have == 6)
        return -1;
    return (int)used;
}

int base32_decode(const char *text, size_t length, uint8_t *out, size_t room)
{
    uint32_t bits = 0;
    int have = 0;
    size_t used = 0;
    for (size_t i = 0; i < length && text[i] != '='; i++) {
        char c = text[i];
        int value;
        if (c >= 'A' && c <= 'Z')
            value = c - 'A';
        else if (c >= 'a' && c <= 'z')
            value = c - 'a';
        else if (c >= '2' && c <= '7')
            value = c - '2' + 26;
        else if (c == ' ' || c == '-')
            continue;
        else
            return -1;
        bits = bits << 5 | (uint32_t)value;
        have += 5;
        if (have >= 8) {
            have -= 8;
            if (used == room)
                return -1;
            out[used++] = (uint8_t)(bits >> have);
        }
    }
    return (int)used;
}

int hex_decode(const char *text, size_t length, uint8_t *out, size_t room)
{
    size_t used = 0;
    int high = -1;
    for (size_t i = 0; i < length; i++) {
        if (high < 0 && (text[i] == ':' || text[i] == ' '))
            continue;
        int value = hex_value(text[i]);
        if (value < 0)
            return -1;
        if (high < 0) {
            high = value;
        } else {
            if (used >= room)
                return -1;
            out[used++] = (uint8_t)(high << 4 | value);
            high = -1;
        }
    }
    return high < 0 ? (int)used : -1;
}

int quoted_printable_decode(const char *text, size_t length, uint8_t *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)text[i];
        if (byte == '=') {
            if (i + 1 < length && text[i + 1] == '\n') {
                i += 1;
                continue;
            }
            if (i + 2 >= length)
                return -1;
            if (text[i + 1] == '\r' && text[i + 2] == '\n') {
                i += 2;
                continue;
            }
            int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
            if (high < 0 || low < 0)
                return -1;
            byte = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (byte >= 0x80) {
            return -1;
        }
        if (used >= room)
            return -1;
        out[used++] = byte;
    }
    return (int)used;
}
