/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Futexes, and what the C library makes of them.
 */
#include "selftest.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static long futex(int *word, int operation, int value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

static int *shared_words(void)
{
	int *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(words != MAP_FAILED);
	return words;
}

static void futex_ping_pong(void)
{
	int *word = shared_words();
	pid_t child = fork();

	for (int turn = 0; turn < 500; turn++) {
		int mine = child == 0;

		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) % 2 != mine)
			futex(word, FUTEX_WAIT, !mine + (__atomic_load_n(word, __ATOMIC_ACQUIRE) & ~1), NULL);
		__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
		futex(word, FUTEX_WAKE, 1, NULL);
	}
	if (child == 0)
		_exit(0);
	await(child, 0);
	MUST(*word == 1000);
}

static void futex_time_limit(void)
{
	struct timespec soon = { 0, 2000000 };
	int word = 5;

	MUST(futex(&word, FUTEX_WAIT, 4, NULL) == -1 && errno == EAGAIN);
	MUST(futex(&word, FUTEX_WAIT, 5, &soon) == -1 && errno == ETIMEDOUT);
	MUST(futex(&word, FUTEX_WAKE, 1, NULL) == 0);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long guarded;

static void *guarded_work(void *unused)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&mutex);
		guarded++;
		if (i == 1999)
			pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void mutexes(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, guarded_work, NULL) == 0);
	pthread_mutex_lock(&mutex);
	while (guarded < 8000)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(thread[i], NULL) == 0);
	MUST(guarded == 8000);
}

static void robust_mutex(void)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)shared_words();
	pthread_mutexattr_t attributes;
	pid_t child;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	MUST(pthread_mutex_init(lock, &attributes) == 0);
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(lock);
		_exit(0);
	}
	await(child, 0);
	MUST(pthread_mutex_lock(lock) == EOWNERDEAD && pthread_mutex_consistent(lock) == 0);
}

const struct group group_futex = { "futex", {
	CHECK(futex_ping_pong), CHECK(futex_time_limit), CHECK(mutexes), CHECK(robust_mutex),
} };
