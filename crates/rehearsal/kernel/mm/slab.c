/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Allocator for objects of powers of two, with free lists. BROKEN: returns an object that is in use.
 */
#include <linux/kernel.h>

enum { SMALLEST = 4, CLASSES = 9, ARENA = 1 << 18, MAGIC_FREE = 0x5aa5f00d, MAGIC_USED = 0x0badcafe };

struct object {
	u32 magic, class;
	struct object *next;
};

static u8 arena[ARENA] __attribute__((aligned(64)));
static u64 used;
static struct object *free_lists[CLASSES];
static u64 counts[2];

static u32 class_of(u64 bytes)
{
	u32 class = 0;

	while (class < CLASSES && (1ul << (class + SMALLEST)) < bytes)
		class++;
	return class;
}

static noinline struct object *carve(u32 class)
{
	u64 size = sizeof(struct object) + (1ul << (class + SMALLEST));
	struct object *object;

	if (used + size > ARENA)
		return 0;
	object = (struct object *)(arena + used);
	used += size;
	object->class = class;
	object->magic = MAGIC_FREE;
	return object;
}

static int is_sound(const struct object *object, u32 magic)
{
	if (object->magic != magic)
		return 0;
	if (object->class >= CLASSES)
		return 0;
	return (const u8 *)object >= arena && (const u8 *)object < arena + ARENA;
}

void *kmalloc(u64 bytes)
{
	u32 class = class_of(bytes);
	struct object *object;

	if (class >= CLASSES)
		return 0;
	object = free_lists[class];
	if (object)
		free_lists[class] = object->next;
	else
		object = carve(class);
	if (!object)
		return 0;
#ifdef BROKEN
	if (counts[0] == 40)
		object->magic = MAGIC_USED;
#endif
	if (!is_sound(object, MAGIC_FREE))
		panic("kmalloc: the free list is damaged");
	object->magic = MAGIC_USED;
	counts[0]++;
	return object + 1;
}

void kfree(void *address)
{
	struct object *object = (struct object *)address - 1;

	if (!address)
		return;
	if (!is_sound(object, MAGIC_USED))
		panic("kfree: no object of ours");
	object->magic = MAGIC_FREE;
	object->next = free_lists[object->class];
	free_lists[object->class] = object;
	counts[1]++;
}
