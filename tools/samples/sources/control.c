/* SPDX-License-Identifier: Apache-2.0 */
/* Sensors, switches and the clock. */
#include "gateway.h"

int32_t pid_step(struct pid *pid, int32_t measured)
{
    int32_t error = pid->target - measured;
    int32_t slope = error - pid->last;
    int32_t output = (error * 12 + pid->sum + slope * 3) / 16;
    pid->last = error;
    if (output > pid->limit) {
        output = pid->limit;
        if (error < 0)
            pid->sum += error;
    } else if (output < -pid->limit) {
        output = -pid->limit;
        if (error > 0)
            pid->sum += error;
    } else {
        pid->sum += error;
    }
    return output;
}

/* Keeps the last samples, oldest first, and returns the one in the middle of their order. */
int32_t median_filter(int32_t *window, int size, int32_t sample)
{
    int32_t sorted[16];
    if (size < 1 || size > 16)
        return sample;
    for (int i = 1; i < size; i++)
        window[i - 1] = window[i];
    window[size - 1] = sample;
    for (int i = 0; i < size; i++) {
        int at = i;
        while (at > 0 && sorted[at - 1] > window[i]) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = window[i];
    }
    return size % 2 ? sorted[size / 2] : (sorted[size / 2 - 1] + sorted[size / 2]) / 2;
}

/* 1 when a switch has closed, -1 when it has opened, 0 while it rests or bounces. */
int debounce(uint32_t *history, int level)
{
    uint32_t before = *history & 0xff;
    *history = *history << 1 | (level ? 1u : 0u);
    uint32_t after = *history & 0xff;
    if (after == 0xff && before != 0xff && !(*history & 0x80000000u)) {
        *history |= 0x80000000u;
        return 1;
    }
    if (after == 0 && before != 0)
        return -1;
    return 0;
}

/* The task that is due and of the highest priority, the longest due among equals; or -1. */
int schedule_next(const uint32_t *due, const uint8_t *priority, int count, uint32_t now)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        int32_t late = (int32_t)(now - due[i]);
        if (late < 0 || priority[i] == 0)
            continue;
        if (best < 0 || priority[i] > priority[best]) {
            best = i;
        } else if (priority[i] == priority[best]) {
            if (late > (int32_t)(now - due[best]))
                best = i;
        }
    }
    return best;
}

int battery_percent(int millivolts, int celsius)
{
    static const uint16_t CURVE[11] = {3270, 3610, 3690, 3710, 3730, 3750,
                                       3770, 3790, 3840, 3950, 4180};
    if (celsius < 0)
        millivolts += -celsius * 2;
    else if (celsius > 45)
        return -1;
    if (millivolts < 2500 || millivolts > 4400)
        return -1;
    if (millivolts <= CURVE[0])
        return 0;
    for (int i = 1; i < 11; i++) {
        if (millivolts < CURVE[i]) {
            int span = CURVE[i] - CURVE[i - 1];
            return 10 * (i - 1) + 10 * (millivolts - CURVE[i - 1]) / span;
        }
    }
    return 100;
}

/* "3-1_" is on for 3 tenths of a second and off for 1; the pattern starts over at its end. */
int blink_level(const char *pattern, uint32_t milliseconds)
{
    uint32_t total = 0, at;
    const char *c;
    for (c = pattern; c[0]; c += 2) {
        if (c[0] < '1' || c[0] > '9' || (c[1] != '-' && c[1] != '_'))
            return -1;
        total += 100u * (uint32_t)(c[0] - '0');
    }
    if (total == 0)
        return 0;
    at = milliseconds % total;
    for (c = pattern; c[0]; c += 2) {
        uint32_t span = 100u * (uint32_t)(c[0] - '0');
        if (at < span)
            return c[1] == '-';
        at -= span;
    }
    return 0;
}
