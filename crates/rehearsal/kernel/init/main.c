/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <linux/kernel.h>

extern void (*__ctors_start[])(void), (*__ctors_end[])(void);

/* Instrumented objects register their counters in constructors. */
static void do_ctors(void)
{
	for (void (**ctor)(void) = __ctors_start; ctor < __ctors_end; ctor++)
		(*ctor)();
}

static noinline void test_allocator(void)
{
	u8 *objects[8];

	for (u64 i = 0; i < 8; i++) {
		objects[i] = kmalloc(16ul << i);
		if (!objects[i])
			panic("no memory at boot");
		memset(objects[i], (int)i, 16ul << i);
	}
	for (u64 i = 0; i < 8; i++) {
		if (objects[i][0] != i)
			panic("two objects in one place");
		kfree(objects[i]);
	}
}

void start_kernel(void)
{
	do_ctors();
	printk("Linux version 6.12.117-rehearsal\n");
	test_allocator();
	pipe_init();
	printk("Run /init as init process\n");
}
