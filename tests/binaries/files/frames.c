/* Frames of one slot, which clang makes by "push rax", but not where it probes the stack. */
int out(char *p, int n);

int one_slot(int n) { return out(0, n) + 1; }

int behind_pushes(char *p, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += out(p + i, i);
  return sum;
}

/* The frame is made behind the test. */
int late(char *p, int n) {
  if (!p)
    return n;
  return out(p, n) ^ out(p, n + 1);
}

int two_pages(int n) {
  char buffer[9000];
  out(buffer, n);
  return buffer[n];
}
