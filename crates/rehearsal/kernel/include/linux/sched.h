/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LINUX_SCHED_H
#define LINUX_SCHED_H

/* A thread. */
struct task_struct {
	unsigned long sp; /* while it does not run; entry_64.S knows its place */
	int pid, tgid;
	int runnable;
	char comm[16];
};

extern struct task_struct *current;

struct task_struct *kthread_run(int pid, const char *comm, void (*function)(void));
void wake_up(struct task_struct *task);
/* Gives the CPU to whoever can run. */
void schedule(void);
/* Until somebody wakes it. */
void wait(void);

#endif
