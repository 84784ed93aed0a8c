/* SPDX-License-Identifier: Apache-2.0 */
/* ASN.1 in its distinguished encoding. */
#include "kinproto.h"

/* Reads tag and length at "at"; returns where the next item starts, or -1. */
int der_read(const uint8_t *data, size_t length, size_t at, struct der_item *item)
{
    if (at + 2 > length)
        return -1;
    uint8_t first = data[at++];
    item->constructed = first >> 5 & 1;
    item->tag = first & 0x1f;
    if (item->tag == 0x1f) {
        item->tag = 0;
        uint8_t byte;
        do {
            if (at >= length || item->tag >> 25)
                return -1;
            byte = data[at++];
            item->tag = item->tag << 7 | (byte & 0x7f);
        } while (byte & 0x80);
        if (item->tag < 0x1f)
            return -1;
    }
    if (at >= length)
        return -1;
    uint32_t size = data[at++];
    if (size >= 0x80) {
        int bytes = (int)(size & 0x7f);
        if (bytes == 0 || bytes > 4)
            return -1;
        if (length - at < (size_t)bytes || data[at] == 0)
            return -1;
        for (size = 0; bytes > 0; bytes--)
            size = size << 8 | data[at++];
        if (size < 0x80)
            return -1;
    }
    if (size > length - at)
        return -1;
    item->value = (uint32_t)at;
    item->length = size;
    return (int)(at + size);
}

int der_integer(const uint8_t *data, const struct der_item *item, int64_t *result)
{
    const uint8_t *value = data + item->value;
    if (item->tag != 2 || item->length == 0 || item->length > 8)
        return -1;
    if (item->length > 1) {
        if (value[0] == 0 && !(value[1] & 0x80))
            return -1;
        if (value[0] == 0xff && value[1] & 0x80)
            return -1;
    }
    uint64_t number = value[0] & 0x80 ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < item->length; i++)
        number = number << 8 | value[i];
    *result = (int64_t)number;
    return 0;
}

static int put_decimal(uint32_t value, char *out, size_t *used, size_t room)
{
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    if (*used + (size_t)count + 2 > room)
        return -1;
    while (count > 0)
        out[(*used)++] = digits[--count];
    return 0;
}

/* 1.2.840.113549 from the bytes of an object identifier. */
int der_oid_text(const uint8_t *data, size_t length, char *out, size_t room)
{
    uint32_t arc = 0;
    size_t used = 0;
    int is_first = 1;
    if (length == 0 || data[length - 1] & 0x80)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (arc == 0 && data[i] == 0x80)
            return -1;
        if (arc >> 25)
            return -1;
        arc = arc << 7 | (data[i] & 0x7f);
        if (data[i] & 0x80)
            continue;
        if (is_first) {
            uint32_t root = arc < 40 ? 0 : arc < 80 ? 1 : 2;
            if (put_decimal(root, out, &used, room) < 0)
                return -1;
            arc -= 40 * root;
            is_first = 0;
        }
        out[used++] = '.';
        if (put_decimal(arc, out, &used, room) < 0)
            return -1;
        arc = 0;
    }
    out[used] = 0;
    return (int)used;
}

/* How deep items are nested, or -1 where they are wrong, or deeper than "most". */
int der_depth(const uint8_t *data, size_t length, int most)
{
    int deepest = 0;
    size_t at = 0;
    if (most < 0)
        return -1;
    while (at < length) {
        struct der_item item;
        int next = der_read(data, length, at, &item);
        if (next < 0)
            return -1;
        int inner = 0;
        if (item.constructed) {
            inner = der_depth(data + item.value, item.length, most - 1);
            if (inner < 0)
                return -1;
        }
        if (inner + 1 > deepest)
            deepest = inner + 1;
        at = (size_t)next;
    }
    return deepest;
}
