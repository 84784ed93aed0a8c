/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them. */
#include "kinparse.h"

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    return 99;
}

/* Base 0 goes by the prefix: 0x, 0b, 0, or none. */
int parse_integer(const char *text, int base, int64_t *result)
{
    int negative = 0, digits = 0;
    uint64_t value = 0, limit;
    while (*text == ' ' || *text == '\t')
        text++;
    if (*text == '-' || *text == '+')
        negative = *text++ == '-';
    if (base == 0) {
        base = 10;
        if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
            base = 16;
            text += 2;
        } else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
            base = 2;
            text += 2;
        } else if (text[0] == '0' && text[1]) {
            base = 8;
            text++;
        }
    }
    if (base < 2 || base > 36)
        return -1;
    limit = (uint64_t)INT64_MAX + (unsigned)negative;
    for (; *text; text++) {
        if (*text == '_' && digits > 0)
            continue;
        int digit = digit_value(*text);
        if (digit >= base)
            return -1;
        if (value > (limit - (uint64_t)digit) / (uint64_t)base)
            return -2;
        value = value * (uint64_t)base + (uint64_t)digit;
        digits++;
    }
    if (digits == 0)
        return -1;
    *result = (int64_t)(negative ? 0 - value : value);
    return 0;
}

/* 512, 10k, 1.5M, 2GiB; k is 1024. */
int parse_size(const char *text, uint64_t *bytes)
{
    uint64_t whole = 0, part = 0, scale = 1;
    int digits = 0, shift = 0;
    for (; *text >= '0' && *text <= '9'; text++, digits++) {
        if (whole > 1000000000000u)
            return -2;
        whole = 10 * whole + (uint64_t)(*text - '0');
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
            if (scale >= 1000)
                continue;
            part = 10 * part + (uint64_t)(*text - '0');
            scale *= 10;
        }
    }
    if (digits == 0)
        return -1;
    while (*text == ' ')
        text++;
    switch (*text) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 't':
    case 'T':
        shift = 40;
        break;
    default:
        break;
    }
    if (shift) {
        text++;
        if (*text == 'i')
            text++;
    }
    if (*text == 'B' || *text == 'b')
        text++;
    if (*text)
        return -1;
    if (whole > UINT64_MAX >> shift)
        return -2;
    *bytes = (whole << shift) + (part << shift) / scale;
    return 0;
}

/* 250ms, 3s, 1m30s, 2h, 1d */
int parse_duration(const char *text, uint32_t *milliseconds)
{
    uint64_t total = 0;
    if (!*text)
        return -1;
    while (*text) {
        uint64_t value = 0, unit;
        if (*text < '0' || *text > '9')
            return -1;
        while (*text >= '0' && *text <= '9') {
            value = 10 * value + (uint64_t)(*text++ - '0');
            if (value > UINT32_MAX)
                return -2;
        }
        if (text[0] == 'm' && text[1] == 's') {
            unit = 1;
            text += 2;
        } else {
            switch (*text) {
            case 's':
                unit = 1000;
                break;
            case 'm':
                unit = 60000;
                break;
            case 'h':
                unit = 3600000;
                break;
            case 'd':
                unit = 86400000;
                break;
            default:
                return -1;
            }
            text++;
        }
        total += value * unit;
        if (total > UINT32_MAX)
            return -2;
    }
    *milliseconds = (uint32_t)total;
    return 0;
}

/* -12.345 with two decimals is -1235: rounded half away from zero. */
int parse_fixed(const char *text, int decimals, int64_t *result)
{
    int negative = *text == '-', seen = -1, digits = 0, half = 0;
    int64_t value = 0;
    if (negative || *text == '+')
        text++;
    for (; *text; text++) {
        if (*text == '.' && seen < 0) {
            seen = 0;
            continue;
        }
        if (*text < '0' || *text > '9')
            return -1;
        digits++;
        if (seen >= decimals) {
            if (seen++ == decimals)
                half = *text >= '5';
            continue;
        }
        if (value > INT64_MAX / 100)
            return -2;
        value = 10 * value + (*text - '0');
        if (seen >= 0)
            seen++;
    }
    if (digits == 0)
        return -1;
    for (int i = seen < 0 ? 0 : seen; i < decimals; i++) {
        if (value > INT64_MAX / 100)
            return -2;
        value *= 10;
    }
    value += half;
    *result = negative ? -value : value;
    return 0;
}

int format_fixed(int64_t value, int decimals, char *out, size_t room)
{
    char digits[32];
    int count = 0, used = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (decimals < 0 || decimals > 8)
        return -1;
    do {
        if (count == decimals && decimals > 0)
            digits[count + used++] = '.';
        digits[count++ + used] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0 || count <= decimals);
    count += used;
    if (value < 0)
        digits[count++] = '-';
    if ((size_t)count + 1 > room)
        return -1;
    for (int i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    out[count] = 0;
    return count;
}

int format_roman(int value, char *out, size_t room)
{
    static const uint16_t WORTH[13] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    static const char *const TEXT[13] = {"M",  "CM", "D",  "CD", "C",  "XC", "L",
                                         "XL", "X",  "IX", "V",  "IV", "I"};
    size_t used = 0;
    if (value < 1 || value > 3999)
        return -1;
    for (int i = 0; i < 13; i++) {
        while (value >= WORTH[i]) {
            for (const char *c = TEXT[i]; *c; c++) {
                if (used + 1 >= room)
                    return -1;
                out[used++] = *c;
            }
            value -= WORTH[i];
        }
    }
    out[used] = 0;
    return (int)used;
}
