/* SPDX-License-Identifier: Apache-2.0 */
/* Names and answers of the domain name system. */
#include "kinproto.h"

#define MOST_JUMPS 16
#define LONGEST_LABEL 63

/* Writes the name at "at" with dots, following pointers; returns its length, or -1. */
int dns_expand_name(const uint8_t *message, size_t length, size_t at, char *out, size_t room)
{
    size_t used = 0;
    int jumps = 0;
    while (at < length) {
        uint8_t size = message[at];
        if (size == 0) {
            if (used == 0) {
                if (room < 2)
                    return -1;
                out[used++] = '.';
            }
            out[used] = 0;
            return (int)used;
        }
        if ((size & 0xc0) == 0xc0) {
            if (at + 1 >= length || ++jumps > MOST_JUMPS)
                return -1;
            at = (size_t)(size & 0x3f) << 8 | message[at + 1];
            continue;
        }
        if (size & 0xc0 || at + 1 + size > length || used + size + 2 > room)
            return -1;
        if (used > 0)
            out[used++] = '.';
        for (size_t i = 1; i <= size; i++) {
            char c = (char)message[at + i];
            if (c == '.' || c < 0x21 || c == 0x7f)
                return -1;
            out[used++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
        }
        at += size + 1u;
    }
    return -1;
}

int dns_skip_name(const uint8_t *message, size_t length, size_t at)
{
    while (at < length) {
        uint8_t size = message[at];
        if (size == 0)
            return (int)at + 1;
        if ((size & 0xc0) == 0xc0)
            return at + 2 <= length ? (int)at + 2 : -1;
        if (size & 0xc0)
            return -1;
        at += size + 1u;
    }
    return -1;
}

int dns_encode_name(const char *name, uint8_t *out, size_t room)
{
    size_t used = 0;
    while (*name) {
        size_t size = 0;
        while (name[size] && name[size] != '.')
            size++;
        if (size == 0 || size > LONGEST_LABEL || used + size + 2 > room)
            return -1;
        out[used++] = (uint8_t)size;
        for (size_t i = 0; i < size; i++)
            out[used++] = (uint8_t)name[i];
        name += size;
        if (*name == '.')
            name++;
    }
    if (used >= room || used > 254)
        return -1;
    out[used++] = 0;
    return (int)used;
}

static uint32_t big(const uint8_t *data, int bytes)
{
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | *data++;
    return value;
}

/* Finds the first answer of a type; -1 when the message is wrong, 0 when there is none. */
int dns_find_answer(const uint8_t *message, size_t length, uint16_t type,
                    struct dns_record *record)
{
    if (length < 12 || !(message[2] & 0x80) || message[3] & 0x0f)
        return -1;
    uint32_t questions = big(message + 4, 2), answers = big(message + 6, 2);
    int at = 12;
    while (questions-- > 0) {
        at = dns_skip_name(message, length, (size_t)at);
        if (at < 0 || (size_t)at + 4 > length)
            return -1;
        at += 4;
    }
    while (answers-- > 0) {
        at = dns_skip_name(message, length, (size_t)at);
        if (at < 0 || (size_t)at + 10 > length)
            return -1;
        const uint8_t *fixed = message + at;
        uint32_t size = big(fixed + 8, 2);
        if ((size_t)at + 10 + size > length)
            return -1;
        if (big(fixed, 2) == type && big(fixed + 2, 2) == 1) {
            record->type = type;
            record->ttl = big(fixed + 4, 4);
            record->data_offset = (uint32_t)at + 10;
            record->data_length = size;
            return 1;
        }
        at += 10 + (int)size;
    }
    return 0;
}
