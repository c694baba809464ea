/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kgmon: declarations shared by its files. docs/kgmon.md has the design.
 */
#ifndef KGMON_H
#define KGMON_H

/* Slots of the arc table, 16 bytes each. At most half of them are used. */
#define KG_SLOT_BITS 17
/*
 * The key of an arc is caller + callee * KG_MUL. Kernel code lies in the top 2 GiB of the address space, 16 MiB of which
 * at the very top are never code (arch/x86/include/asm/pgtable_64_types.h: MODULES_END), so that two callers are
 * less than KG_MUL apart and the key determines both. Its low bits are mixed well enough to serve as the hash.
 */
#define KG_MUL 0x7f9e3779
/* Mask of the key's bits that select its slot, in units of 8 bytes. */
#define KG_INDEX ((2 << KG_SLOT_BITS) - 2)

#ifndef __ASSEMBLY__

#include "format.h"

#include <linux/ftrace.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>

#ifndef CONFIG_X86_64
#error "kgmon is for x86-64: its keys and its trampoline are"
#endif

#define KG_SLOTS (1U << KG_SLOT_BITS)
#define KG_ARCS_DEFAULT (KG_SLOTS / 2)
#define KG_ARCS_MAX (KG_SLOTS / 2)
#define KG_SAMPLES_DEFAULT 65536U
#define KG_SAMPLES_MAX (1U << 22)
#define KG_PERIOD_DEFAULT 997000ULL /* ns */
#define KG_PERIOD_MIN 20000ULL
#define KG_PERIOD_MAX 1000000000ULL
#define KG_MESSAGE 256

enum kg_timer { KG_TIMER_OFF, KG_TIMER_RANDOM, KG_TIMER_TICK };
enum kg_entry_mode { KG_ENTRY_AUTO, KG_ENTRY_DIRECT, KG_ENTRY_GENERIC, KG_ENTRY_OFF };

/* Options of the command `start`. */
struct kg_options {
	char **filter; /* globs of functions to count; empty: all */
	unsigned int filters;
	char **except; /* globs of functions not to count */
	unsigned int exceptions;
	enum kg_entry_mode entry;
	enum kg_timer timer;
	u64 period_ns;
	u64 seed;
	unsigned int arcs;
	unsigned int samples;
	bool hold; /* stop when the file is closed */
};

/* Error message of a command. */
struct kg_said {
	char text[KG_MESSAGE];
};

/* ---- fail.c ---- */

/* Sets the error message, unless there is one; returns `error`. */
int __printf(3, 4) kg_fail(struct kg_said *said, int error, const char *format, ...);

/* ---- entry.S ---- */

/* Called by functions of the kernel at their beginning. */
void kg_entry(void);

/* ---- table.c: arcs ---- */

struct kg_slot {
	u64 key;
	u64 counter; /* a per-CPU address: the counter of this arc on each CPU */
};

extern struct kg_slot kg_slots[KG_SLOTS];

/* Returns the counter of a new arc, or the counter of lost calls. Callable from any context. */
unsigned long kg_insert(u64 key);
/* Counts a call. Callable from any context. */
void kg_count(unsigned long caller, unsigned long callee);

/* Makes room for so many arcs. Counts stay if the room was the same before. */
int kg_table_make(unsigned int arcs, struct kg_said *said);
void kg_table_free(void);
/* Allocate the counters; free them and keep their counts. Nobody may be counting. */
int kg_table_wake(struct kg_said *said);
void kg_table_rest(void);
/* Adds the counts that were kept when the counters were last freed. */
void kg_table_kept(u64 *counts, unsigned int arcs);
/* Forgets all arcs. Nobody may be counting. */
void kg_table_clear(void);
unsigned int kg_table_capacity(void);
size_t kg_table_bytes(void);
/* Arcs in use. */
unsigned int kg_table_used(void);
/* Adds this CPU's counts of the first `arcs` arcs, and of lost calls, to `counts` and `*lost`. */
void kg_table_read(int cpu, u64 *counts, unsigned int arcs, u64 *lost);
/* Returns the arc of a number; false if it is still being inserted. */
bool kg_table_arc(unsigned int number, u64 *caller, u64 *callee);
/* Calls of the sentinels so far. The sentinels are no arcs of the table, and take none of its room. */
void kg_table_sentinels(u64 *direct, u64 *generic);

/* ---- sites.c: the functions that call us ---- */

int kg_sites_start(const struct kg_options *options, struct kg_said *said);
void kg_sites_stop(void);
bool kg_sites_running(void);
bool kg_sites_direct(void);
/* Starts to count these functions of a module. */
int kg_sites_add(const unsigned long *sites, unsigned int count);
/* Checks whether a function of this name is to be counted. */
bool kg_sites_wanted(const char *name);
/* Number of counted functions in modules; subtracts so many that were unloaded. */
unsigned int kg_sites_in_modules(void);
void kg_sites_gone(unsigned int count);

/* ---- sentinel.c: counted functions whose calls we know, to check that counting works ---- */

void kg_sentinel_direct(void);
void kg_sentinel_generic(void);
/* Checks whether calls are being counted right now. */
bool kg_sentinels_counted(void);
/* Checks whether this address, where a function calls us, is at the beginning of `function`. */
static inline bool kg_begins(u64 callee, void (*function)(void))
{
	return callee - (unsigned long)function < 8; /* after an ENDBR at most */
}

/* ---- modules.c: modules, their addresses and their functions ---- */

int kg_modules_start(struct ftrace_ops *core, struct kg_said *said);
void kg_modules_stop(void);
int kg_modules_init(void);
void kg_modules_exit(void);
void kg_modules_forget(void);
bool kg_modules_missed(void);
unsigned int kg_modules_list(struct kg_dump_module *list, unsigned int room);

/* ---- sample.c: the timer ---- */

struct kg_sample_counts {
	u64 user, idle, lost, late; /* kernel samples are in the slots */
};

int kg_sample_make(unsigned int samples, struct kg_said *said);
void kg_sample_free(void);
void kg_sample_clear(void);
int kg_sample_start(const struct kg_options *options, struct kg_said *said);
void kg_sample_stop(void);
bool kg_sample_running(void);
unsigned int kg_sample_capacity(void);
size_t kg_sample_bytes(void);
void kg_sample_read(struct kg_sample_counts *counts);
/* Returns the address and count in a slot; false if it is empty. */
bool kg_sample_slot(unsigned int slot, u64 *ip, u64 *count);

/* ---- counting.c: state, protected by kg_lock ---- */

extern struct mutex kg_lock;

struct kg_state {
	enum kg_timer timer;
	u64 period_ns;
	u64 since_ns;	     /* of the last reset */
	u64 counting_since;  /* 0: not counting */
	u64 counting_before; /* ns, of earlier starts */
	u64 sampling_since;
	u64 sampling_before;
	u64 sequence;
	u64 text_start, text_end;
};

extern struct kg_state kg_state;

int kg_start(const struct kg_options *options, struct kg_said *said);
void kg_stop(void);
int kg_reset(struct kg_said *said);

/* ---- snapshot.c ---- */

int kg_snapshot_make(unsigned int arcs, unsigned int samples, struct kg_said *said);
void kg_snapshot_free(void);
size_t kg_snapshot_bytes(void);
/* Forget earlier counts without writing a counter. */
void kg_snapshot_clear(void);
int kg_snapshot_rebase(struct kg_said *said);
/* Makes a dump in vmalloc memory. With `take`, no later dump has its counts. */
int kg_dump(bool take, void **dump, size_t *size, struct kg_said *said);

/* ---- session.c: /dev/kgmon ---- */

int kg_device_init(void);
void kg_device_exit(void);

#endif /* __ASSEMBLY__ */
#endif
