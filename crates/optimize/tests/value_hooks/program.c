/* Indirect calls, common divisors and sizes, powers of two, small quotients, and a site with more
 * values than are told apart. */
#include <string.h>

static int up(int x) { return x + 1; }
static int down(int x) { return x - 1; }
int other(int x) { return x ^ 5; }
int (*step[3])(int) = { up, down, other };
char from[4096], to[4096];
volatile int sink;

static int work(int n, unsigned by, int sizes)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum = step[i % 7 == 0 ? 0 : i % 5 == 0 ? 1 : 2](sum);
		if (i % 7 == 0)
			sum /= (int)by;
		sum %= by + 7;
		memcpy(to + (i & 3), from, i % sizes);
		if (i % 11 == 0)
			sum += i % (by << (i % 3));
	}
	return sum;
}

int program(void)
{
	sink = work(1000, 3, 5);
	sink = work(1000, 4, 100);
	return 0;
}
