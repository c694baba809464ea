/* An example for `guard check --program`: sums the words of a text, and writes each result. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SCRATCH (64 << 10)

__attribute__((noinline)) unsigned long parse(const char *text, size_t size)
{
	unsigned long sum = 0, word = 5381;

	for (size_t at = 0; at < size; at++) {
		word = word * 33 ^ (unsigned char)text[at];
		if (text[at] == ' ') {
			sum += word;
			word = 5381;
		}
	}
	return sum;
}

__attribute__((noinline)) char *scratch(void)
{
	char *memory = mmap(NULL, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory[0] = 1;
	return memory;
}

__attribute__((noinline)) void answer(int fd, unsigned long sum)
{
	char line[32];
	int size = snprintf(line, sizeof(line), "%lx\n", sum);

	if (write(fd, line, size) != size)
		exit(1);
}

int main(int argc, char **argv)
{
	int fd = open("/dev/null", O_WRONLY), operations = argc > 1 ? atoi(argv[1]) : 1;
	static char text[4096];

	for (size_t at = 0; at < sizeof(text); at++)
		text[at] = at % 7 == 6 ? ' ' : 'a' + at % 26;
	for (int i = 0; i < operations; i++) {
		char *memory = scratch();

		answer(fd, parse(text, sizeof(text)));
		munmap(memory, SCRATCH);
	}
	return 0;
}
