// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots, resets and dumps.
 *
 * Only counting writes counters: a reset remembers their values, and a dump has their growth since. So neither can lose
 * a call or count one twice, whatever the load. With `take`, dump and reset are one reading, and every call is in
 * exactly one dump.
 *
 * Each counter is read once for a dump, and totals are sums of the values read. That includes kernel_samples, because
 * a separate counter would be read at another instant than the slots. With `take`, the values read are also the base
 * of the next dump.
 *
 * All counts of the CPU that reads are of one instant, that of mono_ns: interrupts are off, and no counted function is
 * called. Counts of other CPUs are read right after that, each atomically.
 */
#include "kgmon.h"

#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#define MODULES_LISTED 1280

static u64 *counts, *base;	       /* by the arc's number: now, and at the last reset */
static u64 *sample_base;	       /* by slot */
static u64 lost_calls, lost_base;
static struct kg_sample_counts ticks, ticks_base;
static unsigned int arc_room, sample_room;

int kg_snapshot_make(unsigned int arcs, unsigned int samples, struct kg_said *said)
{
	if (arcs == arc_room && samples == sample_room)
		return 0;
	kg_snapshot_free();
	counts = vzalloc(array_size(arcs, sizeof(*counts)));
	base = vzalloc(array_size(arcs, sizeof(*base)));
	sample_base = vzalloc(array_size(samples, sizeof(*sample_base)));
	if (!counts || !base || !sample_base) {
		kg_snapshot_free();
		return kg_fail(said, -ENOMEM, "no memory for dumps");
	}
	arc_room = arcs;
	sample_room = samples;
	kg_snapshot_clear();
	return 0;
}

void kg_snapshot_free(void)
{
	vfree(counts);
	vfree(base);
	vfree(sample_base);
	counts = base = sample_base = NULL;
	arc_room = sample_room = 0;
}

size_t kg_snapshot_bytes(void)
{
	return (2ULL * arc_room + sample_room) * sizeof(u64);
}

void kg_snapshot_clear(void)
{
	if (base)
		memset(base, 0, array_size(arc_room, sizeof(*base)));
	if (sample_base)
		memset(sample_base, 0, array_size(sample_room, sizeof(*sample_base)));
	lost_base = 0;
	memset(&ticks_base, 0, sizeof(ticks_base));
}

/* Reads all counters. Returns the number of arcs, and the time of the reading. */
static unsigned int read_counters(u64 *mono_ns)
{
	unsigned long flags;
	unsigned int arcs;
	int cpu, here;

	memset(counts, 0, array_size(arc_room, sizeof(*counts)));
	lost_calls = 0;

	local_irq_save(flags);
	here = smp_processor_id();
	*mono_ns = ktime_get_mono_fast_ns();
	arcs = kg_table_used();
	kg_table_read(here, counts, arcs, &lost_calls);
	local_irq_restore(flags);

	for_each_possible_cpu(cpu) {
		if (cpu != here)
			kg_table_read(cpu, counts, arcs, &lost_calls);
		cond_resched();
	}
	kg_table_kept(counts, arcs);
	kg_sample_read(&ticks);
	return arcs;
}

static void restart_clocks(u64 now)
{
	kg_state.since_ns = now;
	kg_state.counting_before = kg_state.sampling_before = 0;
	if (kg_state.counting_since)
		kg_state.counting_since = now;
	if (kg_state.sampling_since)
		kg_state.sampling_since = now;
}

static void rebase(unsigned int arcs, u64 now)
{
	memcpy(base, counts, arcs * sizeof(*base));
	lost_base = lost_calls;
	ticks_base = ticks;
	kg_modules_forget();
	restart_clocks(now);
}

int kg_snapshot_rebase(struct kg_said *said)
{
	unsigned int slot, arcs;
	u64 now, ip;

	if (!counts)
		return 0;
	arcs = read_counters(&now);
	for (slot = 0; slot < sample_room; slot++)
		kg_sample_slot(slot, &ip, &sample_base[slot]);
	rebase(arcs, now);
	return 0;
}

static u64 elapsed(u64 before, u64 since, u64 now)
{
	return before + (since ? now - since : 0);
}

static void describe(struct kg_dump_header *to, u64 now, bool take, bool stalled)
{
	const struct kg_state *state = &kg_state;
	u64 flags = 0;

	flags |= kg_sites_running() ? KG_COUNTING : 0;
	flags |= kg_sample_running() ? KG_SAMPLING : 0;
	flags |= kg_sites_direct() ? KG_DIRECT : 0;
	flags |= stalled ? KG_STALLED : 0;
	flags |= take ? KG_TAKEN : 0;
	flags |= state->timer == KG_TIMER_RANDOM ? KG_RANDOM : 0;
	flags |= kg_modules_missed() ? KG_MODULES_MISSED : 0;

	memcpy(to->magic, KG_DUMP_MAGIC, sizeof(to->magic));
	to->version = cpu_to_le32(KG_DUMP_VERSION);
	to->header_bytes = cpu_to_le32(sizeof(*to));
	to->flags = cpu_to_le64(flags);
	to->sequence = cpu_to_le64(state->sequence);
	to->text_start = cpu_to_le64(state->text_start);
	to->text_end = cpu_to_le64(state->text_end);
	to->anchor = cpu_to_le64((unsigned long)register_ftrace_function);
	to->real_ns = cpu_to_le64(ktime_get_real_ns());
	to->mono_ns = cpu_to_le64(now);
	to->since_ns = cpu_to_le64(state->since_ns);
	to->counting_ns = cpu_to_le64(elapsed(state->counting_before, state->counting_since, now));
	to->sampling_ns = cpu_to_le64(elapsed(state->sampling_before, state->sampling_since, now));
	to->period_ns = cpu_to_le64(state->timer == KG_TIMER_TICK ? TICK_NSEC : state->period_ns);
	to->tick_ns = cpu_to_le64(TICK_NSEC);
	to->resolution_ns = cpu_to_le64(hrtimer_resolution);
	to->lost_calls = cpu_to_le64(lost_calls - lost_base);
	to->lost_samples = cpu_to_le64(ticks.lost - ticks_base.lost);
	to->late_samples = cpu_to_le64(ticks.late - ticks_base.late);
	to->user_samples = cpu_to_le64(ticks.user - ticks_base.user);
	to->idle_samples = cpu_to_le64(ticks.idle - ticks_base.idle);
	to->arc_capacity = cpu_to_le64(kg_table_capacity());
	to->sample_capacity = cpu_to_le64(kg_sample_capacity());
	to->memory_bytes = cpu_to_le64(kg_table_bytes() + kg_sample_bytes() + kg_snapshot_bytes());
	to->possible_cpus = cpu_to_le32(num_possible_cpus());
	to->online_cpus = cpu_to_le32(num_online_cpus());
	strscpy(to->release, init_utsname()->release, sizeof(to->release));
}

static u64 sum_of(const u64 *word, size_t bytes)
{
	const u64 *end = word + bytes / sizeof(*word);
	u64 sum = 0xcbf29ce484222325ULL;

	for (; word < end; word++)
		sum = (sum ^ le64_to_cpu(*(const __le64 *)word)) * 0x100000001b3ULL;
	return sum;
}

int kg_dump(bool take, void **dump, size_t *size, struct kg_said *said)
{
	bool stalled = kg_sites_running() && !kg_sentinels_counted();
	unsigned int arcs, number, n_arcs = 0, n_samples = 0;
	struct kg_dump_trailer *trailer;
	struct kg_dump_header *header;
	struct kg_dump_module *module;
	struct kg_dump_sample *sample;
	struct kg_dump_arc *arc;
	u64 now, ip, count, caller, callee, in_slots = 0;
	size_t room;

	if (!counts)
		return kg_fail(said, -ENODATA, "nothing was counted yet: give the command start first");
	room = sizeof(*header) + (size_t)arc_room * sizeof(*arc) + (size_t)sample_room * sizeof(*sample) +
	       MODULES_LISTED * sizeof(*module) + sizeof(*trailer);
	header = vzalloc(room);
	if (!header)
		return kg_fail(said, -ENOMEM, "no memory for a dump of %zu bytes", room);

	arcs = read_counters(&now);
	kg_state.sequence++;
	describe(header, now, take, stalled);

	arc = (struct kg_dump_arc *)(header + 1);
	for (number = 0; number < arcs; number++) {
		count = counts[number] - base[number];
		if (!count || !kg_table_arc(number, &caller, &callee))
			continue;
		arc[n_arcs].caller = cpu_to_le64(caller);
		arc[n_arcs].callee = cpu_to_le64(callee);
		arc[n_arcs++].count = cpu_to_le64(count);
	}
	sample = (struct kg_dump_sample *)(arc + n_arcs);
	for (number = 0; number < sample_room; number++) {
		u64 total;

		if (!kg_sample_slot(number, &ip, &total))
			continue;
		count = total - sample_base[number];
		if (take)
			sample_base[number] = total;
		if (!count)
			continue;
		in_slots += count;
		sample[n_samples].ip = cpu_to_le64(ip);
		sample[n_samples++].count = cpu_to_le64(count);
	}
	module = (struct kg_dump_module *)(sample + n_samples);
	number = kg_modules_list(module, MODULES_LISTED);
	header->arcs = cpu_to_le32(n_arcs);
	header->samples = cpu_to_le32(n_samples);
	header->kernel_samples = cpu_to_le64(in_slots + ticks.lost - ticks_base.lost);
	header->modules = cpu_to_le32(number);
	if (take)
		rebase(arcs, now);

	trailer = (struct kg_dump_trailer *)(module + number);
	*size = (void *)(trailer + 1) - (void *)header;
	trailer->bytes = cpu_to_le64(*size);
	trailer->sum = cpu_to_le64(sum_of((u64 *)header, (void *)&trailer->sum - (void *)header));
	trailer->magic = cpu_to_le64(KG_DUMP_END);
	*dump = header;
	return 0;
}
