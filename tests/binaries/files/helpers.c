/* What shapes.c calls, for the samples that are linked without a shared library. */

int answers[8] = {5, 0, 0x3456789a, 7, -3, 11, 2, 1};
int asked;

void out(int x) {
  answers[0] = x;
}

int ask(int x) {
  return answers[(x + asked++) & 7];
}

void abort(void) {
  for (;;) {
  }
}
