/* SPDX-License-Identifier: Apache-2.0 */
/* Text: configuration, numbers, dates, patterns, tables. */
#ifndef KINPARSE_H
#define KINPARSE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* ini.c */
typedef int (*ini_handler)(void *context, const char *section, const char *key,
                           const char *value);
int ini_parse(const char *text, size_t length, ini_handler handler, void *context);
int parse_bool(const char *text);

/* json.c */
enum json_kind { JSON_OBJECT = 1, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_WORD };
struct json_token {
    int32_t kind;
    int32_t start;
    int32_t end;
    int32_t children;
};
int json_tokenize(const char *text, size_t length, struct json_token *tokens, size_t room);
int json_find(const char *text, const struct json_token *tokens, int count, int object,
              const char *key);
int json_unescape(const char *text, size_t length, char *out, size_t room);

/* format.c */
int kin_format(char *out, size_t room, const char *format, va_list arguments);
int kin_print(char *out, size_t room, const char *format, ...);
int hex_dump_line(const uint8_t *data, size_t length, uint32_t address, char *out, size_t room);

/* pattern.c */
int glob_match(const char *pattern, const char *text);
int regex_search(const char *pattern, const char *text);
int edit_distance(const char *a, const char *b);

/* expression.c */
int expression_evaluate(const char *text, int64_t *result);

/* utf8.c */
int utf8_decode(const uint8_t *data, size_t length, uint32_t *point);
int utf8_validate(const uint8_t *data, size_t length);
int utf8_encode(uint32_t point, uint8_t *out);
int utf16_to_utf8(const uint16_t *units, size_t count, uint8_t *out, size_t room);

/* date.c */
struct kin_time {
    int32_t year;
    int32_t month;
    int32_t day;
    int32_t hour;
    int32_t minute;
    int32_t second;
};
int64_t seconds_from_time(const struct kin_time *time);
void time_from_seconds(int64_t seconds, struct kin_time *time);
int parse_iso_time(const char *text, struct kin_time *time, int *offset_minutes);
int parse_http_date(const char *text, struct kin_time *time);

/* number.c */
int parse_integer(const char *text, int base, int64_t *result);
int parse_size(const char *text, uint64_t *bytes);
int parse_duration(const char *text, uint32_t *milliseconds);
int parse_fixed(const char *text, int decimals, int64_t *result);
int format_fixed(int64_t value, int decimals, char *out, size_t room);
int format_roman(int value, char *out, size_t room);

/* words.c */
int split_arguments(char *line, char **arguments, int most);
int csv_field(const char *line, size_t length, size_t *at, char *out, size_t room);
int compare_versions(const char *a, const char *b);
int compare_natural(const char *a, const char *b);
int wrap_text(char *text, int columns);

/* table.c */
struct table_entry {
    const char *key;
    uint32_t hash;
    int32_t value;
};
struct table {
    struct table_entry *entries;
    uint32_t room;
    uint32_t used;
    uint32_t tombs;
};
int table_put(struct table *table, const char *key, int32_t value);
int table_get(const struct table *table, const char *key, int32_t *value);
int table_remove(struct table *table, const char *key);

/* ring.c */
struct ring {
    uint8_t *data;
    uint32_t size;
    uint32_t head;
    uint32_t tail;
};
size_t ring_write(struct ring *ring, const uint8_t *data, size_t length);
size_t ring_read(struct ring *ring, uint8_t *out, size_t room);
int ring_read_line(struct ring *ring, char *out, size_t room);

/* sort.c */
typedef int (*compare_items)(int32_t a, int32_t b);
void heap_sort(int32_t *items, size_t count, compare_items compare);
void quick_sort(int32_t *items, size_t count);
size_t unique_sorted(int32_t *items, size_t count);
int binary_search(const int32_t *items, size_t count, int32_t wanted);

#endif
