/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LINUX_SCHED_H
#define LINUX_SCHED_H

/* A kernel thread. */
struct task_struct {
	unsigned long sp; /* while it does not run; entry_64.S uses its offset */
	int pid, tgid;
	int runnable;
	char comm[16];
};

extern struct task_struct *current;

struct task_struct *kthread_run(int pid, const char *comm, void (*function)(void));
void wake_up(struct task_struct *task);
/* Switches to the next runnable thread. */
void schedule(void);
/* Sleeps until another thread wakes this one. */
void wait(void);

#endif
