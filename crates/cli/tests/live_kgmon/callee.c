// SPDX-License-Identifier: GPL-2.0
/*
 * callee: a module whose functions are called as often as somebody writes to /proc/callee, from system calls, from NMIs,
 * and deep down, so that what a profiler counts of them is known. A mapping of the file has memory once somebody says so, and a function
 * of the kernel may be live-patched meanwhile. For tests of kgmon.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#define KEPT noinline __attribute__((__noipa__))

int callee_leaf(int x);
int callee_calls(int x);
int callee_down(int depth);
void callee_in_nmi(void);

static atomic_t handled = ATOMIC_INIT(0);
static bool sending;
static unsigned int spins; /* of each tick; 0: none */
static struct timer_list ticking;

int KEPT callee_leaf(int x)
{
	barrier();
	return x + 1;
}

int KEPT callee_calls(int x)
{
	int result = callee_leaf(x);

	barrier();
	return result + (int)int_sqrt(result);
}

int KEPT callee_down(int depth)
{
	int result = depth ? callee_down(depth - 1) : 0;

	barrier();
	return result;
}

void KEPT callee_in_nmi(void)
{
	barrier();
}

static int in_nmi_handler(unsigned int type, struct pt_regs *regs)
{
	if (!READ_ONCE(sending))
		return NMI_DONE;
	atomic_inc(&handled);
	callee_in_nmi();
	callee_leaf(0);
	return NMI_HANDLED;
}

/* So many NMIs to each CPU that is on, whatever it does. */
static void send_nmis(unsigned int count)
{
	unsigned int i;

	cpus_read_lock();
	WRITE_ONCE(sending, true);
	for (i = 0; i < count; i++) {
		apic->send_IPI_mask(cpu_online_mask, NMI_VECTOR);
		callee_leaf(i & 0xff);
		udelay(5);
	}
	msleep(20);
	WRITE_ONCE(sending, false);
	cpus_read_unlock();
}

/* Called from the tick's soft interrupt: interrupts are on. */
static void callee_ticks(struct timer_list *timer)
{
	unsigned int i, times = READ_ONCE(spins);

	for (i = 0; i < times; i++)
		barrier();
	if (times)
		mod_timer(timer, jiffies + 1);
}

static void tick(unsigned int times)
{
	WRITE_ONCE(spins, times);
	if (times)
		mod_timer(&ticking, jiffies + 1);
	else
		timer_delete_sync(&ticking);
}

static DECLARE_COMPLETION(memory);
static struct page *page;

static vm_fault_t fault(struct vm_fault *vmf)
{
	if (wait_for_completion_killable(&memory))
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct mapping = { .fault = fault };

static int callee_mmap(struct file *file, struct vm_area_struct *area)
{
	area->vm_ops = &mapping;
	return 0;
}

static void patched(unsigned long ip, unsigned long parent, struct ftrace_ops *ops, struct ftrace_regs *regs)
{
}

static struct ftrace_ops patch = {
	.func = patched,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_DYNAMIC,
};

/* Stands where a live patch would: at the beginning of int_sqrt(). */
static int patch_kernel(bool on)
{
	int error;

	if (!on)
		return unregister_ftrace_function(&patch);
	error = ftrace_set_filter(&patch, "int_sqrt", 8, 1);
	return error ?: register_ftrace_function(&patch);
}

/* `calls N`, `depth N`, `nmis N`, `ticking N`, `memory 1`, `patch 0|1`; any number of writers at a time. */
static ssize_t callee_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char text[32] = "", verb[16];
	unsigned int number, i;

	if (size >= sizeof(text) || copy_from_user(text, from, size))
		return -EINVAL;
	if (sscanf(text, "%15s %u", verb, &number) != 2)
		return -EINVAL;
	if (!strcmp(verb, "calls"))
		for (i = 0; i < number; i++)
			callee_calls(i & 0xff);
	else if (!strcmp(verb, "depth") && number <= 64)
		callee_down(number);
	else if (!strcmp(verb, "nmis"))
		send_nmis(number);
	else if (!strcmp(verb, "ticking"))
		tick(number);
	else if (!strcmp(verb, "memory"))
		complete_all(&memory);
	else if (!strcmp(verb, "patch"))
		return patch_kernel(number) ?: (ssize_t)size;
	else
		return -EINVAL;
	return size;
}

/* NMIs that were handled. */
static ssize_t callee_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	char text[16];
	int length = scnprintf(text, sizeof(text), "%d\n", atomic_read(&handled));

	return simple_read_from_buffer(to, size, at, text, length);
}

static const struct proc_ops operations = {
	.proc_read = callee_read,
	.proc_write = callee_write,
	.proc_mmap = callee_mmap,
};

static int __init callee_init(void)
{
	timer_setup(&ticking, callee_ticks, 0);
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return -ENOMEM;
	if (!proc_create("callee", 0600, NULL, &operations))
		return -ENOMEM;
	return register_nmi_handler(NMI_LOCAL, in_nmi_handler, 0, "callee");
}

static void __exit callee_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "callee");
	remove_proc_entry("callee", NULL);
	tick(0);
	__free_page(page);
}

module_init(callee_init);
module_exit(callee_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Functions that are called a known number of times");
