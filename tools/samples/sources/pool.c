/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: first fit over a list of pieces, neighbours joined when both are free. */
#include "gateway.h"

#define POOL 8192
#define TAKEN 0x54414b45u
#define FREE 0x46524545u

struct piece {
    uint32_t mark;
    uint32_t size;
};

static _Alignas(16) uint8_t pool[POOL];

static struct piece *next_piece(struct piece *piece)
{
    uint8_t *after = (uint8_t *)(piece + 1) + piece->size;
    return after < pool + POOL ? (struct piece *)(void *)after : NULL;
}

void pool_start(void)
{
    struct piece *first = (struct piece *)(void *)pool;
    first->mark = FREE;
    first->size = POOL - sizeof *first;
}

void *pool_take(size_t size)
{
    struct piece *piece = (struct piece *)(void *)pool;
    if (size == 0 || size > POOL)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    for (; piece; piece = next_piece(piece)) {
        if (piece->mark != FREE || piece->size < size)
            continue;
        if (piece->size >= size + sizeof *piece + 16) {
            uint32_t rest = piece->size - (uint32_t)(size + sizeof *piece);
            piece->size = (uint32_t)size;
            struct piece *split = next_piece(piece);
            split->mark = FREE;
            split->size = rest;
        }
        piece->mark = TAKEN;
        return piece + 1;
    }
    return NULL;
}

int pool_give(void *memory)
{
    struct piece *piece = (struct piece *)(void *)pool, *before = NULL;
    for (; piece; before = piece, piece = next_piece(piece)) {
        if ((void *)(piece + 1) != memory)
            continue;
        if (piece->mark != TAKEN)
            return -1;
        piece->mark = FREE;
        struct piece *after = next_piece(piece);
        if (after && after->mark == FREE)
            piece->size += after->size + (uint32_t)sizeof *after;
        if (before && before->mark == FREE)
            before->size += piece->size + (uint32_t)sizeof *piece;
        return 0;
    }
    return -1;
}

size_t pool_largest(void)
{
    size_t largest = 0;
    struct piece *piece = (struct piece *)(void *)pool;
    for (; piece; piece = next_piece(piece)) {
        if (piece->mark == FREE && piece->size > largest)
            largest = piece->size;
        else if (piece->mark != FREE && piece->mark != TAKEN)
            return 0;
    }
    return largest;
}
