/* Four functions in a program that says nothing of where they start. */
static volatile int seen;

__attribute__((noinline)) static int out(int value) {
  seen += value;
  return seen;
}

__attribute__((noinline)) static int pick(int x, int y) {
  for (int i = 0; i < x; i++) {
    if (y & i) out(i);
    else out(y);
  }
  return y + 1;
}

__attribute__((noinline)) static int twice(int a) { return pick(a, 2) * pick(2, a); }

void _start(void) {
  int code = seen > 2 ? pick(seen, 3) : twice(seen);
  __asm__ volatile("syscall" : : "a"(60), "D"(code));
  __builtin_unreachable();
}
