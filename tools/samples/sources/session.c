/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of a secure channel share. */
#include "kinbeat.h"

#include <string.h>

/* Padding need not be unpredictable, only cheap. */
void session_random(struct beat_session *session, uint8_t *out, size_t count)
{
    uint32_t x = session->random ? session->random : 2463534242u;
    while (count-- > 0) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        *out++ = (uint8_t)(x >> 11);
    }
    session->random = x;
}

uint32_t session_check(const uint8_t *data, size_t length)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < length; i++) {
        low = (low + data[i]) % 65521u;
        high = (high + low) % 65521u;
    }
    return high << 16 | low;
}

/* Takes as long for a wrong first byte as for a wrong last one. */
int session_same(const uint8_t *a, const uint8_t *b, size_t length)
{
    uint8_t difference = 0;
    for (size_t i = 0; i < length; i++)
        difference |= (uint8_t)(a[i] ^ b[i]);
    return difference == 0;
}

/* Counts an event, and closes the session when there were too many. */
int session_alert(struct beat_session *session, uint32_t *counter, uint32_t most)
{
    if (*counter < UINT32_MAX)
        ++*counter;
    if (*counter <= most)
        return 0;
    session->state = BEAT_CLOSED;
    session->waiting = 0;
    memset(session->nonce, 0, sizeof session->nonce);
    return -1;
}

int send_heartbeat(struct beat_session *session, uint8_t *record, size_t room)
{
    size_t declared = 2 + BEAT_NONCE, total = BEAT_HEADER + declared + BEAT_PADDING;
    if (!session || session->state != BEAT_OPEN || room < total)
        return -1;
    if (session->waiting)
        return 0;
    session_random(session, session->nonce, BEAT_NONCE);
    record[0] = BEAT_REQUEST;
    record[1] = (uint8_t)(declared >> 8);
    record[2] = (uint8_t)declared;
    record[3] = (uint8_t)(session->sequence >> 8);
    record[4] = (uint8_t)session->sequence;
    memcpy(record + 5, session->nonce, BEAT_NONCE);
    session_random(session, record + BEAT_HEADER + declared, BEAT_PADDING);
    session->waiting = 1;
    return (int)total;
}
