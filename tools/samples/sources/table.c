/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of strings with open addressing; its memory is the caller's, a power of two. */
#include "kinparse.h"

#include <string.h>

static const char TOMB[] = "";

static uint32_t hash_of(const char *key)
{
    uint32_t hash = 2166136261u;
    while (*key)
        hash = (hash ^ (uint8_t)*key++) * 16777619u;
    return hash;
}

static int find_slot(const struct table *table, const char *key, uint32_t hash)
{
    uint32_t slot = hash & (table->room - 1);
    for (uint32_t tries = 0; tries < table->room; tries++) {
        const struct table_entry *entry = table->entries + slot;
        if (!entry->key)
            return -1;
        if (entry->key != TOMB && entry->hash == hash && strcmp(entry->key, key) == 0)
            return (int)slot;
        slot = (slot + 1) & (table->room - 1);
    }
    return -1;
}

int table_put(struct table *table, const char *key, int32_t value)
{
    uint32_t hash = hash_of(key);
    int slot = find_slot(table, key, hash);
    if (slot >= 0) {
        table->entries[slot].value = value;
        return 0;
    }
    if (4 * (table->used + 1) > 3 * table->room)
        return -1;
    uint32_t at = hash & (table->room - 1);
    while (table->entries[at].key && table->entries[at].key != TOMB)
        at = (at + 1) & (table->room - 1);
    if (table->entries[at].key == TOMB)
        table->tombs--;
    table->entries[at] = (struct table_entry){key, hash, value};
    table->used++;
    return 1;
}

int table_get(const struct table *table, const char *key, int32_t *value)
{
    if (!table || table->room == 0 || table->used == 0)
        return -1;
    int slot = find_slot(table, key, hash_of(key));
    if (slot < 0)
        return -1;
    if (value)
        *value = table->entries[slot].value;
    return 0;
}

int table_remove(struct table *table, const char *key)
{
    int slot = find_slot(table, key, hash_of(key));
    if (slot < 0)
        return -1;
    table->entries[slot].key = TOMB;
    table->used--;
    table->tombs++;
    /* Graves before a free slot serve no search. */
    uint32_t mask = table->room - 1, at = (uint32_t)slot;
    if (!table->entries[(at + 1) & mask].key) {
        while (table->entries[at].key == TOMB) {
            table->entries[at].key = NULL;
            table->tombs--;
            at = (at - 1) & mask;
        }
    }
    return 0;
}
