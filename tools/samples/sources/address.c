/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of hosts. */
#include "kinproto.h"

#include <string.h>

int parse_ipv4(const char *text, uint32_t *address)
{
    uint32_t value = 0;
    for (int part = 0; part < 4; part++) {
        uint32_t number = 0;
        int digits = 0;
        while (*text >= '0' && *text <= '9') {
            if (digits > 0 && number == 0)
                return -1;
            number = 10 * number + (uint32_t)(*text++ - '0');
            if (++digits > 3 || number > 255)
                return -1;
        }
        if (digits == 0)
            return -1;
        value = value << 8 | number;
        if (part < 3 && *text++ != '.')
            return -1;
    }
    if (*text)
        return -1;
    *address = value;
    return 0;
}

static int hex_group(const char **text, uint32_t *value)
{
    int digits = 0;
    for (*value = 0; digits < 5; digits++, (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            *value = *value << 4 | (uint32_t)(c - 'A' + 10);
        else
            break;
    }
    return digits >= 1 && digits <= 4 ? 0 : -1;
}

int parse_ipv6(const char *text, uint8_t address[16])
{
    int used = 0, gap = -1;
    memset(address, 0, 16);
    if (text[0] == ':') {
        if (text[1] != ':')
            return -1;
        text += 2;
        gap = 0;
    }
    while (*text && used < 16) {
        uint32_t group;
        const char *start = text;
        if (hex_group(&text, &group) < 0)
            return -1;
        if (*text == '.') {
            if (used > 12 || parse_ipv4(start, &group) < 0)
                return -1;
            for (int shift = 24; shift >= 0; shift -= 8)
                address[used++] = (uint8_t)(group >> shift);
            text = "";
            break;
        }
        address[used++] = (uint8_t)(group >> 8);
        address[used++] = (uint8_t)group;
        if (*text == 0)
            break;
        if (*text++ != ':')
            return -1;
        if (*text == ':') {
            if (gap >= 0)
                return -1;
            gap = used;
            text++;
        } else if (*text == 0) {
            return -1;
        }
    }
    if (*text)
        return -1;
    if (gap < 0)
        return used == 16 ? 0 : -1;
    if (used >= 16)
        return -1;
    memmove(address + 16 - (used - gap), address + gap, (size_t)(used - gap));
    memset(address + gap, 0, (size_t)(16 - used));
    return 0;
}

/* The shortest form: the longest run of zero groups becomes "::". */
int format_ipv6(const uint8_t address[16], char *out, size_t room)
{
    int best = -1, longest = 1;
    size_t used = 0;
    for (int i = 0; i < 8; i++) {
        int run = 0;
        while (i + run < 8 && address[2 * (i + run)] == 0 && address[2 * (i + run) + 1] == 0)
            run++;
        if (run > longest) {
            longest = run;
            best = i;
        }
    }
    if (room < 40)
        return -1;
    for (int i = 0; i < 8; i++) {
        if (i == best) {
            out[used++] = ':';
            if (i + longest == 8)
                out[used++] = ':';
            i += longest - 1;
            continue;
        }
        unsigned group = (unsigned)address[2 * i] << 8 | address[2 * i + 1];
        if (i > 0)
            out[used++] = ':';
        int shift = 12;
        while (shift > 0 && group >> shift == 0)
            shift -= 4;
        for (; shift >= 0; shift -= 4)
            out[used++] = "0123456789abcdef"[group >> shift & 15];
    }
    out[used] = 0;
    return (int)used;
}

int parse_mac(const char *text, uint8_t mac[6])
{
    char separator = 0;
    for (int i = 0; i < 6; i++) {
        int value = 0;
        for (int half = 0; half < 2; half++, text++) {
            char c = *text;
            if (c >= '0' && c <= '9')
                value = value << 4 | (c - '0');
            else if (c >= 'a' && c <= 'f')
                value = value << 4 | (c - 'a' + 10);
            else if (c >= 'A' && c <= 'F')
                value = value << 4 | (c - 'A' + 10);
            else
                return -1;
        }
        mac[i] = (uint8_t)value;
        if (i == 0 && (*text == ':' || *text == '-'))
            separator = *text;
        if (separator && i < 5 && *text++ != separator)
            return -1;
    }
    return *text == 0 ? 0 : -1;
}

int cidr_contains(const char *cidr, uint32_t address)
{
    char network[16];
    uint32_t base, bits = 32;
    const char *slash = strchr(cidr, '/');
    size_t size = slash ? (size_t)(slash - cidr) : strlen(cidr);
    if (size >= sizeof network)
        return -1;
    memcpy(network, cidr, size);
    network[size] = 0;
    if (parse_ipv4(network, &base) < 0)
        return -1;
    if (slash) {
        if (slash[1] == 0)
            return -1;
        bits = 0;
        for (slash++; *slash; slash++) {
            if (*slash < '0' || *slash > '9')
                return -1;
            bits = 10 * bits + (uint32_t)(*slash - '0');
            if (bits > 32)
                return -1;
        }
    }
    if (bits == 0)
        return 1;
    return ((base ^ address) >> (32 - bits)) == 0;
}

uint16_t internet_checksum(const uint8_t *data, size_t length)
{
    uint32_t sum = 0;
    while (length > 1) {
        sum += (uint32_t)data[0] << 8 | data[1];
        if (sum & 0x80000000u)
            sum = (sum & 0xffff) + (sum >> 16);
        data += 2;
        length -= 2;
    }
    if (length)
        sum += (uint32_t)data[0] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}
