/* Functions to look at. shapes.o was made by
 *   gcc-12 -O1 -fcf-protection=none -fno-asynchronous-unwind-tables -c shapes.c -o shapes.o
 */
int find(const int *rows, const int *sizes, int count, int wanted) {
  for (int row = 0; row < count; row++) {
    int low = 0, high = sizes[row];
    while (low < high) {
      int middle = low + (high - low) / 2;
      if (rows[middle] == wanted) return middle;
      if (rows[middle] < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    rows += sizes[row];
  }
  return -1;
}

int grade(int mark, int bonus) {
  switch (mark) {
    case 0: return bonus;
    case 1: return bonus * 3;
    case 2: return bonus - 7;
    case 3: return bonus ^ 5;
    case 4: return bonus << 2;
    case 5: return bonus / 3;
    default: return -1;
  }
}

__attribute__((noinline)) static int twice(int x) { return x ? x + x : 1; }

int apply(int x) { return twice(x) + 3; }
