/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Times of steps, where there is a clock and not a recorder. The init of recordings is compiled without this file, so that
 * nothing in them is different.
 */
#ifndef KT_TIMES_H
#define KT_TIMES_H

#include <stdbool.h>

#define KT_TIMES

/* Right before a step begins and right after its program ended. */
bool times_begin(void);
void times_end(void);
/* Adds the step's line to OUT_DIR/times. */
bool times_save(const char *region, unsigned long operations);

#endif
