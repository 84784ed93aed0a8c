/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and its keyed form. */
#include "kinmedia.h"

#include <string.h>

#define ROTR(x, n) ((x) >> (n) | (x) << (32 - (n)))

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (ROTR(a, 7) ^ ROTR(a, 18) ^ a >> 3) + w[i - 7] +
               (ROTR(b, 17) ^ ROTR(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] + (ROTR(e, 6) ^ ROTR(e, 11) ^ ROTR(e, 25)) +
                      ((e & s[5]) ^ (~e & s[6])) + ROUND[i] + w[i];
        uint32_t t2 = (ROTR(a, 2) ^ ROTR(a, 13) ^ ROTR(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; j--)
            s[j] = s[j - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_start(struct sha256 *hash)
{
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, START, sizeof START);
    hash->length = 0;
    hash->used = 0;
}

void sha256_update(struct sha256 *hash, const uint8_t *data, size_t length)
{
    hash->length += length;
    if (hash->used > 0) {
        size_t fits = 64 - hash->used;
        if (fits > length)
            fits = length;
        memcpy(hash->block + hash->used, data, fits);
        hash->used += (uint32_t)fits;
        data += fits;
        length -= fits;
        if (hash->used < 64)
            return;
        sha256_block(hash->state, hash->block);
        hash->used = 0;
    }
    while (length >= 64) {
        sha256_block(hash->state, data);
        data += 64;
        length -= 64;
    }
    if (length > 0) {
        memcpy(hash->block, data, length);
        hash->used = (uint32_t)length;
    }
}

void sha256_finish(struct sha256 *hash, uint8_t digest[32])
{
    uint64_t bits = hash->length * 8;
    hash->block[hash->used++] = 0x80;
    if (hash->used > 56) {
        memset(hash->block + hash->used, 0, 64 - hash->used);
        sha256_block(hash->state, hash->block);
        hash->used = 0;
    }
    memset(hash->block + hash->used, 0, 56 - hash->used);
    for (int i = 0; i < 8; i++)
        hash->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_block(hash->state, hash->block);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

int hmac_sha256(const uint8_t *key, size_t key_length, const uint8_t *data, size_t length,
                uint8_t digest[32])
{
    struct sha256 hash;
    uint8_t pad[64] = {0}, inner[32];
    if (!key || !digest || (!data && length > 0))
        return -1;
    if (key_length > 64) {
        sha256_start(&hash);
        sha256_update(&hash, key, key_length);
        sha256_finish(&hash, pad);
    } else {
        memcpy(pad, key, key_length);
    }
    for (int i = 0; i < 64; i++)
        pad[i] ^= 0x36;
    sha256_start(&hash);
    sha256_update(&hash, pad, sizeof pad);
    sha256_update(&hash, data, length);
    sha256_finish(&hash, inner);
    for (int i = 0; i < 64; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_start(&hash);
    sha256_update(&hash, pad, sizeof pad);
    sha256_update(&hash, inner, sizeof inner);
    sha256_finish(&hash, digest);
    return 0;
}
