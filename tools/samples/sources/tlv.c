/* SPDX-License-Identifier: Apache-2.0 */
/* Options of type, length and value. */
#include "kinproto.h"

#include <string.h>

/* The length of the value, or -1. Type 0 is one byte of padding, 255 the end. */
int tlv_find(const uint8_t *data, size_t length, uint8_t type, const uint8_t **value)
{
    size_t at = 0;
    while (at < length) {
        uint8_t found = data[at++];
        if (found == 0)
            continue;
        if (found == 255 || at >= length)
            return -1;
        uint8_t size = data[at++];
        if (size > length - at)
            return -1;
        if (found == type) {
            *value = data + at;
            return size;
        }
        at += size;
    }
    return -1;
}

static int read_address(const uint8_t *value, uint8_t size, uint32_t *address)
{
    if (size < 4 || size % 4 != 0)
        return -1;
    *address = (uint32_t)value[0] << 24 | (uint32_t)value[1] << 16 | (uint32_t)value[2] << 8 |
               value[3];
    return 0;
}

/* The number of options that were understood, or -1. */
int dhcp_parse_options(const uint8_t *data, size_t length, struct dhcp_lease *lease)
{
    int understood = 0, failed = 0;
    size_t at = 4;
    memset(lease, 0, sizeof *lease);
    if (length < 4 || data[0] != 99 || data[1] != 130 || data[2] != 83 || data[3] != 99)
        return -1;
    while (at < length && data[at] != 255) {
        uint8_t type = data[at++];
        if (type == 0)
            continue;
        if (at >= length || data[at] > length - at - 1)
            return -1;
        uint8_t size = data[at];
        const uint8_t *value = data + at + 1;
        at += size + 1u;
        understood++;
        switch (type) {
        case 1:
            failed |= read_address(value, size, &lease->mask);
            break;
        case 3:
            failed |= read_address(value, size, &lease->router);
            break;
        case 12:
            if (size >= sizeof lease->host)
                return -1;
            memcpy(lease->host, value, size);
            lease->host[size] = 0;
            break;
        case 50:
            failed |= read_address(value, size, &lease->address);
            break;
        case 51:
            failed |= size != 4 || read_address(value, size, &lease->seconds);
            break;
        case 53:
            if (size != 1 || value[0] < 1 || value[0] > 8)
                return -1;
            lease->kind = value[0];
            break;
        default:
            understood--;
            break;
        }
        if (failed)
            return -1;
    }
    return at < length && lease->kind ? understood : -1;
}
