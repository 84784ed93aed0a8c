/* SPDX-License-Identifier: Apache-2.0 */
/* Settings in flash: records of kind, length, checksum and data, the last of a kind counts. */
#include "gateway.h"

#include <string.h>

#define HEAD 6
#define ERASED 0xff

static uint32_t record_sum(uint8_t kind, const uint8_t *data, size_t length)
{
    return crc32_update(crc32_update(0, &kind, 1), data, length);
}

/* The length of the record at "at", 0 at the end of the journal, -1 at damage. */
static int record_length(const uint8_t *flash, size_t size, size_t at)
{
    if (size - at < HEAD || flash[at] == ERASED)
        return 0;
    size_t length = flash[at + 1];
    if (length > size - at - HEAD)
        return -1;
    uint32_t sum = (uint32_t)flash[at + 2] | (uint32_t)flash[at + 3] << 8 |
                   (uint32_t)flash[at + 4] << 16 | (uint32_t)flash[at + 5] << 24;
    if (record_sum(flash[at], flash + at + HEAD, length) != sum)
        return -1;
    return (int)(HEAD + length);
}

int journal_append(uint8_t *flash, size_t size, uint8_t kind, const uint8_t *data, size_t length)
{
    size_t at = 0;
    int step;
    if (kind == ERASED || length > 255)
        return -1;
    while ((step = record_length(flash, size, at)) > 0)
        at += (size_t)step;
    if (step < 0)
        return -2;
    if (size - at < HEAD + length)
        return -3;
    uint32_t sum = record_sum(kind, data, length);
    memcpy(flash + at + HEAD, data, length);
    for (int i = 0; i < 4; i++)
        flash[at + 2 + (size_t)i] = (uint8_t)(sum >> (8 * i));
    flash[at + 1] = (uint8_t)length;
    flash[at] = kind;
    return (int)(at + HEAD + length);
}

int journal_replay(const uint8_t *flash, size_t size, uint8_t kind, uint8_t *out, size_t room)
{
    int found = -1, step;
    for (size_t at = 0; (step = record_length(flash, size, at)) != 0; at += (size_t)step) {
        if (step < 0)
            break;
        if (flash[at] != kind)
            continue;
        size_t length = (size_t)step - HEAD;
        if (length > room)
            return -2;
        memcpy(out, flash + at + HEAD, length);
        found = (int)length;
    }
    return found;
}

/* Keeps the last record of each kind; returns the bytes that are won. */
int journal_compact(uint8_t *flash, size_t size, uint8_t *scratch)
{
    uint8_t seen[32] = {0};
    size_t starts[64], count = 0, at = 0, used = size;
    int step;
    while ((step = record_length(flash, size, at)) > 0) {
        if (count == 64)
            return -1;
        starts[count++] = at;
        at += (size_t)step;
    }
    memset(scratch, ERASED, size);
    while (count-- > 0) {
        const uint8_t *record = flash + starts[count];
        uint8_t bit = (uint8_t)(1u << (record[0] & 7));
        if (seen[record[0] >> 3] & bit)
            continue;
        seen[record[0] >> 3] |= bit;
        size_t length = HEAD + (size_t)record[1];
        used -= length;
        memcpy(scratch + used, record, length);
    }
    memset(flash, ERASED, size);
    memcpy(flash, scratch + used, size - used);
    return (int)at - (int)(size - used);
}

/* The block to write next: the least worn of those not in use, unless all are about equal. */
int wear_level(const uint16_t *erased, int blocks, int current)
{
    int best = -1, worst = 0;
    for (int i = 0; i < blocks; i++) {
        if (erased[i] == 0xffff)
            continue;
        if (erased[i] > erased[worst] || erased[worst] == 0xffff)
            worst = i;
        if (i != current && (best < 0 || erased[i] < erased[best]))
            best = i;
    }
    if (best < 0)
        return current;
    if (erased[worst] - erased[best] < 4)
        for (int step = 1; step < blocks; step++) {
            int next = (current + step) % blocks;
            if (erased[next] != 0xffff)
                return next;
        }
    return best;
}
