/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the kernel counts of itself, read right before and after each step (kt.proc=1), so that a recording can be compared with it.
 *
 * Around a step and its readings is a region of its own, and around each reading another one: whatever happens from one reading
 * to the other is then in a recording, within the step's own regions or beside them. Readings go to memory that a child does not
 * share; files are written when the step is over.
 * Talks to: the recorder by marks; crates/report (characterize/proc.rs) by these regions and the files in OUT_DIR/proc.
 */
#include "init.h"

#include "../kt_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define AROUND "[proc]"
#define READING "[proc reading]"
#define READING_MAX 65536

/* Files that a lean kernel lacks are left out. */
static const struct {
	const char *path, *name;
} files[] = {
	{ "/proc/stat", "stat" },
	{ "/proc/interrupts", "interrupts" },
	{ "/proc/softirqs", "softirqs" },
	{ "/proc/vmstat", "vmstat" },
	{ "/proc/diskstats", "diskstats" },
	{ "/proc/net/snmp", "snmp" },
};
#define FILES (sizeof(files) / sizeof(files[0]))

static struct reading {
	char text[FILES][READING_MAX];
	ssize_t size[FILES]; /* -1 if there is no such file */
} *readings; /* before, after */

static void take(struct reading *reading)
{
	kt_begin(READING);
	for (size_t i = 0; i < FILES; i++)
		reading->size[i] = read_text(files[i].path, reading->text[i], READING_MAX);
	kt_end(READING, 1);
}

bool proc_before(void)
{
	if (!readings) {
		readings = mmap(NULL, 2 * sizeof(*readings), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (readings == MAP_FAILED || madvise(readings, 2 * sizeof(*readings), MADV_DONTFORK) < 0)
			return fail("collect: no memory for readings of /proc: %s", strerror(errno));
	}
	/* Once before, so that neither files nor memory are new. */
	take(&readings[1]);
	kt_begin(AROUND);
	take(&readings[0]);
	return true;
}

static bool save(const struct reading *reading, const char *name, const char *when)
{
	char dir[256], path[512];

	snprintf(dir, sizeof(dir), OUT_DIR "/proc/%.100s-%s", name, when);
	if ((mkdir(OUT_DIR "/proc", 0755) < 0 && errno != EEXIST) || mkdir(dir, 0755) < 0)
		return fail("collect: cannot make %s: %s", dir, strerror(errno));
	for (size_t i = 0; i < FILES; i++) {
		int fd;
		bool good;

		if (reading->size[i] < 0)
			continue;
		if (reading->size[i] == READING_MAX - 1)
			return fail("collect: %s has %d bytes or more", files[i].path, READING_MAX - 1);
		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		good = fd >= 0 && write(fd, reading->text[i], (size_t)reading->size[i]) == reading->size[i];
		if (!good)
			fail("collect: cannot write %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		if (!good)
			return false;
	}
	return true;
}

void proc_after(void)
{
	take(&readings[1]);
	kt_end(AROUND, 1);
}

bool proc_save(const char *name)
{
	return save(&readings[0], name, "before") && save(&readings[1], name, "after");
}
