// SPDX-License-Identifier: GPL-2.0
/*
 * Two functions that exist to be counted, one through each entry. If calls of them are not counted, nothing is, for
 * example because somebody wrote 0 to kernel.ftrace_enabled. Dumps do not contain them.
 *
 * The only file of the module that is compiled for ftrace.
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

notrace bool kg_sentinels_counted(void)
{
	u64 direct, generic, direct_after, generic_after;

	kg_table_sentinels(&direct, &generic);
	kg_sentinel_direct();
	kg_sentinel_generic();
	kg_table_sentinels(&direct_after, &generic_after);
	return direct_after > direct && generic_after > generic;
}
