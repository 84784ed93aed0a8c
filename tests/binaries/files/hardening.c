/* Functions that compilers harden: a local array, a switch with a jump table, a large frame. */

extern void fill(char *, int);
extern int out(int);

int sum(int n)
{
    char buffer[64];
    int total = 0, i = 0;
    fill(buffer, n);
    do
        total += buffer[i] * (buffer[i] > 3 ? out(i) : 2);
    while (++i < n);
    return total;
}

int pick(int x, int y)
{
    switch (x) {
    case 0: out(y + 3); break;
    case 1: out(y * 5); break;
    case 2: out(y - 7); break;
    case 3: out(y ^ 9); break;
    case 4: out(y | 11); break;
    case 5: out(y & 13); break;
    case 6: out(y << 2); break;
    case 7: out(~y); break;
    default: out(-1);
    }
    return out(y) + 1;
}

int large(int n)
{
    char buffer[20000];
    fill(buffer, n);
    return buffer[n];
}
