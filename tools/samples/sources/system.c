/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the kernel, and the functions that compilers expect to exist. */
#include "gateway.h"

#include <string.h>
#include <strings.h>

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, EXIT = 60 };

static long system_call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, EXIT = 93 };

static long system_call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#elif defined(__mips__)
enum { READ = 4003, WRITE = 4004, EXIT = 4001 };

static long system_call(long number, long a, long b, long c)
{
    register long v0 __asm__("$2") = number;
    register long a0 __asm__("$4") = a;
    register long a1 __asm__("$5") = b;
    register long a2 __asm__("$6") = c;
    register long failed __asm__("$7");
    __asm__ volatile("syscall"
                     : "+r"(v0), "=r"(failed)
                     : "r"(a0), "r"(a1), "r"(a2)
                     : "$1", "$3", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24",
                       "$25", "hi", "lo", "memory");
    return failed ? -v0 : v0;
}
#endif

long system_read(int file, void *data, size_t length)
{
    size_t used = 0;
    while (used < length) {
        long count = system_call(READ, file, (long)data + (long)used, (long)(length - used));
        if (count < 0)
            return count;
        if (count == 0)
            break;
        used += (size_t)count;
    }
    return (long)used;
}

long system_write(int file, const void *data, size_t length)
{
    size_t used = 0;
    while (used < length) {
        long count = system_call(WRITE, file, (long)data + (long)used, (long)(length - used));
        if (count <= 0)
            return -1;
        used += (size_t)count;
    }
    return (long)used;
}

_Noreturn void system_exit(int code)
{
    for (;;)
        system_call(EXIT, code, 0, 0);
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    while (length--)
        *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t length)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    if (out < in) {
        while (length--)
            *out++ = *in++;
    } else {
        while (length--)
            out[length] = in[length];
    }
    return to;
}

void *memset(void *to, int value, size_t length)
{
    uint8_t *out = to;
    while (length--)
        *out++ = (uint8_t)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t length)
{
    const uint8_t *left = a, *right = b;
    for (; length--; left++, right++)
        if (*left != *right)
            return *left < *right ? -1 : 1;
    return 0;
}

int bcmp(const void *a, const void *b, size_t length)
{
    return memcmp(a, b, length);
}

void *memchr(const void *data, int value, size_t length)
{
    const uint8_t *at = data;
    for (; length--; at++)
        if (*at == (uint8_t)value)
            return (void *)(uintptr_t)at;
    return NULL;
}

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}

char *strchr(const char *text, int wanted)
{
    for (;; text++) {
        if (*text == (char)wanted)
            return (char *)(uintptr_t)text;
        if (*text == 0)
            return NULL;
    }
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

int strncmp(const char *a, const char *b, size_t length)
{
    for (; length > 0; a++, b++, length--) {
        if (*a != *b)
            return (uint8_t)*a - (uint8_t)*b;
        if (*a == 0)
            break;
    }
    return 0;
}

size_t strcspn(const char *text, const char *reject)
{
    size_t length = 0;
    for (; text[length]; length++)
        for (const char *c = reject; *c; c++)
            if (text[length] == *c)
                return length;
    return length;
}

char *strstr(const char *text, const char *wanted)
{
    size_t length = strlen(wanted);
    for (; *text; text++)
        if (strncmp(text, wanted, length) == 0)
            return (char *)(uintptr_t)text;
    return length == 0 ? (char *)(uintptr_t)text : NULL;
}
