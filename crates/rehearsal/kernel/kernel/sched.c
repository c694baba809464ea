/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Cooperative scheduler of kernel threads.
 */
#include <linux/kernel.h>
#include <linux/sched.h>

enum { TASKS = 4, STACK = 8192 };

static struct task_struct tasks[TASKS] = { { .pid = 1, .tgid = 1, .runnable = 1, .comm = "init" } };
static int count = 1;
struct task_struct *current = &tasks[0];

void __switch_to_asm(struct task_struct *prev, struct task_struct *next);

struct task_struct *kthread_run(int pid, const char *comm, void (*function)(void))
{
	static u64 stacks[TASKS][STACK / 8] __attribute__((aligned(16)));
	struct task_struct *task = &tasks[count];
	u64 *top = &stacks[count][STACK / 8 - 2];

	if (count == TASKS)
		panic("too many threads");
	count++;
	*top = (u64)function;
	task->sp = (u64)(top - 6);
	task->pid = task->tgid = pid;
	task->runnable = 1;
	memcpy(task->comm, comm, strlen(comm) + 1);
	return task;
}

void wake_up(struct task_struct *task)
{
	if (task < tasks || task >= tasks + count)
		panic("no such thread");
	task->runnable = 1;
}

/* Returns the next runnable thread after the running one. */
static struct task_struct *pick_next_task(void)
{
	long at = current - tasks;

	for (int i = 0; i < count; i++) {
		at = at + 1 < count ? at + 1 : 0;
		if (tasks[at].runnable)
			return &tasks[at];
	}
	panic("nobody can run");
}

void schedule(void)
{
	struct task_struct *prev = current, *next = pick_next_task();

	if (next == prev)
		return;
	current = next;
	__switch_to_asm(prev, next);
}

void wait(void)
{
	current->runnable = 0;
	schedule();
}
