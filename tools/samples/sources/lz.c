/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compression of small devices. A byte of control stands before each item: 0..127 is followed
 * by one literal more than it says; 128..255 is a copy of 3 to 130 bytes, whose distance follows
 * in two bytes.
 */
#include "kinmedia.h"

#include <string.h>

#define SHORTEST 3
#define LONGEST 130
#define TABLE 1024

static unsigned slot_of(const uint8_t *data)
{
    uint32_t key = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2];
    return key * 2654435761u >> 22;
}

static int put_literals(const uint8_t *from, size_t count, uint8_t *out, size_t *used, size_t room)
{
    while (count > 0) {
        size_t run = count < 128 ? count : 128;
        if (room - *used < run + 1)
            return -1;
        out[(*used)++] = (uint8_t)(run - 1);
        memcpy(out + *used, from, run);
        *used += run;
        from += run;
        count -= run;
    }
    return 0;
}

int lz_compress(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t last[TABLE], at = 0, literals = 0, used = 0;
    memset(last, 0xff, sizeof last);
    while (at + SHORTEST <= length) {
        unsigned slot = slot_of(data + at);
        size_t before = last[slot], count = 0;
        last[slot] = at;
        if (before < at && at - before < 65536)
            while (count < LONGEST && at + count < length &&
                   data[before + count] == data[at + count])
                count++;
        if (count < SHORTEST) {
            at++;
            continue;
        }
        if (put_literals(data + literals, at - literals, out, &used, room) < 0)
            return -1;
        if (room - used < 3)
            return -1;
        out[used++] = (uint8_t)(128 + count - SHORTEST);
        out[used++] = (uint8_t)((at - before) >> 8);
        out[used++] = (uint8_t)(at - before);
        at += count;
        literals = at;
    }
    if (put_literals(data + literals, length - literals, out, &used, room) < 0)
        return -1;
    return (int)used;
}

int lz_expand(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t at = 0, used = 0;
    while (at < length) {
        uint8_t control = data[at++];
        if (control < 128) {
            size_t count = (size_t)control + 1;
            if (count > length - at || count > room - used)
                return -1;
            memcpy(out + used, data + at, count);
            at += count;
            used += count;
            continue;
        }
        if (length - at < 2)
            return -1;
        size_t distance = (size_t)data[at] << 8 | data[at + 1];
        size_t count = (size_t)control - 128 + SHORTEST;
        at += 2;
        if (distance == 0 || distance > used || count > room - used)
            return -1;
        for (size_t i = 0; i < count; i++, used++)
            out[used] = out[used - distance];
    }
    return (int)used;
}
