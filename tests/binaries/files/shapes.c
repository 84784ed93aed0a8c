/* Switches of many shapes, loops, tail calls and calls that never return.
 *
 * Each case calls out() with an argument of its own, so that no compiler can turn a switch into
 * arithmetic or a table of values. Compiled by build.py, which says what is expected of it. */

extern void out(int);
extern int ask(int);
extern void abort(void);

#define CASE(n) case n: out((n) * (n) + 7 + y * ((n) + 3)); break;
#define CASES4(n) CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3)
#define CASES12(n) CASES4(n) CASES4(n + 4) CASES4(n + 8)

int dense(int x, int y) {
  switch (x) { CASES12(0) default: out(-1); return y; }
  return y + 1;
}

int shifted(int x, int y) {
  switch (x) { CASES4(5) CASES4(9) CASE(13) CASE(14) }
  return y + 1;
}

/* The table has 15 entries: 9 cases, and the default for the rest. */
int holes(int x, int y) {
  switch (x) {
    CASE(0) CASE(1) CASE(2) CASE(5) CASE(6) CASE(9) CASE(10) CASE(11) CASE(14)
    default: out(-3 * y);
  }
  return y;
}

/* Long enough that the offsets of a table need more than one byte. */
int wide(int x, int y) {
  switch (x) { CASES12(0) CASES12(12) CASES12(24) CASES12(36) CASES12(48) }
  return y;
}

int twice(int x, int y) {
  switch (x) { CASES4(0) CASE(4) CASE(5) CASE(6) }
  out(100);
  switch (y) {
#define TIMES(n) case n: out(n + x * y * (n + 1)); break;
    TIMES(0) TIMES(1) TIMES(2) TIMES(3) TIMES(4) TIMES(5) TIMES(6) TIMES(7) TIMES(8)
  }
  return x;
}

int machine(const unsigned char *code, int y) {
  for (;;) {
    switch (*code++) {
      CASES4(0) CASES4(4)
      case 8: y += ask(y); break;
      case 9: code += *code; break;
      case 10: return y;
      default: abort();
    }
  }
}

/* Nothing but the mask keeps the index inside the table. */
int masked(int x, int y) {
  switch (x & 7) { CASES4(0) CASES4(4) }
  return y;
}

int nested(int x, int y) {
  switch (x) {
    CASES4(0) CASE(4)
    case 5:
      switch (y) {
#define INNER(n) case n: out(n - x * 5 + ask(n)); break;
        INNER(0) INNER(1) INNER(2) INNER(3) INNER(4) INNER(5)
      }
      out(x);
      break;
    case 6: out(y * 3); return 9;
  }
  return y;
}

int longest(unsigned long long x, int y) {
  switch (x) { CASES4(0) CASES4(4) CASE(8) }
  return y;
}

int jumps(const unsigned char *p, int x) {
  static const void *const at[] = {&&add, &&sub, &&mul, &&done};
  goto *at[*p & 3];
add:
  x += ask(3);
  p++;
  goto *at[*p & 3];
sub:
  x -= ask(5);
  p++;
  goto *at[*p & 3];
mul:
  x *= x;
  p++;
  goto *at[*p & 3];
done:
  return x;
}

/* Constants that go into literal pools on some machines. */
double pool(int x, double y) {
  if (x == 0x12345678) out(0x23456789);
  for (int n = 0; n < x; n++) {
    if (ask(n) == 0x3456789a) return y * 3.14159265358979;
    y = y * 2.718281828459045 + 0.57721566490153286;
  }
  return y + 1.4142135623730951;
}

int tail(int x) {
  return x ? ask(x + 1) : 7;
}

int loops(int n, int *p) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    for (int j = i; j < n; j++) {
      if (p[j] < 0) continue;
      if (p[j] == 77) return ask(i);
      sum += p[j] * ask(j);
    }
  }
  return sum;
}

void checked(int x) {
  if (x == 3) abort();
  out(x);
}

void stop(void) {
  out(1);
  abort();
}

int behind(int x) {
  return ask(x) + 1;
}
