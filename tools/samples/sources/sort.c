/* SPDX-License-Identifier: Apache-2.0 */
/* Order. */
#include "kinparse.h"

static void sift_down(int32_t *items, size_t root, size_t count, compare_items compare)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare(items[child], items[child + 1]) < 0)
            child++;
        if (compare(items[root], items[child]) >= 0)
            return;
        int32_t kept = items[root];
        items[root] = items[child];
        items[child] = kept;
        root = child;
    }
}

void heap_sort(int32_t *items, size_t count, compare_items compare)
{
    for (size_t root = count / 2; root-- > 0;)
        sift_down(items, root, count, compare);
    while (count > 1) {
        int32_t kept = items[0];
        items[0] = items[--count];
        items[count] = kept;
        sift_down(items, 0, count, compare);
    }
}

void quick_sort(int32_t *items, size_t count)
{
    while (count > 12) {
        int32_t a = items[0], b = items[count / 2], c = items[count - 1];
        int32_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        size_t low = 0, high = count - 1;
        for (;; low++, high--) {
            while (items[low] < pivot)
                low++;
            while (items[high] > pivot)
                high--;
            if (low >= high)
                break;
            int32_t kept = items[low];
            items[low] = items[high];
            items[high] = kept;
        }
        if (high + 1 < count - high - 1) {
            quick_sort(items, high + 1);
            items += high + 1;
            count -= high + 1;
        } else {
            quick_sort(items + high + 1, count - high - 1);
            count = high + 1;
        }
    }
    for (size_t i = 1; i < count; i++) {
        int32_t item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1] > item; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

size_t unique_sorted(int32_t *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && items[kept - 1] == items[i])
            continue;
        items[kept++] = items[i];
    }
    return kept;
}

/* Where an item is, or -1 minus where it would stand. */
int binary_search(const int32_t *items, size_t count, int32_t wanted)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle] == wanted)
            return (int)middle;
        if (items[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return -1 - (int)low;
}
