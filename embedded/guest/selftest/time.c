/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Clocks, and what has no place elsewhere.
 */
#include "selftest.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

static void clocks(void)
{
	struct timespec before, asleep = { 0, 5000000 }, after, raw;

	MUST(clock_gettime(CLOCK_MONOTONIC, &before) == 0 && nanosleep(&asleep, NULL) == 0);
	MUST(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
	MUST((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >= 5000000);
	/* The vDSO and the system call tell the same time. */
	MUST(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &raw) == 0);
	MUST((raw.tv_sec - after.tv_sec) * 1000000000L + raw.tv_nsec - after.tv_nsec >= 0);
	MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after) == 0 && clock_gettime(CLOCK_BOOTTIME, &raw) == 0);
}

static void randomness(void)
{
	unsigned char a[64], b[64];

	MUST(getrandom(a, sizeof(a), 0) == sizeof(a) && getrandom(b, sizeof(b), GRND_NONBLOCK) == sizeof(b));
	MUST(memcmp(a, b, sizeof(a)) != 0);
}

static void barrier(void)
{
	HAVE(syscall(SYS_membarrier, 0, 0, 0));
	MUST(syscall(SYS_membarrier, 1, 0, 0) == 0);
}

static void bad_calls(void)
{
	MUST(syscall(9999) == -1 && errno == ENOSYS);
	MUST(write(1000, "x", 1) == -1 && errno == EBADF);
	MUST(open((const char *)8, O_RDONLY) == -1 && errno == EFAULT);
	MUST(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
	MUST(lseek(create("f"), -1, SEEK_SET) == -1 && errno == EINVAL);
}

const struct group group_time = { "time", {
	CHECK(clocks), CHECK(randomness), CHECK(barrier), CHECK(bad_calls),
} };
