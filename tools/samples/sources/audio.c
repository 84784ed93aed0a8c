/* SPDX-License-Identifier: Apache-2.0 */
/* Sound: headers, companding, prediction. */
#include "kinmedia.h"

#include <string.h>

static uint32_t little(const uint8_t *data, int bytes)
{
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | data[bytes];
    return value;
}

int wav_parse(const uint8_t *data, size_t length, struct wav_format *format)
{
    int has_format = 0;
    size_t at = 12;
    if (length < 12 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WAVE", 4) != 0)
        return -1;
    while (length - at >= 8) {
        size_t size = little(data + at + 4, 4);
        const uint8_t *body = data + at + 8;
        at += 8;
        if (size > length - at)
            return -1;
        if (memcmp(body - 8, "fmt ", 4) == 0) {
            if (size < 16 || little(body, 2) != 1)
                return -1;
            format->channels = little(body + 2, 2);
            format->rate = little(body + 4, 4);
            format->bits = little(body + 14, 2);
            if (format->channels == 0 || (format->bits != 8 && format->bits != 16))
                return -1;
            has_format = 1;
        } else if (memcmp(body - 8, "data", 4) == 0) {
            if (!has_format)
                return -1;
            format->data_offset = (uint32_t)at;
            format->data_length = (uint32_t)size;
            return 0;
        }
        at += size + (size & 1);
        if (at > length)
            return -1;
    }
    return -1;
}

uint8_t mulaw_encode(int16_t sample)
{
    int value = sample, sign = 0, segment = 7;
    if (value < 0) {
        value = -value;
        sign = 0x80;
    }
    if (value > 32635)
        value = 32635;
    value += 0x84;
    for (int mask = 0x4000; !(value & mask) && segment > 0; mask >>= 1)
        segment--;
    int mantissa = value >> (segment + 3) & 15;
    return (uint8_t)~(sign | segment << 4 | mantissa);
}

int16_t mulaw_decode(uint8_t code)
{
    code = (uint8_t)~code;
    int value = (((code & 15) << 3) + 0x84) << (code >> 4 & 7);
    value -= 0x84;
    return (int16_t)(code & 0x80 ? -value : value);
}

/* Four bits a sample; steps grow and shrink as in the scheme of IMA. */
int adpcm_decode(const uint8_t *data, size_t length, int16_t *out, size_t room)
{
    static const int8_t ADJUST[8] = {-1, -1, -1, -1, 2, 4, 6, 8};
    int predicted, index, step;
    size_t used = 0;
    if (length < 4 || data[2] > 88)
        return -1;
    predicted = (int16_t)little(data, 2);
    index = data[2];
    for (size_t at = 4; at < length; at++) {
        for (int half = 0; half < 2; half++) {
            int code = half ? data[at] >> 4 : data[at] & 15;
            step = 7;
            for (int i = 0; i < index; i++)
                step += step / 10 + 1;
            int difference = step >> 3;
            if (code & 1)
                difference += step >> 2;
            if (code & 2)
                difference += step >> 1;
            if (code & 4)
                difference += step;
            predicted += code & 8 ? -difference : difference;
            if (predicted > 32767)
                predicted = 32767;
            else if (predicted < -32768)
                predicted = -32768;
            index += ADJUST[code & 7];
            if (index < 0)
                index = 0;
            else if (index > 88)
                index = 88;
            if (used >= room)
                return -1;
            out[used++] = (int16_t)predicted;
        }
    }
    return (int)used;
}

void mix_samples(int16_t *into, const int16_t *from, size_t count, int gain)
{
    for (size_t i = 0; i < count; i++) {
        int value = into[i] + from[i] * gain / 256;
        if (value > 32767)
            value = 32767;
        else if (value < -32768)
            value = -32768;
        into[i] = (int16_t)value;
    }
}
