/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What a process maps.
 */
#include "selftest.h"

#include <sys/mman.h>
#include <sys/uio.h>

static void anonymous_memory(void)
{
	size_t size = 8 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	for (size_t i = 0; i < size; i += PAGE)
		MUST(memory[i] == 0);
	fill(memory, 0, size);
	MUST(is_filled(memory, 0, size));
	MUST(madvise(memory, size / 2, MADV_DONTNEED) == 0);
	MUST(memory[0] == 0 && memory[size / 2 - 1] == 0 && is_filled(memory + size / 2, size / 2, size / 2));
	MUST(munmap(memory, size) == 0);
}

static void copy_on_write(void)
{
	size_t size = 1 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	MUST(memory != MAP_FAILED);
	fill(memory, 0, size);
	child = fork();
	if (child == 0) {
		MUST(is_filled(memory, 0, size));
		memset(memory, 1, size);
		_exit(memory[size - 1]);
	}
	await(child, 1 << 8);
	MUST(is_filled(memory, 0, size));
}

static void shared_memory(void)
{
	unsigned char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	MUST(memory != MAP_FAILED);
	child = fork();
	if (child == 0) {
		fill(memory, 5, PAGE);
		_exit(0);
	}
	await(child, 0);
	MUST(is_filled(memory, 5, PAGE));
}

static void file_mapping(void)
{
	int fd = create("mapped");
	unsigned char *memory, bytes[PAGE];

	MUST(ftruncate(fd, 4 * PAGE) == 0);
	memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(memory != MAP_FAILED);
	fill(memory, 0, 4 * PAGE);
	MUST(msync(memory, 4 * PAGE, MS_SYNC) == 0);
	MUST(pread(fd, bytes, PAGE, 2 * PAGE) == PAGE && is_filled(bytes, 2 * PAGE, PAGE));
	memset(bytes, 9, PAGE);
	MUST(pwrite(fd, bytes, PAGE, PAGE) == PAGE && memory[PAGE] == 9 && memory[2 * PAGE - 1] == 9);
}

static void remap(void)
{
	unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *larger;

	MUST(memory != MAP_FAILED);
	fill(memory, 0, 2 * PAGE);
	larger = mremap(memory, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	MUST(larger != MAP_FAILED && is_filled(larger, 0, 2 * PAGE) && larger[64 * PAGE - 1] == 0);
}

static void program_break(void)
{
	unsigned char *start = sbrk(0);

	MUST(sbrk(64 * PAGE) == start);
	fill(start, 0, 64 * PAGE);
	MUST(is_filled(start, 0, 64 * PAGE) && sbrk(-64 * PAGE) == start + 64 * PAGE);
}

static void sealed_memory(void)
{
	int fd = (int)HAVE(memfd_create("seal", MFD_ALLOW_SEALING));

	MUST(ftruncate(fd, PAGE) == 0);
	MUST(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0);
	MUST(write(fd, "x", 1) == -1 && errno == EPERM);
	MUST(ftruncate(fd, 0) == -1 && errno == EPERM);
}

static void other_memory(void)
{
	static char word[16] = "here";
	char got[16] = "";
	struct iovec ours = { got, sizeof(got) }, theirs = { word, sizeof(word) };
	int up[2];
	char byte;
	pid_t child;

	MUST(pipe(up) == 0);
	child = fork();
	if (child == 0) {
		strcpy(word, "there");
		if (write(up[1], "k", 1) == 1)
			pause();
		_exit(1);
	}
	MUST(read(up[0], &byte, 1) == 1);
	HAVE(process_vm_readv(child, &ours, 1, &theirs, 1, 0));
	MUST(strcmp(got, "there") == 0 && kill(child, SIGKILL) == 0);
	await(child, SIGKILL);
}

static void resident_pages(void)
{
	unsigned char there[4] = { 0 };
	char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	memory[PAGE] = 1;
	MUST(mlock(memory + 2 * PAGE, PAGE) == 0);
	MUST(mincore(memory, 4 * PAGE, there) == 0);
	MUST(!(there[0] & 1) && (there[1] & 1) && (there[2] & 1) && !(there[3] & 1));
}

const struct group group_memory = { "memory", {
	CHECK(anonymous_memory), CHECK(copy_on_write), CHECK(shared_memory), CHECK(file_mapping),
	CHECK(remap), CHECK(program_break), CHECK(sealed_memory), CHECK(other_memory),
	CHECK(resident_pages),
} };
