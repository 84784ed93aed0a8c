/* SPDX-License-Identifier: Apache-2.0 */
/* What operators type, and what browsers ask for. */
#include "gateway.h"

#include <string.h>

/* Of "admin:demo-only-secret". */
static const uint8_t ADMIN[32] = {
    0x17, 0xf2, 0x68, 0xb2, 0x31, 0x52, 0xdf, 0x79, 0xaf, 0xa0, 0x2a, 0xb1, 0xc6, 0x67, 0x0e, 0xa4,
    0xda, 0xd9, 0x8e, 0xaf, 0x51, 0xe4, 0xa8, 0xd8, 0x33, 0x82, 0x54, 0x98, 0xb8, 0xb1, 0xf8, 0x10,
};

static int command_set(struct gateway *gateway, char **words, int count, char *out, size_t room)
{
    int64_t index, value;
    if (count != 3)
        return kin_print(out, room, "set REGISTER VALUE");
    if (parse_integer(words[1], 0, &index) < 0 || index < 0 || index >= 32)
        return kin_print(out, room, "no register %s", words[1]);
    if (parse_integer(words[2], 0, &value) < 0 || value < 0 || value > 0xffff)
        return kin_print(out, room, "no value %s", words[2]);
    gateway->device.registers[index] = (uint16_t)value;
    return kin_print(out, room, "register %d = %d", (int)index, (int)value);
}

static int command_dump(struct gateway *gateway, char **words, int count, char *out, size_t room)
{
    const uint8_t *data = (const uint8_t *)gateway->device.registers;
    size_t used = 0;
    int64_t lines = 1;
    if (count == 2 && (parse_integer(words[1], 10, &lines) < 0 || lines < 1 || lines > 4))
        return kin_print(out, room, "dump 1..4");
    for (int64_t i = 0; i < lines; i++) {
        int length = hex_dump_line(data + 16 * i, 16, (uint32_t)(16 * i), out + used, room - used);
        if (length < 0)
            return length;
        used += (size_t)length;
        if (i + 1 < lines && used + 1 < room)
            out[used++] = '\n';
    }
    return (int)used;
}

int run_command(struct gateway *gateway, char *line, char *out, size_t room)
{
    char *words[8];
    int32_t alias;
    if (strncmp(line, "login ", 6) == 0) {
        int result = check_login(line, ADMIN);
        if (result == 1)
            gateway->logged_in = 1;
        return kin_print(out, room, result == 1 ? "welcome" : "refused");
    }
    int count = split_arguments(line, words, 8);
    if (count < 0)
        return kin_print(out, room, "open quote, or too many words");
    if (count == 0)
        return 0;
    if (strcmp(words[0], "set") == 0)
        return command_set(gateway, words, count, out, room);
    if (strcmp(words[0], "dump") == 0)
        return command_dump(gateway, words, count, out, room);
    if (strcmp(words[0], "alias") == 0 && count == 2) {
        if (table_get(&gateway->names, words[1], &alias) < 0)
            return kin_print(out, room, "no alias %s", words[1]);
        return kin_print(out, room, "%s is register %d", words[1], (int)alias);
    }
    if (strcmp(words[0], "memory") == 0)
        return kin_print(out, room, "%u bytes free", (unsigned)pool_largest());
    if (strcmp(words[0], "battery") == 0) {
        int percent = battery_percent(gateway->device.registers[0], 20);
        return percent < 0 ? kin_print(out, room, "no battery")
                           : kin_print(out, room, "battery %d%%", percent);
    }
    if (strcmp(words[0], "wait") == 0 && count == 2) {
        uint32_t milliseconds;
        if (parse_duration(words[1], &milliseconds) < 0)
            return kin_print(out, room, "no duration %s", words[1]);
        gateway->now += milliseconds;
        return kin_print(out, room, "waited %u ms", milliseconds);
    }
    return kin_print(out, room, "unknown command %s", words[0]);
}

int serve_page(struct gateway *gateway, const char *text, size_t length, char *out, size_t room)
{
    struct http_request request;
    char host[64], name[32];
    int headers = http_parse_request(text, length, &request);
    if (headers < 0)
        return kin_print(out, room, "HTTP/1.1 400 Bad Request\r\n\r\n");
    if (http_find_header(text + headers, length - (size_t)headers, "host", host, sizeof host) < 0)
        return kin_print(out, room, "HTTP/1.1 400 No Host\r\n\r\n");
    if (strcmp(request.method, "GET") != 0)
        return kin_print(out, room, "HTTP/1.1 405 Method Not Allowed\r\n\r\n");
    char *query = strchr(request.target, '?');
    if (query)
        *query++ = 0;
    if (normalize_path(request.target) < 0)
        return kin_print(out, room, "HTTP/1.1 403 Forbidden\r\n\r\n");
    if (glob_match("/static/*", request.target) == 1)
        return kin_print(out, room, "HTTP/1.1 304 Not Modified\r\n\r\n");
    if (strcmp(request.target, "/register") == 0 && query) {
        int64_t index;
        if (query_value(query, "n", name, sizeof name) < 0 ||
            parse_integer(name, 10, &index) < 0 || index < 0 || index >= 32)
            return kin_print(out, room, "HTTP/1.1 422 No Register\r\n\r\n");
        return kin_print(out, room, "HTTP/1.1 200 OK\r\n\r\n{\"value\": %u}",
                         (unsigned)gateway->device.registers[index]);
    }
    if (strcmp(request.target, "/admin") == 0 && !gateway->logged_in)
        return kin_print(out, room, "HTTP/1.1 401 Unauthorized\r\n\r\n");
    return kin_print(out, room, "HTTP/1.1 404 Not Found\r\n\r\n");
}
