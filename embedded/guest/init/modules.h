/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Loads the kernel modules that are in the image. The init of images without modules is compiled without this file, so that
 * nothing in them is different.
 */
#ifndef KT_MODULES_H
#define KT_MODULES_H

#include <stdbool.h>

#define KT_MODULES

bool modules_load(void);

#endif
