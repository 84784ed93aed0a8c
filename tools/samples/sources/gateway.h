/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up gateway daemon, free of any C library. */
#ifndef GATEWAY_H
#define GATEWAY_H

#include "kinbeat.h"
#include "kinmedia.h"
#include "kinparse.h"
#include "kinproto.h"

struct gateway {
    uint8_t frame[512];
    /* Behind the frame, as memory has it, stands what nobody should read. */
    char secret[64];
    uint8_t reply[4096];
    struct beat_session session;
    struct modbus_device device;
    struct limiter *limiter;
    struct table names;
    struct table_entry entries[32];
    uint32_t now;
    uint32_t logged_in;
};

/* system.c */
long system_read(int file, void *data, size_t length);
long system_write(int file, const void *data, size_t length);
_Noreturn void system_exit(int code);

/* pool.c */
void pool_start(void);
void *pool_take(size_t size);
int pool_give(void *memory);
size_t pool_largest(void);

/* guard.c */
struct limiter {
    uint32_t tokens;
    uint32_t most;
    uint32_t last;
    uint32_t rejected;
};
int limiter_allow(struct limiter *limiter, uint32_t now, uint32_t cost);
int access_allowed(const char *const *rules, int count, uint32_t address, int port);
int password_acceptable(const char *password, const char *user);
int check_login(const char *line, const uint8_t expected[32]);

/* control.c */
struct pid {
    int32_t target;
    int32_t sum;
    int32_t last;
    int32_t limit;
};
int32_t pid_step(struct pid *pid, int32_t measured);
int32_t median_filter(int32_t *window, int size, int32_t sample);
int debounce(uint32_t *history, int level);
int schedule_next(const uint32_t *due, const uint8_t *priority, int count, uint32_t now);
int battery_percent(int millivolts, int celsius);
int blink_level(const char *pattern, uint32_t milliseconds);

/* journal.c */
int journal_append(uint8_t *flash, size_t size, uint8_t kind, const uint8_t *data, size_t length);
int journal_replay(const uint8_t *flash, size_t size, uint8_t kind, uint8_t *out, size_t room);
int journal_compact(uint8_t *flash, size_t size, uint8_t *scratch);
int wear_level(const uint16_t *erased, int blocks, int current);

/* shell.c */
int run_command(struct gateway *gateway, char *line, char *out, size_t room);
int serve_page(struct gateway *gateway, const char *text, size_t length, char *out, size_t room);

/* gateway.c */
int handle_frame(struct gateway *gateway, uint8_t kind, size_t length);

#endif
