/* What the readers of PE and Mach-O are tested on. Its control flow is known from this text. */

#ifdef _WIN32
__attribute__((dllimport, noreturn)) void __stdcall ExitProcess(unsigned);
#define LEAVE(code) ExitProcess(code)
#define API __declspec(dllexport)
#else
__attribute__((noreturn)) void exit(int);
#define LEAVE(code) exit(code)
#define API __attribute__((visibility("default")))
#endif
#define APART __attribute__((noinline))

volatile int seen;

/* A leaf that touches no stack: on Windows it has no unwind data. */
APART API void out(int value) { seen += value; }

/* A diamond. */
API int choose(int x) {
  if (x > 3)
    out(1);
  else
    out(2);
  return seen;
}

/* A loop, around a diamond without else. */
API int count(const int *items, int n) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    out(items[i]);
    if (items[i] > 10)
      out(-1);
    total += seen;
  }
  return total;
}

/* 12 cases with code of their own: a jump table. */
API int pick(int x, int y) {
  switch (x) {
  case 0: out(7 + y * 3); break;
  case 1: out(8 + y * 4); break;
  case 2: out(11 ^ y * 5); break;
  case 3: out(16 + y * 6); break;
  case 4: out(23 ^ y * 7); break;
  case 5: out(32 + y * 8); break;
  case 6: out(43 ^ y * 9); break;
  case 7: out(56 + y * 10); break;
  case 8: out(71 ^ y * 11); break;
  case 9: out(88 + y * 12); break;
  case 10: out(107 ^ y * 13); break;
  case 11: out(128 + y * 14); break;
  default: out(-1); return y;
  }
  return y + 1;
}

/* The call that leaves ends its block: nothing follows it. */
API int checked(int x) {
  if (x < 0) {
    out(x);
    LEAVE(3);
  }
  out(1);
  return x * seen;
}

/* Only reached through a pointer. */
static int hidden(int x) { return x ? choose(x) : seen; }
int (*const handlers[])(int) = {choose, hidden, checked};
API int dispatch(int at, int x) { return handlers[at & 1](x) + 1; }

#ifdef _WIN32
int __stdcall DllMain(void *module, unsigned reason, void *reserved) { return 1; }
#endif
