/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Exports counters of instrumented objects as .gcda files (GCC's gcov-io.h, GCC 12 and later), like
 * Linux without the summary of the program.
 */
#include <linux/kernel.h>

#if __GNUC__ >= 15
#define COUNTERS 10
#elif __GNUC__ >= 14
#define COUNTERS 9
#else
#define COUNTERS 8
#endif

enum { MAGIC = 0x67636461, FUNCTION = 0x01000000, FIRST = 0x01a10000, STEP = 1 << 17 };

struct counters {
	u32 count;
	u64 *values;
};

struct function {
	const void *object;
	u32 ident, lines, graph;
	struct counters counters[];
};

/* Data structures that GCC generates in each object. */
struct object {
	u32 version;
	struct object *next;
	u32 stamp, checksum;
	const char *file;
	void (*merge[COUNTERS])(void);
	u32 count;
	struct function **functions;
};

static struct object *objects;

void __gcov_init(struct object *object)
{
	object->next = objects;
	objects = object;
}

/* Referenced by GCC's code, but a kernel merges nothing. */
void __gcov_exit(void) {}
void __gcov_merge_add(void) {}
void __gcov_merge_ior(void) {}
void __gcov_merge_time_profile(void) {}
void __gcov_merge_topn(void) {}

static void reset(void)
{
	for (struct object *o = objects; o; o = o->next) {
		for (u32 f = 0; f < o->count; f++) {
			struct counters *c = o->functions[f]->counters;

			for (u32 kind = 0; kind < COUNTERS; kind++) {
				if (!o->merge[kind])
					continue;
				memset(c->values, 0, c->count * sizeof(u64));
				c++;
			}
		}
	}
}

struct out {
	u8 *bytes;
	u64 size;
};

static void word(struct out *out, u32 value)
{
	if (out->size > 65532)
		panic("counters of an object too long");
	memcpy(out->bytes + out->size, &value, 4);
	out->size += 4;
}

static void export(const struct object *o, struct out *out)
{
	word(out, MAGIC);
	word(out, o->version);
	word(out, o->stamp);
	word(out, o->checksum);
	for (u32 f = 0; f < o->count; f++) {
		const struct function *function = o->functions[f];
		const struct counters *c = function->counters;

		word(out, FUNCTION);
		word(out, 12);
		word(out, function->ident);
		word(out, function->lines);
		word(out, function->graph);
		for (u32 kind = 0; kind < COUNTERS; kind++) {
			if (!o->merge[kind])
				continue;
			word(out, FIRST + kind * STEP);
			word(out, c->count * 8);
			for (u32 i = 0; i < c->count; i++) {
				word(out, (u32)c->values[i]);
				word(out, (u32)(c->values[i] >> 32));
			}
			c++;
		}
	}
}

/* Exports below `gcov`, the directory to which the real guest's init copies debugfs. */
static void export_all(void)
{
	static u8 bytes[65536];

	for (const struct object *o = objects; o; o = o->next) {
		struct out out = { .bytes = bytes };
		char name[100] = "gcov";
		u64 length = strlen(o->file);

		if (length > 95)
			panic("name of counters too long");
		memcpy(name + 4, o->file, length + 1);
		export(o, &out);
		result(name, bytes, out.size);
	}
}

long sys_gcov(u64 what)
{
	if (what)
		export_all();
	else
		reset();
	return 0;
}
