/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keep-alive records: one byte of type, two bytes of payload length, the payload, and at least
 * 16 bytes of padding.
 *
 * process_heartbeat has a deliberate error, in the spirit of Heartbleed: it believes the payload
 * length that the record declares, and so copies memory behind a short record into the reply.
 * With KIN_FIXED the length is checked first. The code is made up for this sample.
 */
#include "kinbeat.h"

#include <string.h>

#define MOST_ANSWERS 1000
#define MOST_MALFORMED 8
#define MOST_UNEXPECTED 4

int process_heartbeat(struct beat_session *session, const uint8_t *record, size_t length,
                      uint8_t *reply, size_t room)
{
    if (!session || !record || !reply)
        return -1;
    if (session->state == BEAT_CLOSED)
        return -1;
    if (length < BEAT_HEADER)
        return session_alert(session, &session->malformed, MOST_MALFORMED);
    size_t declared = (size_t)record[1] << 8 | record[2];
    size_t total = BEAT_HEADER + declared + BEAT_PADDING;
    const uint8_t *payload = record + BEAT_HEADER;
#ifdef KIN_FIXED
    if (total > length)
        return session_alert(session, &session->malformed, MOST_MALFORMED);
#endif
    switch (record[0]) {
    case BEAT_REQUEST:
        if (session->state == BEAT_CLOSING || session->answered >= MOST_ANSWERS)
            return 0;
        if (total > room)
            return -2;
        reply[0] = BEAT_RESPONSE;
        reply[1] = (uint8_t)(declared >> 8);
        reply[2] = (uint8_t)declared;
        memcpy(reply + BEAT_HEADER, payload, declared);
        session_random(session, reply + BEAT_HEADER + declared, BEAT_PADDING);
        session->last_check = session_check(reply, total);
        session->answered++;
        return (int)total;
    case BEAT_RESPONSE:
        if (!session->waiting)
            return session_alert(session, &session->unexpected, MOST_UNEXPECTED);
        if (declared != 2 + BEAT_NONCE)
            return session_alert(session, &session->malformed, MOST_MALFORMED);
        if (((uint32_t)payload[0] << 8 | payload[1]) != (session->sequence & 0xffff))
            return session_alert(session, &session->unexpected, MOST_UNEXPECTED);
        if (!session_same(payload + 2, session->nonce, BEAT_NONCE)) {
            session->state = BEAT_CLOSED;
            return -1;
        }
        session->waiting = 0;
        session->sequence++;
        if (session->state == BEAT_CLOSING)
            session->state = BEAT_CLOSED;
        return 0;
    case BEAT_GOODBYE:
        if (session->waiting)
            session->state = BEAT_CLOSING;
        else
            session->state = BEAT_CLOSED;
        return 0;
    default:
        return session_alert(session, &session->malformed, MOST_MALFORMED);
    }
}
