/* Counts program() with the kernel's hooks instead of libgcov's and exports as kernel/gcov/gcc_4_7.c
 * does, with what values.c gives it. Talks to value_hooks.rs: one file of counters per round. */
#include <pthread.h>
#include "gcov.h"
#include "values.h"

struct gcov_ctr_info { unsigned int num; gcov_type *values; };
struct gcov_fn_info { const void *key; unsigned int ident, lineno, cfg; struct gcov_ctr_info ctrs[]; };
struct gcov_info {
	unsigned int version;
	struct gcov_info *next;
	unsigned int stamp, checksum;
	const char *filename;
	void (*merge[KINDS])(gcov_type *, unsigned int);
	unsigned int n_functions;
	struct gcov_fn_info **functions;
};

int program(void);
void __gcov_topn_values_profiler_atomic(gcov_type *, gcov_type);

static struct gcov_info *info;
void __gcov_init(struct gcov_info *i) { info = i; }
void __gcov_exit(void) { }
void __gcov_merge_add(gcov_type *c, unsigned int n) { }
void __gcov_merge_ior(gcov_type *c, unsigned int n) { }
void __gcov_merge_time_profile(gcov_type *c, unsigned int n) { }

size_t store_gcov_u32(void *buffer, size_t off, u32 v)
{
	if (buffer)
		memcpy((char *)buffer + off, &v, sizeof(v));
	return sizeof(v);
}

size_t store_gcov_u64(void *buffer, size_t off, u64 v)
{
	if (buffer)
		memcpy((char *)buffer + off, &v, sizeof(v));
	return sizeof(v);
}

/* Each list is copied and, if asked, added to its copy once more. */
static size_t export(char *to, bool twice)
{
	size_t pos = 0;

	pos += store_gcov_u32(to, pos, 0x67636461);
	pos += store_gcov_u32(to, pos, info->version);
	pos += store_gcov_u32(to, pos, info->stamp);
	pos += store_gcov_u32(to, pos, 0);
	for (unsigned int f = 0; f < info->n_functions; f++) {
		struct gcov_fn_info *function = info->functions[f];
		struct gcov_ctr_info *ctr = function->ctrs;

		pos += store_gcov_u32(to, pos, 0x01000000);
		pos += store_gcov_u32(to, pos, 12);
		pos += store_gcov_u32(to, pos, function->ident);
		pos += store_gcov_u32(to, pos, function->lineno);
		pos += store_gcov_u32(to, pos, function->cfg);
		for (unsigned int kind = 0; kind < KINDS; kind++) {
			if (!info->merge[kind])
				continue;
			pos += store_gcov_u32(to, pos, 0x01a10000 + (kind << 17));
			if (gcov_kind_is_topn(kind)) {
				gcov_type *copy = gcov_topn_dup(ctr->values, ctr->num);

				if (twice)
					gcov_topn_add(&copy, ctr->values, ctr->num);
				pos += gcov_topn_store(to, pos, copy, ctr->num);
				free(copy);
			} else {
				pos += store_gcov_u32(to, pos, ctr->num * 8);
				for (unsigned int i = 0; i < ctr->num; i++) {
					gcov_type sum = ctr->values[i];

					if (twice)
						gcov_add_counter(kind, &sum, ctr->values[i]);
					pos += store_gcov_u64(to, pos, sum);
				}
			}
			ctr++;
		}
	}
	return pos;
}

static void save(const char *name, bool twice)
{
	size_t size = export(NULL, twice);
	char *buffer = malloc(size);
	FILE *file = fopen(name, "w");

	if (!buffer || !file || export(buffer, twice) != size || fwrite(buffer, 1, size, file) != size)
		exit(1);
	fclose(file);
	free(buffer);
}

static void reset(void)
{
	for (unsigned int f = 0; f < info->n_functions; f++) {
		struct gcov_ctr_info *ctr = info->functions[f]->ctrs;

		for (unsigned int kind = 0; kind < KINDS; kind++) {
			if (!info->merge[kind])
				continue;
			if (gcov_kind_is_topn(kind))
				gcov_topn_reset(ctr->values, ctr->num);
			else
				memset(ctr->values, 0, ctr->num * sizeof(gcov_type));
			ctr++;
		}
	}
	gcov_values_reset();
}

/* One site, many at once: no value may be lost or counted for another. */
static gcov_type site[3];

static void *hammer(void *from)
{
	for (int i = 0; i < 200000; i++)
		__gcov_topn_values_profiler_atomic(site, i % 16);
	return from;
}

static int threads(void)
{
	const struct gcov_value_node *node;
	pthread_t thread[4];
	gcov_type sum = 0, length = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, hammer, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (node = (struct gcov_value_node *)site[2]; node; node = node->next, length++) {
		if (node->count != 50000)
			return 2;
		sum += node->count;
	}
	return sum == 800000 && site[0] == sum && site[1] == 16 && length == 16 ? 0 : 3;
}

int main(void)
{
	int wrong = NODES > 100 ? threads() : 0;

	if (wrong)
		return wrong;
	program();
	save("first.gcda", false);
	save("twice.gcda", true);
	reset();
	save("reset.gcda", false);
	program();
	save("again.gcda", false);
	return 0;
}
