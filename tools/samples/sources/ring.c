/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of bytes between one writer and one reader; one byte stays free. */
#include "kinparse.h"

#include <string.h>

size_t ring_write(struct ring *ring, const uint8_t *data, size_t length)
{
    size_t used = ring->head >= ring->tail ? ring->head - ring->tail
                                           : ring->size - ring->tail + ring->head;
    size_t space = ring->size - 1 - used;
    if (length > space)
        length = space;
    size_t first = ring->size - ring->head;
    if (first > length)
        first = length;
    memcpy(ring->data + ring->head, data, first);
    if (length > first)
        memcpy(ring->data, data + first, length - first);
    ring->head = (uint32_t)((ring->head + length) % ring->size);
    return length;
}

size_t ring_read(struct ring *ring, uint8_t *out, size_t room)
{
    size_t count = 0;
    while (count < room && ring->tail != ring->head) {
        size_t end = ring->head > ring->tail ? ring->head : ring->size;
        size_t run = end - ring->tail;
        if (run > room - count)
            run = room - count;
        memcpy(out + count, ring->data + ring->tail, run);
        count += run;
        ring->tail += (uint32_t)run;
        if (ring->tail == ring->size)
            ring->tail = 0;
    }
    return count;
}

/* The length of the next whole line without its end, -1 when there is none, -2 when it is long. */
int ring_read_line(struct ring *ring, char *out, size_t room)
{
    uint32_t at = ring->tail;
    size_t length = 0;
    while (at != ring->head && ring->data[at] != '\n') {
        if (length + 1 < room)
            out[length] = (char)ring->data[at];
        length++;
        if (++at == ring->size)
            at = 0;
    }
    if (at == ring->head)
        return -1;
    ring->tail = at + 1 == ring->size ? 0 : at + 1;
    if (length + 1 > room)
        return -2;
    if (length > 0 && out[length - 1] == '\r')
        length--;
    out[length] = 0;
    return (int)length;
}
