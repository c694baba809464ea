// SPDX-License-Identifier: GPL-2.0
/*
 * Two functions that do nothing but be counted: one on each way in. If a call of them is not counted, nothing is, for
 * example because somebody wrote 0 to kernel.ftrace_enabled. They are no part of a dump.
 *
 * The one file of the module that ftrace can see.
 */
#include "kgmon.h"

#include <linux/compiler.h>

noinline void kg_sentinel_direct(void)
{
	barrier();
}

noinline void kg_sentinel_generic(void)
{
	barrier();
}

static notrace bool within(u64 callee, void (*function)(void))
{
	return callee - (unsigned long)function <= 16;
}

notrace bool kg_is_sentinel(u64 callee)
{
	return within(callee, kg_sentinel_direct) || within(callee, kg_sentinel_generic);
}

notrace bool kg_sentinels_counted(void)
{
	u64 direct = kg_table_calls((unsigned long)kg_sentinel_direct);
	u64 generic = kg_table_calls((unsigned long)kg_sentinel_generic);

	kg_sentinel_direct();
	kg_sentinel_generic();
	return kg_table_calls((unsigned long)kg_sentinel_direct) > direct &&
	       kg_table_calls((unsigned long)kg_sentinel_generic) > generic;
}
