/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Readings of what the kernel counts of itself, around a step (proc.c). Where this file is not there init has none of it.
 */
#ifndef KT_PROC
#define KT_PROC

#include <stdbool.h>

bool proc_before(void);
void proc_after(void);
/* Writes both readings to OUT_DIR/proc/NAME-before/ and NAME-after/. */
bool proc_save(const char *name);

#endif
