/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of MQTT 3.1.1. */
#include "kinproto.h"

#include <string.h>

static int read_text(const uint8_t *data, size_t length, size_t *at, size_t *start)
{
    if (length - *at < 2)
        return -1;
    size_t size = (size_t)data[*at] << 8 | data[*at + 1];
    *start = *at + 2;
    if (size > length - *start)
        return -1;
    *at = *start + size;
    return (int)size;
}

/* The bytes that the length field takes, 0 when more are needed, -1 when it is wrong. */
int mqtt_remaining_length(const uint8_t *data, size_t length, uint32_t *remaining)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        if (i >= length)
            return 0;
        value |= (uint32_t)(data[i] & 0x7f) << (7 * i);
        if (!(data[i] & 0x80)) {
            if (i > 0 && data[i] == 0)
                return -1;
            *remaining = value;
            return (int)i + 1;
        }
    }
    return -1;
}

/* sport/+/player1, sport/# */
int mqtt_topic_matches(const char *filter, const char *topic)
{
    if (*topic == '$' && (*filter == '#' || *filter == '+'))
        return 0;
    for (;;) {
        if (filter[0] == '#')
            return filter[1] == 0;
        if (filter[0] == '+') {
            while (*topic && *topic != '/')
                topic++;
            filter++;
        } else {
            while (*filter && *filter != '/' && *filter == *topic) {
                filter++;
                topic++;
            }
        }
        if (*filter == 0)
            return *topic == 0;
        if (*filter != '/')
            return 0;
        if (*topic == 0)
            return strcmp(filter, "/#") == 0;
        if (*topic != '/')
            return 0;
        filter++;
        topic++;
    }
}

/* The length of the payload, or -1. */
int mqtt_parse_publish(const uint8_t *data, size_t length, char *topic, size_t room,
                       const uint8_t **payload)
{
    uint32_t remaining;
    size_t start;
    if (length < 2 || data[0] >> 4 != 3)
        return -1;
    int quality = data[0] >> 1 & 3;
    int field = mqtt_remaining_length(data + 1, length - 1, &remaining);
    if (quality == 3 || field <= 0)
        return -1;
    size_t at = (size_t)field + 1, end = at + remaining;
    if (end > length)
        return -1;
    int size = read_text(data, end, &at, &start);
    if (size <= 0 || (size_t)size >= room)
        return -1;
    for (int i = 0; i < size; i++) {
        char c = (char)data[start + (size_t)i];
        if (c == 0 || c == '+' || c == '#')
            return -1;
        topic[i] = c;
    }
    topic[size] = 0;
    if (quality > 0) {
        if (end - at < 2 || (data[at] == 0 && data[at + 1] == 0))
            return -1;
        at += 2;
    }
    *payload = data + at;
    return (int)(end - at);
}

/* The return code for a connect packet: 0 to accept it, 1, 2 or 4 to refuse, -1 to hang up. */
int mqtt_check_connect(const uint8_t *data, size_t length)
{
    uint32_t remaining;
    size_t start, at;
    if (length < 2 || data[0] != 0x10)
        return -1;
    int field = mqtt_remaining_length(data + 1, length - 1, &remaining);
    if (field <= 0 || remaining + (size_t)field + 1 > length)
        return -1;
    at = (size_t)field + 1;
    length = at + remaining;
    if (read_text(data, length, &at, &start) != 4 || memcmp(data + start, "MQTT", 4) != 0)
        return -1;
    if (length - at < 4)
        return -1;
    uint8_t level = data[at], flags = data[at + 1];
    at += 4;
    if (level != 4)
        return 1;
    if (flags & 1 || (flags & 0x40 && !(flags & 0x80)))
        return -1;
    int client = read_text(data, length, &at, &start);
    if (client < 0)
        return -1;
    if (client == 0 && !(flags & 2))
        return 2;
    if (flags & 4) {
        if (read_text(data, length, &at, &start) <= 0 || read_text(data, length, &at, &start) < 0)
            return -1;
    } else if (flags & 0x38) {
        return -1;
    }
    if (flags & 0x80 && read_text(data, length, &at, &start) <= 0)
        return 4;
    if (flags & 0x40 && read_text(data, length, &at, &start) < 0)
        return -1;
    return at == length ? 0 : -1;
}
