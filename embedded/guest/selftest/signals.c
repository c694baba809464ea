/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Signals and the timers that send them.
 */
#include "selftest.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t seen_signal, seen_value, nested;
static void *volatile seen_address;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	seen_signal = number;
	seen_value = info->si_value.sival_int;
	seen_address = info->si_addr;
	nested++;
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

	action.sa_sigaction = on_signal;
	MUST(sigaction(number, &action, NULL) == 0);
}

static void signal_handler(void)
{
	union sigval value = { .sival_int = 4711 };

	handle(SIGUSR1, 0);
	MUST(sigqueue(getpid(), SIGUSR1, value) == 0);
	MUST(seen_signal == SIGUSR1 && seen_value == 4711);
	handle(SIGUSR2, SA_RESETHAND);
	MUST(raise(SIGUSR2) == 0 && seen_signal == SIGUSR2);
}

static void signal_mask(void)
{
	sigset_t set, pending;

	handle(SIGUSR1, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	MUST(raise(SIGUSR1) == 0 && seen_signal == 0);
	MUST(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
	MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && seen_signal == SIGUSR1);
}

/* Real-time signals queue, in the order of their numbers. */
static void signal_queue(void)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	for (int i = 0; i < 4; i++)
		sigaddset(&set, SIGRTMIN + i);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	for (int i = 3; i >= 0; i--)
		for (int n = 0; n < 3; n++)
			MUST(sigqueue(getpid(), SIGRTMIN + i, (union sigval){ .sival_int = n }) == 0);
	for (int i = 0; i < 12; i++) {
		MUST(sigwaitinfo(&set, &info) == SIGRTMIN + i / 3);
		MUST(info.si_value.sival_int == i % 3 && info.si_pid == getpid());
	}
}

static char alternative[64 * 1024];
static volatile int on_alternative;

static void on_fault(int number, siginfo_t *info, void *context)
{
	char here;

	(void)number;
	(void)context;
	on_alternative = &here >= alternative && &here < alternative + sizeof(alternative);
	seen_address = info->si_addr;
	MUST(mprotect((void *)((unsigned long)info->si_addr & -(unsigned long)PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void fault_and_go_on(void)
{
	stack_t stack = { .ss_sp = alternative, .ss_size = sizeof(alternative) };
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	volatile char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
	action.sa_sigaction = on_fault;
	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	page[100] = 7;
	MUST(page[100] == 7 && seen_address == page + 100 && on_alternative);
}

static void deadly_signals(void)
{
	static const int numbers[] = { SIGTERM, SIGKILL, SIGABRT, SIGPIPE, SIGFPE };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct rlimit none = { 0, 0 };

			setrlimit(RLIMIT_CORE, &none);
			raise(numbers[i]);
			_exit(0);
		}
		await(child, numbers[i]);
	}
}

static void stop_and_continue(void)
{
	int status, number;
	sigset_t told;
	pid_t child = fork();

	if (child == 0) {
		/* It goes on until its parent has seen that: one that had exited by then would have no other status. */
		sigemptyset(&told);
		sigaddset(&told, SIGUSR1);
		sigprocmask(SIG_BLOCK, &told, NULL);
		raise(SIGSTOP);
		sigwait(&told, &number);
		_exit(3);
	}
	MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	MUST(kill(child, SIGCONT) == 0);
	MUST(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
	MUST(kill(child, SIGUSR1) == 0);
	await(child, 3 << 8);
}

static void interval_timer(void)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };

	handle(SIGALRM, 0);
	MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (nested < 3)
		pause();
}

static void posix_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec soon = { .it_value = { 0, 2000000 } };
	sigset_t set;
	siginfo_t info;
	timer_t timer;

	event.sigev_value.sival_int = 99;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	HAVE(timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(timer_settime(timer, 0, &soon, NULL) == 0);
	MUST(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_value.sival_int == 99);
}

static void signal_fd(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = (int)HAVE(signalfd(-1, &set, SFD_NONBLOCK));
	MUST(read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
	MUST(raise(SIGUSR2) == 0);
	MUST(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
}

const struct group group_signals = { "signals", {
	CHECK(signal_handler), CHECK(signal_mask), CHECK(signal_queue), CHECK(fault_and_go_on),
	CHECK(deadly_signals), CHECK(stop_and_continue), CHECK(interval_timer), CHECK(posix_timer),
	CHECK(signal_fd),
} };
