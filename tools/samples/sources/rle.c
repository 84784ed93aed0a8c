/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of equal bytes. */
#include "kinmedia.h"

#include <string.h>

int packbits_encode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t at = 0, used = 0;
    while (at < length) {
        size_t run = 1;
        while (run < 128 && at + run < length && data[at + run] == data[at])
            run++;
        if (run >= 3) {
            if (room - used < 2)
                return -1;
            out[used++] = (uint8_t)(257 - run);
            out[used++] = data[at];
            at += run;
            continue;
        }
        size_t start = at;
        while (at < length && at - start < 128) {
            if (at + 2 < length && data[at] == data[at + 1] && data[at] == data[at + 2])
                break;
            at++;
        }
        if (room - used < at - start + 1)
            return -1;
        out[used++] = (uint8_t)(at - start - 1);
        memcpy(out + used, data + start, at - start);
        used += at - start;
    }
    return (int)used;
}

int packbits_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t at = 0, used = 0;
    while (at < length) {
        int code = (int8_t)data[at++];
        if (code == -128)
            continue;
        if (code >= 0) {
            size_t count = (size_t)code + 1;
            if (count > length - at || count > room - used)
                return -1;
            memcpy(out + used, data + at, count);
            at += count;
            used += count;
        } else {
            size_t count = (size_t)(1 - code);
            if (at >= length || count > room - used)
                return -1;
            memset(out + used, data[at++], count);
            used += count;
        }
    }
    return (int)used;
}

int bmp_rle8_decode(const uint8_t *data, size_t length, int width, int height, uint8_t *out)
{
    int x = 0, y = 0;
    size_t at = 0;
    if (width <= 0 || height <= 0 || width > 4096 || height > 4096)
        return -1;
    memset(out, 0, (size_t)width * (size_t)height);
    while (at + 1 < length) {
        uint8_t count = data[at], value = data[at + 1];
        at += 2;
        if (count > 0) {
            if (y >= height || count > width - x)
                return -1;
            for (int i = 0; i < count; i++)
                out[y * width + x++] = value;
            continue;
        }
        switch (value) {
        case 0:
            x = 0;
            y++;
            break;
        case 1:
            return y;
        case 2:
            if (at + 1 >= length)
                return -1;
            x += data[at];
            y += data[at + 1];
            at += 2;
            if (x > width || y >= height)
                return -1;
            break;
        default:
            if (y >= height || value > width - x || value > length - at)
                return -1;
            for (int i = 0; i < value; i++)
                out[y * width + x++] = data[at++];
            at += value & 1;
            break;
        }
    }
    return -1;
}
