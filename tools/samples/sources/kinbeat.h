/* SPDX-License-Identifier: Apache-2.0 */
/* Keep-alive records of a made-up secure channel. */
#ifndef KINBEAT_H
#define KINBEAT_H

#include <stddef.h>
#include <stdint.h>

enum beat_state { BEAT_CLOSED = 0, BEAT_OPEN = 1, BEAT_CLOSING = 2 };
enum beat_type { BEAT_REQUEST = 1, BEAT_RESPONSE = 2, BEAT_GOODBYE = 3 };
enum { BEAT_HEADER = 3, BEAT_PADDING = 16, BEAT_NONCE = 16 };

struct beat_session {
    uint32_t state;
    uint32_t waiting;
    uint32_t sequence;
    uint32_t malformed;
    uint32_t unexpected;
    uint32_t answered;
    uint32_t random;
    uint32_t last_check;
    uint8_t nonce[BEAT_NONCE];
};

/* heartbeat.c */
int process_heartbeat(struct beat_session *session, const uint8_t *record, size_t length,
                      uint8_t *reply, size_t room);

/* session.c */
int send_heartbeat(struct beat_session *session, uint8_t *record, size_t room);
void session_random(struct beat_session *session, uint8_t *out, size_t count);
uint32_t session_check(const uint8_t *data, size_t length);
int session_same(const uint8_t *a, const uint8_t *b, size_t length);
int session_alert(struct beat_session *session, uint32_t *counter, uint32_t most);

#endif
