// SPDX-License-Identifier: GPL-2.0
/*
 * The arc table, shared by all CPUs. Each slot has a counter for each CPU.
 *
 * Slots are filled and never emptied. To fill a slot, a CPU claims it by setting the counter and then writes the key.
 * Until the key is there, others skip the slot, so an arc whose insertion was interrupted by the same call may end up
 * in two slots. The reader sums entries with the same key.
 *
 * Counters are allocated only while counting: so much used per-CPU memory makes the kernel's own allocations slower, in
 * each fork. Their counts are kept by the arc's number.
 */
#include "kgmon.h"

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

/* Counters are allocated in pieces that every kernel's per-CPU allocator can give (PCPU_MIN_UNIT_SIZE is 32 KiB). */
#define CHUNK_BITS 11
#define CHUNK (1U << CHUNK_BITS)
#define CHUNKS (KG_ARCS_MAX / CHUNK)

struct kg_slot kg_slots[KG_SLOTS] __aligned(64);

static u64 __percpu *chunks[CHUNKS];
static u64 *keys;	      /* by the arc's number */
static u64 *kept;	      /* by the arc's number: calls before the last stop */
static unsigned int capacity; /* in arcs */
static atomic_t used = ATOMIC_INIT(0);
static DEFINE_PER_CPU(u64, lost);
/* Calls of the two sentinels, which are counted even if the table is full. */
static DEFINE_PER_CPU(u64, sentinel_direct);
static DEFINE_PER_CPU(u64, sentinel_generic);

static u64 __percpu *counter_of(unsigned int number)
{
	return chunks[number >> CHUNK_BITS] + (number & (CHUNK - 1));
}

/* Inverse of the key's computation with KG_MUL. */
static void arc_of(u64 key, u64 *caller, u64 *callee)
{
	const u64 base = 0xffffffff80000000ULL; /* of all kernel code */
	u64 sum = key - base - base * KG_MUL;

	*callee = base + div64_u64(sum, KG_MUL);
	*caller = key - *callee * KG_MUL;
}

/* Returns a counter for a new arc; 0 if there is no room. */
static unsigned long new_counter(u64 key)
{
	u64 caller, callee;
	int number;

	arc_of(key, &caller, &callee);
	callee -= MCOUNT_INSN_SIZE;
	if (kg_begins(callee, kg_sentinel_direct))
		return (unsigned long)&sentinel_direct;
	if (kg_begins(callee, kg_sentinel_generic))
		return (unsigned long)&sentinel_generic;
	number = atomic_fetch_add_unless(&used, 1, capacity);
	if (number >= (int)capacity)
		return 0;
	WRITE_ONCE(keys[number], key);
	return (unsigned long)counter_of(number);
}

unsigned long kg_insert(u64 key)
{
	unsigned int at = (key & KG_INDEX) / 2, probe;
	unsigned long counter = 0;

	for (probe = 0; probe < KG_SLOTS; probe++, at = (at + 1) & (KG_SLOTS - 1)) {
		struct kg_slot *slot = &kg_slots[at];
		u64 there = smp_load_acquire(&slot->key);

		if (there == key) {
			/* A counter that we took in vain keeps its key and stays 0. */
			return slot->counter;
		}
		if (there || READ_ONCE(slot->counter))
			continue;
		if (!counter)
			counter = new_counter(key);
		if (!counter)
			break;
		if (cmpxchg64((u64 *)&slot->counter, 0, counter) == 0) {
			smp_store_release(&slot->key, key);
			return counter;
		}
	}
	return (unsigned long)&lost;
}

/* The same as kg_entry, for calls through ftrace's own trampoline. */
void kg_count(unsigned long caller, unsigned long callee)
{
	u64 key = caller + callee * KG_MUL;
	unsigned int at = (key & KG_INDEX) / 2;
	unsigned long counter = 0;

	for (; READ_ONCE(kg_slots[at].key); at = (at + 1) & (KG_SLOTS - 1)) {
		if (READ_ONCE(kg_slots[at].key) == key) {
			counter = kg_slots[at].counter;
			break;
		}
	}
	if (!counter)
		counter = kg_insert(key);
	this_cpu_inc(*(u64 __percpu *)counter);
}

bool kg_table_arc(unsigned int number, u64 *caller, u64 *callee)
{
	u64 key = READ_ONCE(keys[number]);

	if (!key)
		return false;
	arc_of(key, caller, callee);
	*callee -= MCOUNT_INSN_SIZE;
	return true;
}

unsigned int kg_table_used(void)
{
	return min_t(unsigned int, atomic_read(&used), capacity);
}

void kg_table_read(int cpu, u64 *counts, unsigned int arcs, u64 *lost_calls)
{
	unsigned int number, base;

	for (base = 0; base < arcs && chunks[0]; base += CHUNK) {
		const u64 *of = per_cpu_ptr(chunks[base >> CHUNK_BITS], cpu);
		unsigned int end = min(arcs - base, CHUNK);

		for (number = 0; number < end; number++)
			counts[base + number] += READ_ONCE(of[number]);
	}
	*lost_calls += READ_ONCE(*per_cpu_ptr(&lost, cpu));
}

void kg_table_kept(u64 *counts, unsigned int arcs)
{
	unsigned int number;

	for (number = 0; number < arcs; number++)
		counts[number] += kept[number];
}

static void free_counters(void)
{
	unsigned int chunk;

	for (chunk = 0; chunk < CHUNKS; chunk++) {
		free_percpu(chunks[chunk]);
		chunks[chunk] = NULL;
	}
}

void kg_table_rest(void)
{
	u64 lost_calls = 0; /* ignored: lost calls stay in their own counters */
	int cpu;

	for_each_possible_cpu(cpu)
		kg_table_read(cpu, kept, kg_table_used(), &lost_calls);
	free_counters();
}

int kg_table_wake(struct kg_said *said)
{
	unsigned int chunk, number, at, count = kg_table_used();

	for (chunk = 0; chunk < DIV_ROUND_UP(capacity, CHUNK); chunk++) {
		chunks[chunk] = __alloc_percpu(CHUNK * sizeof(u64), 64);
		if (!chunks[chunk]) {
			free_counters();
			return kg_fail(said, -ENOMEM, "no memory for %u arcs on %u CPUs", capacity,
				       num_possible_cpus());
		}
	}
	memset(kg_slots, 0, sizeof(kg_slots));
	for (number = 0; number < count; number++) {
		if (!keys[number])
			continue;
		at = (keys[number] & KG_INDEX) / 2;
		while (kg_slots[at].key && kg_slots[at].key != keys[number])
			at = (at + 1) & (KG_SLOTS - 1);
		kg_slots[at].counter = (unsigned long)counter_of(number);
		kg_slots[at].key = keys[number];
	}
	return 0;
}

static u64 of_all_cpus(const u64 __percpu *counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(counter, cpu));
	return sum;
}

void kg_table_sentinels(u64 *direct, u64 *generic)
{
	*direct = of_all_cpus(&sentinel_direct);
	*generic = of_all_cpus(&sentinel_generic);
}

void kg_table_clear(void)
{
	unsigned int chunk;
	int cpu;

	memset(kg_slots, 0, sizeof(kg_slots));
	if (keys) {
		memset(keys, 0, capacity * sizeof(*keys));
		memset(kept, 0, capacity * sizeof(*kept));
	}
	for_each_possible_cpu(cpu) {
		for (chunk = 0; chunk < CHUNKS && chunks[chunk]; chunk++)
			memset(per_cpu_ptr(chunks[chunk], cpu), 0, CHUNK * sizeof(u64));
		*per_cpu_ptr(&lost, cpu) = 0;
	}
	atomic_set(&used, 0);
}

int kg_table_make(unsigned int arcs, struct kg_said *said)
{
	if (arcs != capacity) {
		kg_table_free();
		keys = vzalloc(array_size(arcs, sizeof(*keys)));
		kept = vzalloc(array_size(arcs, sizeof(*kept)));
		if (!keys || !kept) {
			kg_table_free();
			return kg_fail(said, -ENOMEM, "no memory for %u arcs", arcs);
		}
		capacity = arcs;
		kg_table_clear();
	}
	return 0;
}

void kg_table_free(void)
{
	free_counters();
	vfree(keys);
	vfree(kept);
	keys = kept = NULL;
	capacity = 0;
	atomic_set(&used, 0);
}

unsigned int kg_table_capacity(void)
{
	return capacity;
}

size_t kg_table_bytes(void)
{
	size_t each = chunks[0] ? round_up(capacity, CHUNK) * sizeof(u64) : 0;

	return sizeof(kg_slots) + capacity * (sizeof(*keys) + sizeof(*kept)) + each * num_possible_cpus();
}
