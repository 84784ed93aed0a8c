/* What the readers of evidence are tested on: functions that say something, each something else. */

#ifdef _WIN32
#define IMPORTED __attribute__((dllimport))
#define API __declspec(dllexport)
#else
#define IMPORTED
#define API __attribute__((visibility("default")))
#endif

struct record { char head[40]; int length; int kind; };

IMPORTED int puts(const char *);
IMPORTED void *malloc(__SIZE_TYPE__);

static const unsigned short primes[16] = {
  0x1235, 0x2347, 0x3459, 0x456b, 0x567d, 0x678f, 0x79a1, 0x8ab3,
  3, 5, 7, 11, 13, 17, 19, 23};

static __attribute__((noinline)) int inner(int x) { return x * x ^ 0x5bd1e995; }

/* A string and an import. */
API int speaks(int x) {
  if (x > 3)
    puts("the quick brown fox");
  return x;
}

/* Constants: one that fits nowhere, a mask, a comparison. */
API unsigned counts(unsigned x) {
  x ^= 0xdeadbeefu;
  if (x > 1000)
    x &= 0x00ff00f0u;
  return x | 0x4000;
}

/* A table of constants. */
API int looks(unsigned x) { return primes[x & 15] + inner((int)x); }

/* A constant of floating point. */
API double scales(double x) { return x * 3.25 + 0.1234567; }

/* Fields. */
API int fields(struct record *r) {
  r->kind = 77;
  return r->length;
}

/* Imports, and a function of its own. */
API void *makes(int x) { return malloc((unsigned)inner(x) & 0xfffu); }
