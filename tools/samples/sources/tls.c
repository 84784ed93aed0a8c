/* SPDX-License-Identifier: Apache-2.0 */
/* The outside of TLS: records, and the name that a client asks for. */
#include "kinproto.h"

#include <string.h>

#define HANDSHAKE 22

/* Steps over a vector whose length has "bytes" bytes; 0 when it does not fit. */
static size_t skip_vector(const uint8_t *data, size_t length, size_t at, size_t bytes)
{
    size_t size = 0;
    if (at > length || length - at < bytes)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        size = size << 8 | data[at + i];
    at += bytes;
    return size > length - at ? 0 : at + size;
}

int tls_server_name(const uint8_t *record, size_t length, char *out, size_t room)
{
    if (length < 9 || record[0] != HANDSHAKE || record[1] != 3 || record[5] != 1)
        return -1;
    size_t end = 5 + ((size_t)record[3] << 8 | record[4]);
    size_t body = (size_t)record[6] << 16 | (size_t)record[7] << 8 | record[8];
    if (end > length || body > end - 9)
        return -1;
    end = 9 + body;
    size_t at = 9 + 2 + 32;
    at = skip_vector(record, end, at, 1);
    if (at)
        at = skip_vector(record, end, at, 2);
    if (at)
        at = skip_vector(record, end, at, 1);
    if (!at || end - at < 2)
        return -1;
    size_t extensions = skip_vector(record, end, at, 2);
    if (!extensions)
        return -1;
    at += 2;
    while (extensions - at >= 4) {
        unsigned kind = (unsigned)record[at] << 8 | record[at + 1];
        size_t next = skip_vector(record, extensions, at + 2, 2);
        if (!next)
            return -1;
        if (kind == 0) {
            const uint8_t *list = record + at + 4;
            if (next - at < 9 || list[2] != 0)
                return -1;
            size_t size = (size_t)list[3] << 8 | list[4];
            if (size == 0 || size > next - at - 9 || size >= room)
                return -1;
            memcpy(out, list + 5, size);
            out[size] = 0;
            return memchr(out, 0, size) ? -1 : (int)size;
        }
        at = next;
    }
    return -1;
}

/* Where each record starts; returns their number, or -1 at what is no record. */
int tls_split_records(const uint8_t *data, size_t length, uint32_t *offsets, int most)
{
    size_t at = 0;
    int count = 0;
    while (length - at >= 5) {
        uint8_t kind = data[at];
        size_t size = (size_t)data[at + 3] << 8 | data[at + 4];
        if (kind < 20 || kind > 24 || data[at + 1] != 3 || data[at + 2] > 4)
            return -1;
        if (size > 16384 + 2048 || (size == 0 && kind != 23))
            return -1;
        if (size > length - at - 5)
            break;
        if (count >= most)
            return -1;
        offsets[count++] = (uint32_t)at;
        at += 5 + size;
    }
    return count;
}
