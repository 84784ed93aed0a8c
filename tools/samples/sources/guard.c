/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what, and how often. */
#include "gateway.h"

#include <string.h>

/* A bucket that gains one token each 10 ticks. */
int limiter_allow(struct limiter *limiter, uint32_t now, uint32_t cost)
{
    uint32_t gained = (now - limiter->last) / 10;
    if (gained > 0) {
        limiter->last += 10 * gained;
        limiter->tokens += gained;
        if (limiter->tokens > limiter->most)
            limiter->tokens = limiter->most;
    }
    if (limiter->tokens < cost) {
        if (limiter->rejected < UINT32_MAX)
            limiter->rejected++;
        return 0;
    }
    limiter->tokens -= cost;
    return 1;
}

/* Rules such as "+10.0.0.0/8:80" and "-0.0.0.0/0"; the first that fits decides. */
int access_allowed(const char *const *rules, int count, uint32_t address, int port)
{
    for (int i = 0; i < count; i++) {
        char network[24];
        const char *rule = rules[i];
        int allow;
        if (*rule == '+')
            allow = 1;
        else if (*rule == '-')
            allow = 0;
        else
            return -1;
        size_t size = strcspn(++rule, ":");
        if (size >= sizeof network)
            return -1;
        memcpy(network, rule, size);
        network[size] = 0;
        if (rule[size] == ':') {
            int wanted = 0;
            for (const char *c = rule + size + 1; *c; c++) {
                if (*c < '0' || *c > '9')
                    return -1;
                wanted = 10 * wanted + (*c - '0');
                if (wanted > 65535)
                    return -1;
            }
            if (wanted != port)
                continue;
        }
        int inside = cidr_contains(network, address);
        if (inside < 0)
            return -1;
        if (inside)
            return allow;
    }
    return 0;
}

int password_acceptable(const char *password, const char *user)
{
    int lowers = 0, uppers = 0, digits = 0, others = 0, repeated = 0;
    size_t length = strlen(password);
    if (length < 8 || length > 64)
        return 0;
    for (size_t i = 0; i < length; i++) {
        char c = password[i];
        if (c >= 'a' && c <= 'z')
            lowers = 1;
        else if (c >= 'A' && c <= 'Z')
            uppers = 1;
        else if (c >= '0' && c <= '9')
            digits = 1;
        else if (c > ' ' && c < 0x7f)
            others = 1;
        else
            return 0;
        if (i >= 2 && c == password[i - 1] && c == password[i - 2])
            repeated = 1;
    }
    if (repeated || (*user && strstr(password, user)))
        return 0;
    return lowers + uppers + digits + others >= 3;
}

/* "login NAME BASE64", where the hash of name, colon and password is known. */
int check_login(const char *line, const uint8_t expected[32])
{
    struct sha256 hash;
    uint8_t password[64], digest[32], different = 0;
    if (strncmp(line, "login ", 6) != 0)
        return -1;
    const char *name = line + 6;
    size_t name_length = strcspn(name, " ");
    if (name_length == 0 || name[name_length] == 0)
        return -1;
    const char *encoded = name + name_length + 1;
    int length = base64_decode(encoded, strlen(encoded), password, sizeof password);
    if (length <= 0)
        return -1;
    sha256_start(&hash);
    sha256_update(&hash, (const uint8_t *)name, name_length);
    sha256_update(&hash, (const uint8_t *)":", 1);
    sha256_update(&hash, password, (size_t)length);
    sha256_finish(&hash, digest);
    for (int i = 0; i < 32; i++)
        different |= (uint8_t)(digest[i] ^ expected[i]);
    return different == 0;
}
