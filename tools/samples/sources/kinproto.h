/* SPDX-License-Identifier: Apache-2.0 */
/* Protocols of the network and of field buses. Functions that fill a buffer return its length. */
#ifndef KINPROTO_H
#define KINPROTO_H

#include <stddef.h>
#include <stdint.h>

/* dns.c */
struct dns_record {
    uint32_t type;
    uint32_t ttl;
    uint32_t data_offset;
    uint32_t data_length;
};
int dns_expand_name(const uint8_t *message, size_t length, size_t at, char *out, size_t room);
int dns_skip_name(const uint8_t *message, size_t length, size_t at);
int dns_encode_name(const char *name, uint8_t *out, size_t room);
int dns_find_answer(const uint8_t *message, size_t length, uint16_t type,
                    struct dns_record *record);

/* der.c */
struct der_item {
    uint32_t tag;
    uint32_t constructed;
    uint32_t value;
    uint32_t length;
};
int der_read(const uint8_t *data, size_t length, size_t at, struct der_item *item);
int der_integer(const uint8_t *data, const struct der_item *item, int64_t *result);
int der_oid_text(const uint8_t *data, size_t length, char *out, size_t room);
int der_depth(const uint8_t *data, size_t length, int most);

/* tlv.c */
int tlv_find(const uint8_t *data, size_t length, uint8_t type, const uint8_t **value);
struct dhcp_lease {
    uint32_t address;
    uint32_t mask;
    uint32_t router;
    uint32_t seconds;
    uint32_t kind;
    char host[32];
};
int dhcp_parse_options(const uint8_t *data, size_t length, struct dhcp_lease *lease);

/* http.c */
struct http_request {
    char method[8];
    char target[128];
    int32_t minor;
};
int http_parse_request(const char *text, size_t length, struct http_request *request);
int http_find_header(const char *text, size_t length, const char *name, char *out, size_t room);
int http_decode_chunked(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int http_parse_range(const char *value, uint32_t size, uint32_t *first, uint32_t *last);

/* url.c */
struct url {
    char scheme[8];
    char host[64];
    char path[128];
    uint32_t port;
};
int url_parse(const char *text, struct url *url);
int url_decode(const char *text, size_t length, char *out, size_t room);
int query_value(const char *query, const char *name, char *out, size_t room);
int normalize_path(char *path);

/* address.c */
int parse_ipv4(const char *text, uint32_t *address);
int parse_ipv6(const char *text, uint8_t address[16]);
int format_ipv6(const uint8_t address[16], char *out, size_t room);
int parse_mac(const char *text, uint8_t mac[6]);
int cidr_contains(const char *cidr, uint32_t address);
uint16_t internet_checksum(const uint8_t *data, size_t length);

/* mqtt.c */
int mqtt_remaining_length(const uint8_t *data, size_t length, uint32_t *remaining);
int mqtt_topic_matches(const char *filter, const char *topic);
int mqtt_parse_publish(const uint8_t *data, size_t length, char *topic, size_t room,
                       const uint8_t **payload);
int mqtt_check_connect(const uint8_t *data, size_t length);

/* tls.c */
int tls_server_name(const uint8_t *record, size_t length, char *out, size_t room);
int tls_split_records(const uint8_t *data, size_t length, uint32_t *offsets, int most);

/* framing.c */
int slip_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int cobs_encode(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int cobs_decode(const uint8_t *data, size_t length, uint8_t *out, size_t room);
int nmea_parse(const char *line, int *degrees_1e6, int *valid);

/* modbus.c */
struct modbus_device {
    uint8_t unit;
    uint16_t coils;
    uint16_t registers[32];
};
int modbus_answer(struct modbus_device *device, const uint8_t *frame, size_t length,
                  uint8_t *reply, size_t room);

#endif
