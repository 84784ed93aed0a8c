/* SPDX-License-Identifier: Apache-2.0 */
/* Packets on serial lines. */
#include "kinproto.h"

enum { END = 0xc0, ESC = 0xdb, ESC_END = 0xdc, ESC_ESC = 0xdd };

/* The first packet that is not empty. */
int slip_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t used = 0;
    int escaped = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = data[i];
        if (escaped) {
            if (byte == ESC_END)
                byte = END;
            else if (byte == ESC_ESC)
                byte = ESC;
            else
                return -1;
            escaped = 0;
        } else if (byte == END) {
            if (used > 0)
                return (int)used;
            continue;
        } else if (byte == ESC) {
            escaped = 1;
            continue;
        }
        if (used >= room)
            return -1;
        out[used++] = byte;
    }
    return -1;
}

int cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t code = 0, used = 1;
    uint8_t run = 1;
    if (room < length + length / 254 + 1)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (data[i] != 0) {
            out[used++] = data[i];
            run++;
        }
        if (data[i] == 0 || (run == 0xff && i + 1 < length)) {
            out[code] = run;
            code = used++;
            run = 1;
        }
    }
    out[code] = run;
    return (int)used;
}

int cobs_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    size_t at = 0, used = 0;
    while (at < length) {
        uint8_t code = data[at++];
        if (code == 0 || (size_t)code - 1 > length - at)
            return -1;
        for (uint8_t i = 1; i < code; i++) {
            if (data[at] == 0 || used >= room)
                return -1;
            out[used++] = data[at++];
        }
        if (code < 0xff && at < length) {
            if (used >= room)
                return -1;
            out[used++] = 0;
        }
    }
    return (int)used;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The latitude of a $GPRMC line, in millionths of a degree. */
int nmea_parse(const char *line, int *degrees_1e6, int *valid)
{
    int sum = 0, field = 0, digits = 0, in_fraction = 0, fraction = 0;
    int64_t value = 0;
    const char *at = line;
    if (*at++ != '$')
        return -1;
    *valid = 0;
    for (; *at && *at != '*'; at++) {
        sum ^= *at;
        if (*at == ',') {
            field++;
            continue;
        }
        if (field == 2) {
            *valid = *at == 'A';
        } else if (field == 3) {
            if (*at == '.' && !in_fraction) {
                in_fraction = 1;
            } else if (*at >= '0' && *at <= '9' && digits < 9) {
                value = 10 * value + (*at - '0');
                digits++;
                fraction += in_fraction;
            } else {
                return -1;
            }
        } else if (field == 4 && *at == 'S') {
            value = -value;
        }
    }
    if (*at != '*' || field < 4 || fraction > 5)
        return -1;
    if (nibble(at[1]) < 0 || nibble(at[2]) < 0 || (nibble(at[1]) << 4 | nibble(at[2])) != sum)
        return -1;
    for (; fraction < 5; fraction++)
        value *= 10;
    int64_t whole = value / 10000000, minutes = value % 10000000;
    *degrees_1e6 = (int)(whole * 1000000 + minutes * 10 / 60);
    return 0;
}
