/* SPDX-License-Identifier: Apache-2.0 */
/* The device side of Modbus over a serial line. */
#include "kinproto.h"

#define REGISTERS 32

static uint16_t frame_crc(const uint8_t *data, size_t length)
{
    uint16_t crc = 0xffff;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (uint16_t)(crc >> 1 ^ 0xa001) : (uint16_t)(crc >> 1);
    }
    return crc;
}

static unsigned word(const uint8_t *data)
{
    return (unsigned)data[0] << 8 | data[1];
}

/* The length of the reply, 0 when the frame is not for this device, -1 when it is damaged. */
int modbus_answer(struct modbus_device *device, const uint8_t *frame, size_t length,
                  uint8_t *reply, size_t room)
{
    size_t used = 2;
    uint8_t exception = 0;
    if (length < 8 || room < 5 + 2 * REGISTERS)
        return -1;
    uint16_t crc = frame_crc(frame, length - 2);
    if (frame[length - 2] != (crc & 0xff) || frame[length - 1] != crc >> 8)
        return -1;
    if (frame[0] != device->unit)
        return 0;
    unsigned start = word(frame + 2), count = word(frame + 4);
    reply[0] = frame[0];
    reply[1] = frame[1];
    switch (frame[1]) {
    case 1:
        if (start >= 16 || count == 0 || count > 16 - start) {
            exception = 2;
            break;
        }
        reply[used++] = (uint8_t)((count + 7) / 8);
        for (unsigned i = 0; i < count; i += 8) {
            unsigned bits = (unsigned)device->coils >> (start + i) & 0xff;
            if (count - i < 8)
                bits &= (1u << (count - i)) - 1;
            reply[used++] = (uint8_t)bits;
        }
        break;
    case 3:
        if (start >= REGISTERS || count == 0 || count > REGISTERS - start) {
            exception = 2;
            break;
        }
        reply[used++] = (uint8_t)(2 * count);
        for (unsigned i = 0; i < count; i++) {
            reply[used++] = (uint8_t)(device->registers[start + i] >> 8);
            reply[used++] = (uint8_t)device->registers[start + i];
        }
        break;
    case 5:
        if (start >= 16)
            exception = 2;
        else if (count == 0xff00)
            device->coils |= (uint16_t)(1u << start);
        else if (count == 0)
            device->coils &= (uint16_t)~(1u << start);
        else
            exception = 3;
        while (!exception && used < 6) {
            reply[used] = frame[used];
            used++;
        }
        break;
    case 6:
        if (start >= REGISTERS) {
            exception = 2;
            break;
        }
        device->registers[start] = (uint16_t)count;
        while (used < 6) {
            reply[used] = frame[used];
            used++;
        }
        break;
    default:
        exception = 1;
        break;
    }
    if (exception) {
        reply[1] |= 0x80;
        reply[2] = exception;
        used = 3;
    }
    crc = frame_crc(reply, used);
    reply[used++] = (uint8_t)crc;
    reply[used++] = (uint8_t)(crc >> 8);
    return (int)used;
}
