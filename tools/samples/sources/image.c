/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels, and the headers of picture files. */
#include "kinmedia.h"

#include <string.h>

static uint32_t big32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static uint8_t paeth(int left, int up, int corner)
{
    int guess = left + up - corner;
    int by_left = guess > left ? guess - left : left - guess;
    int by_up = guess > up ? guess - up : up - guess;
    int by_corner = guess > corner ? guess - corner : corner - guess;
    if (by_left <= by_up && by_left <= by_corner)
        return (uint8_t)left;
    return (uint8_t)(by_up <= by_corner ? up : corner);
}

static uint8_t clamp_byte(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Undoes the filters of PNG in place; each row is one byte of filter and then its pixels. */
int png_unfilter(uint8_t *rows, size_t width_bytes, size_t height, size_t pixel_bytes)
{
    const uint8_t *above = NULL;
    for (size_t y = 0; y < height; y++) {
        uint8_t filter = rows[0], *row = rows + 1;
        for (size_t x = 0; x < width_bytes; x++) {
            uint8_t left = x >= pixel_bytes ? row[x - pixel_bytes] : 0;
            uint8_t up = above ? above[x] : 0;
            uint8_t corner = above && x >= pixel_bytes ? above[x - pixel_bytes] : 0;
            switch (filter) {
            case 0:
                break;
            case 1:
                row[x] = (uint8_t)(row[x] + left);
                break;
            case 2:
                row[x] = (uint8_t)(row[x] + up);
                break;
            case 3:
                row[x] = (uint8_t)(row[x] + (left + up) / 2);
                break;
            case 4:
                row[x] = (uint8_t)(row[x] + paeth(left, up, corner));
                break;
            default:
                return -1;
            }
        }
        above = row;
        rows += width_bytes + 1;
    }
    return 0;
}

int png_size(const uint8_t *data, size_t length, uint32_t *width, uint32_t *height)
{
    static const uint8_t MAGIC[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (length < 33 || memcmp(data, MAGIC, sizeof MAGIC) != 0)
        return -1;
    if (big32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return -1;
    if (crc32_update(0, data + 12, 17) != big32(data + 29))
        return -1;
    *width = big32(data + 16);
    *height = big32(data + 20);
    return *width == 0 || *height == 0 ? -1 : 0;
}

int jpeg_size(const uint8_t *data, size_t length, uint32_t *width, uint32_t *height)
{
    size_t at = 2;
    if (length < 4 || data[0] != 0xff || data[1] != 0xd8)
        return -1;
    while (at + 4 <= length) {
        if (data[at] != 0xff)
            return -1;
        uint8_t marker = data[at + 1];
        if (marker == 0xff) {
            at++;
            continue;
        }
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
            at += 2;
            continue;
        }
        size_t size = (size_t)data[at + 2] << 8 | data[at + 3];
        if (size < 2 || size > length - at - 2)
            return -1;
        int is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
                       marker != 0xcc;
        if (is_frame) {
            if (size < 7)
                return -1;
            *height = (uint32_t)data[at + 5] << 8 | data[at + 6];
            *width = (uint32_t)data[at + 7] << 8 | data[at + 8];
            return 0;
        }
        if (marker == 0xda || marker == 0xd9)
            return -1;
        at += size + 2;
    }
    return -1;
}

void yuv_to_rgb(const uint8_t *yuv, size_t pixels, uint8_t *rgb)
{
    for (size_t i = 0; i < pixels; i++) {
        int y = 298 * (yuv[3 * i] - 16), u = yuv[3 * i + 1] - 128, v = yuv[3 * i + 2] - 128;
        rgb[3 * i] = clamp_byte((y + 409 * v + 128) >> 8);
        rgb[3 * i + 1] = clamp_byte((y - 100 * u - 208 * v + 128) >> 8);
        rgb[3 * i + 2] = clamp_byte((y + 516 * u + 128) >> 8);
    }
}

/* Floyd and Steinberg: black and white, the error of each pixel passed on to its neighbours. */
void dither_rows(uint8_t *grey, int width, int height)
{
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            uint8_t *pixel = grey + y * width + x;
            int error = *pixel < 128 ? *pixel : *pixel - 255;
            *pixel = *pixel < 128 ? 0 : 255;
            if (x + 1 < width)
                pixel[1] = clamp_byte(pixel[1] + error * 7 / 16);
            if (y + 1 < height) {
                if (x > 0)
                    pixel[width - 1] = clamp_byte(pixel[width - 1] + error * 3 / 16);
                pixel[width] = clamp_byte(pixel[width] + error * 5 / 16);
                if (x + 1 < width)
                    pixel[width + 1] = clamp_byte(pixel[width + 1] + error / 16);
            }
        }
    }
}

int scale_nearest(const uint8_t *in, int width, int height, uint8_t *out, int to_width,
                  int to_height)
{
    if (width <= 0 || height <= 0 || to_width <= 0 || to_height <= 0)
        return -1;
    for (int y = 0; y < to_height; y++) {
        const uint8_t *row = in + (int64_t)y * height / to_height * width;
        for (int x = 0; x < to_width; x++)
            *out++ = row[(int64_t)x * width / to_width];
    }
    return 0;
}
