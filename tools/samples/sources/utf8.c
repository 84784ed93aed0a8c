/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode. */
#include "kinparse.h"

/* The length of the first character, or -1; overlong forms and surrogates are wrong. */
int utf8_decode(const uint8_t *data, size_t length, uint32_t *point)
{
    uint32_t value, least;
    int more;
    if (length == 0)
        return -1;
    uint8_t lead = data[0];
    if (lead < 0x80) {
        *point = lead;
        return 1;
    }
    if (lead >= 0xc2 && lead < 0xe0) {
        more = 1;
        value = lead & 0x1f;
        least = 0x80;
    } else if (lead >= 0xe0 && lead < 0xf0) {
        more = 2;
        value = lead & 0x0f;
        least = 0x800;
    } else if (lead >= 0xf0 && lead < 0xf5) {
        more = 3;
        value = lead & 0x07;
        least = 0x10000;
    } else {
        return -1;
    }
    if (length <= (size_t)more)
        return -1;
    for (int i = 1; i <= more; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return -1;
        value = value << 6 | (data[i] & 0x3f);
    }
    if (value < least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return -1;
    *point = value;
    return more + 1;
}

/* The number of characters, or -1. */
int utf8_validate(const uint8_t *data, size_t length)
{
    size_t at = 0;
    int count = 0;
    while (at < length) {
        uint32_t point;
        int size = utf8_decode(data + at, length - at, &point);
        if (size < 0)
            return -1;
        at += (size_t)size;
        count++;
    }
    return count;
}

int utf8_encode(uint32_t point, uint8_t *out)
{
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (uint8_t)(0xc0 | point >> 6);
        out[1] = (uint8_t)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point >= 0xd800 && point < 0xe000)
        return -1;
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | point >> 12);
        out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (point & 0x3f));
        return 3;
    }
    if (point > 0x10ffff)
        return -1;
    out[0] = (uint8_t)(0xf0 | point >> 18);
    out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (point & 0x3f));
    return 4;
}

int utf16_to_utf8(const uint16_t *units, size_t count, uint8_t *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t point = units[i];
        uint8_t bytes[4];
        if (point >= 0xd800 && point < 0xdc00) {
            if (i + 1 >= count || units[i + 1] < 0xdc00 || units[i + 1] > 0xdfff)
                return -1;
            point = 0x10000 + ((point - 0xd800) << 10) + (units[++i] - 0xdc00u);
        }
        int size = utf8_encode(point, bytes);
        if (size < 0 || (size_t)size > room - used)
            return -1;
        for (int j = 0; j < size; j++)
            out[used++] = bytes[j];
    }
    return (int)used;
}
