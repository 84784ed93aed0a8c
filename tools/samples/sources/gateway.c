/* SPDX-License-Identifier: Apache-2.0 */
/* Reads frames of kind, length (two bytes) and content, and answers each in the same form. */
#include "gateway.h"

#include <string.h>

static struct gateway state;
static struct limiter limiter = {100, 100, 0, 0};

static int answer_dns(const uint8_t *message, size_t length, char *out, size_t room)
{
    struct dns_record record;
    char name[128];
    int found = dns_find_answer(message, length, 1, &record);
    if (found <= 0)
        return kin_print(out, room, found == 0 ? "no answer" : "bad message");
    if (record.data_length != 4 || dns_expand_name(message, length, 12, name, sizeof name) < 0)
        return kin_print(out, room, "bad record");
    const uint8_t *a = message + record.data_offset;
    return kin_print(out, room, "%s is %d.%d.%d.%d", name, a[0], a[1], a[2], a[3]);
}

static int answer_publish(const uint8_t *data, size_t length, char *out, size_t room)
{
    const uint8_t *payload;
    struct json_token tokens[32];
    char topic[64];
    int size = mqtt_parse_publish(data, length, topic, sizeof topic, &payload);
    if (size < 0)
        return kin_print(out, room, "bad packet");
    if (!mqtt_topic_matches("device/+/command", topic))
        return kin_print(out, room, "ignored %s", topic);
    const char *text = (const char *)payload;
    int count = json_tokenize(text, (size_t)size, tokens, 32);
    int found = count < 0 ? -1 : json_find(text, tokens, count, 0, "command");
    if (found < 0)
        return kin_print(out, room, "no command");
    char command[64];
    int written = json_unescape(text + tokens[found].start,
                                (size_t)(tokens[found].end - tokens[found].start), command,
                                sizeof command - 1);
    if (written < 0 || utf8_validate((const uint8_t *)command, (size_t)written) < 0)
        return kin_print(out, room, "bad command");
    command[written] = 0;
    return run_command(&state, command, out, room);
}

static int read_setting(void *context, const char *section, const char *key, const char *value)
{
    struct gateway *gateway = context;
    int64_t index;
    if (strcmp(section, "alias") != 0)
        return strcmp(section, "") == 0 ? 0 : -1;
    if (parse_integer(value, 0, &index) < 0 || index < 0 || index >= 32)
        return -1;
    char *kept = pool_take(strlen(key) + 1);
    if (!kept)
        return -1;
    memcpy(kept, key, strlen(key) + 1);
    return table_put(&gateway->names, kept, (int32_t)index) < 0 ? -1 : 0;
}

int handle_frame(struct gateway *gateway, uint8_t kind, size_t length)
{
    char *out = (char *)gateway->reply;
    size_t room = sizeof gateway->reply;
    const uint8_t *frame = gateway->frame;
    if (!limiter_allow(gateway->limiter, gateway->now, kind == 'T' ? 2 : 1))
        return kin_print(out, room, "too many requests");
    switch (kind) {
    case 'H':
        return process_heartbeat(&gateway->session, frame, length, gateway->reply, room);
    case 'M':
        return modbus_answer(&gateway->device, frame, length, gateway->reply, room);
    case 'D':
        return answer_dns(frame, length, out, room);
    case 'Q':
        return answer_publish(frame, length, out, room);
    case 'W':
        return serve_page(gateway, (const char *)frame, length, out, room);
    case 'I':
        return kin_print(out, room, "line %d",
                         ini_parse((const char *)frame, length, read_setting, gateway));
    case 'Z': {
        int used = zlib_decode(frame, length, gateway->reply, room);
        return used < 0 ? kin_print(out, room, "bad stream") : used;
    }
    case 'T':
        if (length >= sizeof gateway->frame)
            return -1;
        gateway->frame[length] = 0;
        return run_command(gateway, (char *)gateway->frame, out, room);
    default:
        return kin_print(out, room, "unknown frame %c", kind);
    }
}

static void start(struct gateway *gateway)
{
    pool_start();
    gateway->limiter = &limiter;
    gateway->names.entries = gateway->entries;
    gateway->names.room = 32;
    gateway->session.state = BEAT_OPEN;
    gateway->device.unit = 17;
    kin_print(gateway->secret, sizeof gateway->secret, "admin password: %s", "demo-only-secret");
}

#if defined(__x86_64__)
/* The kernel does not align the stack as a call would. */
__attribute__((force_align_arg_pointer))
#endif
_Noreturn void _start(void)
{
    uint8_t head[3];
    start(&state);
    while (system_read(0, head, sizeof head) == (long)sizeof head) {
        size_t length = (size_t)head[1] << 8 | head[2];
        if (length > sizeof state.frame)
            system_exit(2);
        memset(state.frame, 0, sizeof state.frame);
        if (system_read(0, state.frame, length) != (long)length)
            system_exit(3);
        int used = handle_frame(&state, head[0], length);
        if (used < 0)
            used = 0;
        state.now++;
        head[1] = (uint8_t)(used >> 8);
        head[2] = (uint8_t)used;
        if (system_write(1, head, sizeof head) < 0 ||
            system_write(1, state.reply, (size_t)used) < 0)
            system_exit(4);
    }
    system_exit(0);
}
