/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times of day, UTC, in the calendar of today for all years. */
#include "kinparse.h"

#include <string.h>

static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static int days_in_month(int year, int month)
{
    static const uint8_t DAYS[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
        return 29;
    return DAYS[month - 1];
}

static int is_valid(const struct kin_time *time)
{
    if (time->month < 1 || time->month > 12 || time->day < 1)
        return 0;
    if (time->day > days_in_month(time->year, time->month))
        return 0;
    return time->hour <= 23 && time->minute <= 59 && time->second <= 59;
}

static int read_digits(const char **text, int count, int32_t *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        char c = **text;
        if (c < '0' || c > '9')
            return -1;
        *value = 10 * *value + (c - '0');
        (*text)++;
    }
    return 0;
}

static int read_clock(const char **text, struct kin_time *time)
{
    if (read_digits(text, 2, &time->hour) < 0 || *(*text)++ != ':' ||
        read_digits(text, 2, &time->minute) < 0 || *(*text)++ != ':' ||
        read_digits(text, 2, &time->second) < 0)
        return -1;
    return 0;
}

int64_t seconds_from_time(const struct kin_time *time)
{
    int64_t year = time->month > 2 ? time->year : (int64_t)time->year - 1;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (time->month + (time->month > 2 ? -3 : 9)) + 2) / 5 + time->day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return days * 86400 + time->hour * 3600 + time->minute * 60 + time->second;
}

void time_from_seconds(int64_t seconds, struct kin_time *time)
{
    int64_t days = seconds / 86400;
    int32_t rest = (int32_t)(seconds % 86400);
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int32_t day = (int32_t)(days - era * 146097);
    int32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int32_t of_year = day - (365 * year + year / 4 - year / 100);
    int32_t month = (5 * of_year + 2) / 153;
    time->day = of_year - (153 * month + 2) / 5 + 1;
    time->month = month < 10 ? month + 3 : month - 9;
    time->year = (int32_t)(era * 400) + year + (time->month <= 2);
    time->hour = rest / 3600;
    time->minute = rest / 60 % 60;
    time->second = rest % 60;
}

/* 2014-04-07, 2014-04-07T10:20:30, with Z or an offset from UTC such as +05:30. */
int parse_iso_time(const char *text, struct kin_time *time, int *offset_minutes)
{
    memset(time, 0, sizeof *time);
    *offset_minutes = 0;
    if (read_digits(&text, 4, &time->year) < 0 || *text++ != '-')
        return -1;
    if (read_digits(&text, 2, &time->month) < 0 || *text++ != '-')
        return -1;
    if (read_digits(&text, 2, &time->day) < 0)
        return -1;
    if (*text == 'T' || *text == 't' || *text == ' ') {
        text++;
        if (read_clock(&text, time) < 0)
            return -1;
        if (*text == '.' || *text == ',') {
            text++;
            if (*text < '0' || *text > '9')
                return -1;
            while (*text >= '0' && *text <= '9')
                text++;
        }
        if (*text == 'Z' || *text == 'z') {
            text++;
        } else if (*text == '+' || *text == '-') {
            int sign = *text++ == '-' ? -1 : 1;
            int32_t hours, minutes;
            if (read_digits(&text, 2, &hours) < 0)
                return -1;
            if (*text == ':')
                text++;
            if (read_digits(&text, 2, &minutes) < 0 || hours > 14 || minutes > 59)
                return -1;
            *offset_minutes = sign * (60 * hours + minutes);
        }
    }
    return *text == 0 && is_valid(time) ? 0 : -1;
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
int parse_http_date(const char *text, struct kin_time *time)
{
    const char *comma = strchr(text, ',');
    memset(time, 0, sizeof *time);
    if (!comma || comma - text != 3 || comma[1] != ' ')
        return -1;
    text = comma + 2;
    if (read_digits(&text, 2, &time->day) < 0 || *text++ != ' ')
        return -1;
    for (int month = 0; month < 12; month++) {
        if (strncmp(text, MONTHS + 3 * month, 3) == 0) {
            time->month = month + 1;
            break;
        }
    }
    if (time->month == 0 || text[3] != ' ')
        return -1;
    text += 4;
    if (read_digits(&text, 4, &time->year) < 0 || *text++ != ' ')
        return -1;
    if (read_clock(&text, time) < 0 || strcmp(text, " GMT") != 0)
        return -1;
    return is_valid(time) ? 0 : -1;
}
