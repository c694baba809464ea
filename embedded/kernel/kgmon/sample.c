// SPDX-License-Identifier: GPL-2.0
/*
 * The timer: samples of each CPU's instruction pointer.
 *
 * Each CPU has a timer of its own. Its period is random, between half and one and a half of the mean: a period in step
 * with the tick never sees what the tick starts. That period is an option, to show what it misses.
 *
 * An interrupt sees only code with interrupts on. Code with interrupts off is charged to the instruction that switches
 * them on again; timer profiles say so.
 */
#include "kgmon.h"

#include <linux/atomic.h>
#include <linux/cpuhotplug.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>

/* Largest number of slots to probe for an address. */
#define PROBES 64

struct slot {
	u64 ip;
	atomic64_t count;
};

struct sampler {
	struct hrtimer timer;
	u64 random;
	struct kg_sample_counts counts;
};

static struct slot *slots;
static unsigned int capacity; /* a power of two */
static DEFINE_PER_CPU(struct sampler, timers);
static enum kg_timer how;
static u64 period;
static int hotplug_state;

/* Shared by all CPUs: samples are rare. */
static bool count_sample(u64 ip)
{
	u32 at = hash_64(ip, 32), probe;

	for (probe = 0; probe < PROBES; probe++, at++) {
		struct slot *slot = &slots[at & (capacity - 1)];
		u64 there = READ_ONCE(slot->ip);

		if (!there)
			there = cmpxchg64(&slot->ip, 0, ip) ?: ip;
		if (there == ip) {
			atomic64_inc(&slot->count);
			return true;
		}
	}
	return false;
}

/* xorshift64*: Vigna, An experimental exploration of Marsaglia's xorshift generators, scrambled (2016). */
static u64 next_random(u64 *state)
{
	u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

static u64 next_period(struct sampler *cpu)
{
	if (how == KG_TIMER_TICK)
		return TICK_NSEC;
	return period / 2 + mul_u64_u64_shr(next_random(&cpu->random), period, 64);
}

static void look(struct kg_sample_counts *counts)
{
	struct pt_regs *regs = get_irq_regs();

	if (!regs || user_mode(regs)) {
		counts->user++;
	} else if (is_idle_task(current) && !in_serving_softirq()) {
		counts->idle++;
	} else if (!count_sample(instruction_pointer(regs))) {
		counts->lost++;
	}
}

static enum hrtimer_restart expired(struct hrtimer *timer)
{
	struct sampler *cpu = container_of(timer, struct sampler, timer);

	look(&cpu->counts);
	cpu->counts.late += hrtimer_forward_now(timer, ns_to_ktime(next_period(cpu))) - 1;
	return HRTIMER_RESTART;
}

static int cpu_starts(unsigned int number)
{
	struct sampler *cpu = this_cpu_ptr(&timers);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(&cpu->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	cpu->timer.function = expired;
#else
	hrtimer_setup(&cpu->timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#endif
	if (how == KG_TIMER_TICK) {
		/* The kernel's tick also expires at multiples of its length. */
		u64 ticks = div64_u64(ktime_get_ns(), TICK_NSEC) + 2;

		hrtimer_start(&cpu->timer, ns_to_ktime(ticks * TICK_NSEC), HRTIMER_MODE_ABS_PINNED_HARD);
	} else {
		hrtimer_start(&cpu->timer, ktime_add_ns(ktime_get(), next_period(cpu)), HRTIMER_MODE_ABS_PINNED_HARD);
	}
	return 0;
}

static int cpu_stops(unsigned int number)
{
	hrtimer_cancel(&per_cpu(timers, number).timer);
	return 0;
}

int kg_sample_start(const struct kg_options *options, struct kg_said *said)
{
	int cpu, state;

	how = options->timer;
	period = options->period_ns;
	if (how == KG_TIMER_OFF)
		return 0;
	for_each_possible_cpu(cpu)
		/* Nonzero, and different for each CPU. */
		per_cpu(timers, cpu).random = (options->seed + cpu + 1) * 0x9e3779b97f4a7c15ULL | 1;
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "kgmon:online", cpu_starts, cpu_stops);
	if (state < 0) {
		how = KG_TIMER_OFF;
		return kg_fail(said, state, "no timers (%d)", state);
	}
	hotplug_state = state;
	return 0;
}

void kg_sample_stop(void)
{
	if (hotplug_state)
		cpuhp_remove_state(hotplug_state);
	hotplug_state = 0;
	how = KG_TIMER_OFF;
}

bool kg_sample_running(void)
{
	return hotplug_state != 0;
}

void kg_sample_read(struct kg_sample_counts *counts)
{
	int cpu;

	memset(counts, 0, sizeof(*counts));
	for_each_possible_cpu(cpu) {
		const struct kg_sample_counts *of = &per_cpu(timers, cpu).counts;

		counts->user += READ_ONCE(of->user);
		counts->idle += READ_ONCE(of->idle);
		counts->lost += READ_ONCE(of->lost);
		counts->late += READ_ONCE(of->late);
	}
}

bool kg_sample_slot(unsigned int number, u64 *ip, u64 *count)
{
	*ip = READ_ONCE(slots[number].ip);
	*count = atomic64_read(&slots[number].count);
	return *ip != 0;
}

/* Nobody may be sampling. */
void kg_sample_clear(void)
{
	int cpu;

	if (slots)
		memset(slots, 0, array_size(capacity, sizeof(*slots)));
	for_each_possible_cpu(cpu)
		memset(&per_cpu(timers, cpu).counts, 0, sizeof(struct kg_sample_counts));
}

int kg_sample_make(unsigned int samples, struct kg_said *said)
{
	if (samples == capacity)
		return 0;
	kg_sample_free();
	slots = vzalloc(array_size(samples, sizeof(*slots)));
	if (!slots)
		return kg_fail(said, -ENOMEM, "no memory for %u addresses of samples", samples);
	capacity = samples;
	kg_sample_clear();
	return 0;
}

void kg_sample_free(void)
{
	vfree(slots);
	slots = NULL;
	capacity = 0;
}

unsigned int kg_sample_capacity(void)
{
	return capacity;
}

size_t kg_sample_bytes(void)
{
	return capacity * sizeof(struct slot);
}
