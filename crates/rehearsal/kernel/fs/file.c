/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Files in memory, stored in pages and found by the hash of their names.
 */
#include <linux/kernel.h>

enum { BUCKETS = 32, FILES = 64, OPEN = 16, PAGE = 512, PAGES = 8, NAME = 32 };

struct file {
	struct file *next;
	u32 hash, size, opened;
	char name[NAME];
	u8 *pages[PAGES];
};

struct descriptor {
	struct file *file;
	u64 position;
};

static struct file *buckets[BUCKETS];
static struct descriptor table[OPEN];
static u32 count;

static u32 hash_name(const char *name)
{
	u32 hash = 2166136261u;

	while (*name)
		hash = (hash ^ (u8)*name++) * 16777619u;
	return hash;
}

static int same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static struct file *lookup(const char *name, u32 hash)
{
	struct file *file = buckets[hash % BUCKETS];

	while (file && (file->hash != hash || !same_name(file->name, name)))
		file = file->next;
	return file;
}

static noinline struct file *create(const char *name, u32 hash)
{
	struct file *file;

	if (count == FILES || strlen(name) >= NAME)
		return 0;
	file = kmalloc(sizeof(*file));
	if (!file)
		return 0;
	memset(file, 0, sizeof(*file));
	memcpy(file->name, name, strlen(name) + 1);
	file->hash = hash;
	file->next = buckets[hash % BUCKETS];
	buckets[hash % BUCKETS] = file;
	count++;
	return file;
}

static struct descriptor *descriptor(u64 fd)
{
	if (fd >= OPEN)
		return 0;
	if (!table[fd].file)
		return 0;
	return &table[fd];
}

static u8 *page_of(struct file *file, u64 position, int make)
{
	u64 at = position / PAGE;

	if (at >= PAGES)
		return 0;
	if (!file->pages[at] && make) {
		file->pages[at] = kmalloc(PAGE);
		if (file->pages[at])
			memset(file->pages[at], 0, PAGE);
	}
	return file->pages[at];
}

long do_open(const char *name)
{
	u32 hash = hash_name(name);
	struct file *file = lookup(name, hash);

	if (!file)
		file = create(name, hash);
	if (!file)
		return -ENOSPC;
	for (u64 fd = 0; fd < OPEN; fd++) {
		if (!table[fd].file) {
			table[fd].file = file;
			table[fd].position = 0;
			file->opened++;
			return (long)fd;
		}
	}
	return -ENFILE;
}

long do_close(u64 fd)
{
	struct descriptor *d = descriptor(fd);

	if (!d)
		return -EBADF;
	d->file->opened--;
	d->file = 0;
	return 0;
}

long do_read(u64 fd, void *to, u64 bytes)
{
	struct descriptor *d = descriptor(fd);
	u8 *out = to;

	if (!d)
		return -EBADF;
	if (d->position >= d->file->size)
		return 0;
	if (bytes > d->file->size - d->position)
		bytes = d->file->size - d->position;
	for (u64 left = bytes; left;) {
		u64 offset = d->position % PAGE;
		u64 part = PAGE - offset < left ? PAGE - offset : left;
		u8 *page = page_of(d->file, d->position, 0);

		if (page)
			memcpy(out, page + offset, part);
		else
			memset(out, 0, part);
		out += part;
		left -= part;
		d->position += part;
	}
	return (long)bytes;
}

long do_write(u64 fd, const void *from, u64 bytes)
{
	struct descriptor *d = descriptor(fd);
	const u8 *in = from;

	if (!d)
		return -EBADF;
	for (u64 left = bytes; left;) {
		u64 offset = d->position % PAGE;
		u64 part = PAGE - offset < left ? PAGE - offset : left;
		u8 *page = page_of(d->file, d->position, 1);

		if (!page)
			return -ENOSPC;
		memcpy(page + offset, in, part);
		in += part;
		left -= part;
		d->position += part;
	}
	if (d->position > d->file->size)
		d->file->size = (u32)d->position;
	return (long)bytes;
}
