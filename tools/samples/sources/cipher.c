/* SPDX-License-Identifier: Apache-2.0 */
/* Stream and block ciphers, as small devices use them. */
#include "kinmedia.h"

#define ROTL(x, n) ((x) << (n) | (x) >> (32 - (n)))

static void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b;
    *d = ROTL(*d ^ *a, 16);
    *c += *d;
    *b = ROTL(*b ^ *c, 12);
    *a += *b;
    *d = ROTL(*d ^ *a, 8);
    *c += *d;
    *b = ROTL(*b ^ *c, 7);
}

static uint32_t little32(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

void chacha20_xor(const uint8_t key[32], const uint8_t nonce[12], uint32_t counter,
                  uint8_t *data, size_t length)
{
    uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int i = 0; i < 8; i++)
        start[4 + i] = little32(key + 4 * i);
    start[12] = counter;
    for (int i = 0; i < 3; i++)
        start[13 + i] = little32(nonce + 4 * i);
    while (length > 0) {
        for (int i = 0; i < 16; i++)
            x[i] = start[i];
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 4; i++)
                quarter(&x[i], &x[4 + i], &x[8 + i], &x[12 + i]);
            for (int i = 0; i < 4; i++)
                quarter(&x[i], &x[4 + (i + 1) % 4], &x[8 + (i + 2) % 4], &x[12 + (i + 3) % 4]);
        }
        size_t run = length < 64 ? length : 64;
        for (size_t i = 0; i < run; i++) {
            uint32_t word = x[i / 4] + start[i / 4];
            data[i] ^= (uint8_t)(word >> (8 * (i % 4)));
        }
        start[12]++;
        data += run;
        length -= run;
    }
}

void rc4_xor(const uint8_t *key, size_t key_length, uint8_t *data, size_t length)
{
    uint8_t box[256], i = 0, j = 0;
    if (key_length == 0)
        return;
    for (int n = 0; n < 256; n++)
        box[n] = (uint8_t)n;
    for (int n = 0; n < 256; n++) {
        uint8_t kept = box[n];
        j = (uint8_t)(j + kept + key[(size_t)n % key_length]);
        box[n] = box[j];
        box[j] = kept;
    }
    j = 0;
    for (size_t n = 0; n < length; n++) {
        i++;
        uint8_t kept = box[i];
        j = (uint8_t)(j + kept);
        box[i] = box[j];
        box[j] = kept;
        data[n] ^= box[(uint8_t)(box[i] + kept)];
    }
}

void xtea_encrypt(const uint32_t key[4], uint32_t block[2])
{
    uint32_t a = block[0], b = block[1], sum = 0;
    for (int round = 0; round < 32; round++) {
        a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
        sum += 0x9e3779b9u;
        b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
    }
    block[0] = a;
    block[1] = b;
}

int pkcs7_unpad(const uint8_t *data, size_t length, size_t block)
{
    if (block == 0 || block > 255 || length == 0 || length % block != 0)
        return -1;
    uint8_t padding = data[length - 1];
    if (padding == 0 || padding > block)
        return -1;
    uint8_t wrong = 0;
    for (size_t i = 1; i <= padding; i++)
        wrong |= (uint8_t)(data[length - i] ^ padding);
    return wrong ? -1 : (int)(length - padding);
}
