/* SPDX-License-Identifier: Apache-2.0 */
/* Text from values: a printf of our own, and lines of a memory dump. */
#include "kinparse.h"

struct sink {
    char *out;
    size_t room;
    size_t used;
};

static void put(struct sink *sink, char c)
{
    if (sink->used + 1 < sink->room)
        sink->out[sink->used] = c;
    sink->used++;
}

static void pad(struct sink *sink, char c, int count)
{
    while (count-- > 0)
        put(sink, c);
}

static int digits_of(uint64_t value, unsigned base, int upper, char *digits)
{
    const char *letters = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    int count = 0;
    do {
        digits[count++] = letters[value % base];
        value /= base;
    } while (value);
    return count;
}

static void put_number(struct sink *sink, uint64_t value, unsigned base, int upper, char sign,
                       int width, int zeros, int left)
{
    char digits[24];
    int count = digits_of(value, base, upper, digits);
    int fill = width - count - (sign != 0);
    if (!left && !zeros)
        pad(sink, ' ', fill);
    if (sign)
        put(sink, sign);
    if (!left && zeros)
        pad(sink, '0', fill);
    while (count > 0)
        put(sink, digits[--count]);
    if (left)
        pad(sink, ' ', fill);
}

static void put_string(struct sink *sink, const char *text, int width, int precision, int left)
{
    int count = 0;
    if (!text)
        text = "(null)";
    while (text[count] && (precision < 0 || count < precision))
        count++;
    if (!left)
        pad(sink, ' ', width - count);
    for (int i = 0; i < count; i++)
        put(sink, text[i]);
    if (left)
        pad(sink, ' ', width - count);
}

int kin_format(char *out, size_t room, const char *format, va_list arguments)
{
    struct sink sink = {out, room, 0};
    for (; *format; format++) {
        int left = 0, zeros = 0, plus = 0, width = 0, precision = -1, longs = 0;
        int64_t value;
        if (*format != '%') {
            put(&sink, *format);
            continue;
        }
        for (format++; *format == '-' || *format == '0' || *format == '+'; format++) {
            if (*format == '-')
                left = 1;
            else if (*format == '0')
                zeros = 1;
            else
                plus = 1;
        }
        if (*format == '*') {
            width = va_arg(arguments, int);
            format++;
        }
        while (*format >= '0' && *format <= '9')
            width = 10 * width + (*format++ - '0');
        if (*format == '.') {
            precision = 0;
            for (format++; *format >= '0' && *format <= '9'; format++)
                precision = 10 * precision + (*format - '0');
        }
        while (*format == 'l' || *format == 'z') {
            longs++;
            format++;
        }
        switch (*format) {
        case 'd':
        case 'i':
            value = longs ? va_arg(arguments, int64_t) : va_arg(arguments, int);
            put_number(&sink, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 0,
                       value < 0 ? '-' : plus ? '+' : 0, width, zeros, left);
            break;
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            put_number(&sink, longs ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned),
                       *format == 'u' ? 10 : *format == 'o' ? 8 : 16, *format == 'X', 0, width,
                       zeros, left);
            break;
        case 's':
            put_string(&sink, va_arg(arguments, const char *), width, precision, left);
            break;
        case 'c':
            put(&sink, (char)va_arg(arguments, int));
            break;
        case '%':
            put(&sink, '%');
            break;
        default:
            return -1;
        }
    }
    if (room > 0)
        out[sink.used < room ? sink.used : room - 1] = 0;
    return (int)sink.used;
}

int kin_print(char *out, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = kin_format(out, room, format, arguments);
    va_end(arguments);
    return length;
}

int hex_dump_line(const uint8_t *data, size_t length, uint32_t address, char *out, size_t room)
{
    struct sink sink = {out, room, 0};
    put_number(&sink, address, 16, 0, 0, 8, 1, 0);
    put(&sink, ':');
    for (size_t i = 0; i < 16; i++) {
        if (i % 4 == 0)
            put(&sink, ' ');
        if (i < length)
            put_number(&sink, data[i], 16, 0, 0, 2, 1, 0);
        else
            pad(&sink, ' ', 2);
    }
    pad(&sink, ' ', 2);
    for (size_t i = 0; i < length && i < 16; i++)
        put(&sink, data[i] >= 0x20 && data[i] < 0x7f ? (char)data[i] : '.');
    if (sink.used >= room)
        return -1;
    out[sink.used] = 0;
    return (int)sink.used;
}
