/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the kernel itself counted: gcov counters and the function profiler of ftrace.
 *
 * The writes that switch the profiler lie just outside of the marked region. The tail of the write
 * that switches it on and the head of the one that switches it off are counted by ftrace and not by
 * the recorder (vfs_write and below, the profiler's own functions); nothing else differs. Switching
 * it on clears its tables, so they are saved after each step.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GCOV_DIR "/sys/kernel/debug/gcov"

static const char *const tracing_dirs[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
static const char *tracing;
static int profiler = -1;

bool gcov_reset(void)
{
	if (!write_text(GCOV_DIR "/reset", "1"))
		return fail("collect: cannot reset the gcov counters (%s: %s); kt.gcov=1 needs a kernel built "
			    "with CONFIG_GCOV_KERNEL",
			    GCOV_DIR "/reset", strerror(errno));
	return true;
}

bool gcov_send(void)
{
	/* What the value counters say of themselves; only kernels with our patches have it. */
	if (access(GCOV_DIR "/values", R_OK) == 0 && !stream_file(GCOV_DIR "/values", "gcov/values"))
		return false;
	return stream_tree(GCOV_DIR, "gcov/", ".gcda");
}

bool profiler_open(void)
{
	char path[128];

	for (size_t i = 0; i < sizeof(tracing_dirs) / sizeof(tracing_dirs[0]) && profiler < 0; i++) {
		tracing = tracing_dirs[i];
		snprintf(path, sizeof(path), "%s/function_profile_enabled", tracing);
		profiler = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (profiler < 0)
		return fail("collect: no function profiler (%s); kt.ftrace=1 needs a kernel built with "
			    "CONFIG_FUNCTION_PROFILER",
			    strerror(errno));
	return true;
}

bool profiler_switch(bool on)
{
	if (write(profiler, on ? "1" : "0", 1) != 1)
		return fail("collect: cannot switch the function profiler %s: %s", on ? "on" : "off",
			    strerror(errno));
	return true;
}

static bool copy(const char *from, const char *to)
{
	static char buffer[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t got = -1;

	if (in >= 0 && out >= 0)
		while ((got = read(in, buffer, sizeof(buffer))) > 0)
			if (write(out, buffer, (size_t)got) != got) {
				got = -1;
				break;
			}
	if (got < 0)
		fail("collect: cannot copy %s to %s: %s", from, to, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return got == 0;
}

bool profiler_save(const char *name)
{
	char dir[256], from[512], to[768];
	struct dirent *entry;
	bool good = true;
	DIR *stats;

	snprintf(dir, sizeof(dir), OUT_DIR "/ftrace/%s", name);
	if ((mkdir(OUT_DIR "/ftrace", 0755) < 0 && errno != EEXIST) ||
	    (mkdir(dir, 0755) < 0 && errno != EEXIST))
		return fail("collect: cannot make %s: %s", dir, strerror(errno));
	snprintf(from, sizeof(from), "%s/trace_stat", tracing);
	stats = opendir(from);
	if (!stats)
		return fail("collect: cannot list %s: %s", from, strerror(errno));
	while (good && (entry = readdir(stats))) {
		if (strncmp(entry->d_name, "function", 8) != 0)
			continue;
		snprintf(from, sizeof(from), "%s/trace_stat/%s", tracing, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s", dir, entry->d_name);
		good = copy(from, to);
	}
	closedir(stats);
	return good;
}
