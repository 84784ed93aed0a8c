/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs and checksums. Functions that fill a buffer return its length, or -1. */
#ifndef KINMEDIA_H
#define KINMEDIA_H

#include <stddef.h>
#include <stdint.h>

/* base64.c */
int base64_encode(const uint8_t *data, size_t length, char *out, size_t room);
int base64_decode(const char *text, size_t length, uint8_t *out, size_t room);
int base32_decode(const char *text, size_t length, uint8_t *out, size_t room);
int hex_decode(const char *text, size_t length, uint8_t *out, size_t room);
int quoted_printable_decode(const char *text, size_t length, uint8_t *out, size_t room);

/* checksum.c */
uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t length);
uint16_t crc16_modbus(const uint8_t *data, size_t length);
uint32_t adler32_update(uint32_t adler, const uint8_t *data, size_t length);
uint32_t murmur3(const uint8_t *data, size_t length, uint32_t seed);
uint64_t siphash24(const uint8_t key[16], const uint8_t *data, size_t length);
int luhn_valid(const char *digits);

/* sha256.c */
struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
    uint32_t used;
};
void sha256_start(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const uint8_t *data, size_t length);
void sha256_finish(struct sha256 *hash, uint8_t digest[32]);
int hmac_sha256(const uint8_t *key, size_t key_length, const uint8_t *data, size_t length,
                uint8_t digest[32]);

/* cipher.c */
void chacha20_xor(const uint8_t key[32], const uint8_t nonce[12], uint32_t counter,
                  uint8_t *data, size_t length);
void rc4_xor(const uint8_t *key, size_t key_length, uint8_t *data, size_t length);
void xtea_encrypt(const uint32_t key[4], uint32_t block[2]);
int pkcs7_unpad(const uint8_t *data, size_t length, size_t block);

/* lzw.c */
int lzw_decode(const uint8_t *data, size_t length, int minimum_bits, uint8_t *out, size_t room);
int gif_frame_count(const uint8_t *data, size_t length);

/* rle.c */
int packbits_encode(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int packbits_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int bmp_rle8_decode(const uint8_t *data, size_t length, int width, int height, uint8_t *out);

/* inflate.c */
int inflate_raw(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int zlib_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room);

/* lz.c */
int lz_compress(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int lz_expand(const uint8_t *data, size_t length, uint8_t *out, size_t room);

/* image.c */
int png_unfilter(uint8_t *rows, size_t width_bytes, size_t height, size_t pixel_bytes);
int png_size(const uint8_t *data, size_t length, uint32_t *width, uint32_t *height);
int jpeg_size(const uint8_t *data, size_t length, uint32_t *width, uint32_t *height);
void yuv_to_rgb(const uint8_t *yuv, size_t pixels, uint8_t *rgb);
void dither_rows(uint8_t *grey, int width, int height);
int scale_nearest(const uint8_t *in, int width, int height, uint8_t *out, int to_width,
                  int to_height);

/* audio.c */
struct wav_format {
    uint32_t rate;
    uint32_t channels;
    uint32_t bits;
    uint32_t data_offset;
    uint32_t data_length;
};
int wav_parse(const uint8_t *data, size_t length, struct wav_format *format);
uint8_t mulaw_encode(int16_t sample);
int16_t mulaw_decode(uint8_t code);
int adpcm_decode(const uint8_t *data, size_t length, int16_t *out, size_t room);
void mix_samples(int16_t *into, const int16_t *from, size_t count, int gain);

#endif
