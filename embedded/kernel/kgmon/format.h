/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kgmon's dump, which reading /dev/kgmon returns after the command `dump` or `take`.
 *
 * Everything is little endian and aligned to eight bytes: the header, the arcs, the samples, the modules, and the
 * trailer. crates/kgmon reads it; a change here raises KG_DUMP_VERSION.
 */
#ifndef KG_FORMAT_H
#define KG_FORMAT_H

#include <linux/types.h>

#define KG_DUMP_MAGIC "KTKGMON"
#define KG_DUMP_END 0x444e454e4f4d474bULL /* "KGMONEND" */
#define KG_DUMP_VERSION 1

/* The header's flags. */
#define KG_COUNTING (1ULL << 0)	 /* calls were being counted */
#define KG_SAMPLING (1ULL << 1)	 /* the timer was running */
#define KG_DIRECT (1ULL << 2)	 /* functions of the kernel call our trampoline themselves */
#define KG_STALLED (1ULL << 3)	 /* counting was on, but our own calls were not counted: ftrace is off */
#define KG_TAKEN (1ULL << 4)	 /* no later dump has the counts of this one */
#define KG_RANDOM (1ULL << 5)	 /* the timer's period is random; otherwise it follows the tick */
#define KG_MODULES_MISSED (1ULL << 6) /* functions of a module that was loaded later are not counted */

struct kg_dump_header {
	char magic[8];
	__le32 version;
	__le32 header_bytes;
	__le64 flags;
	__le64 sequence;     /* number of this dump since the module was loaded, from 1 */
	__le64 text_start;   /* of the kernel, from the module's parameters; 0: unknown */
	__le64 text_end;
	__le64 anchor;	     /* address of register_ftrace_function, to find the kernel's base (KASLR) */
	__le64 real_ns;	     /* CLOCK_REALTIME and CLOCK_MONOTONIC of the snapshot */
	__le64 mono_ns;
	__le64 since_ns;     /* CLOCK_MONOTONIC of the last reset, or of the first start */
	__le64 counting_ns;  /* how long calls were counted since then */
	__le64 sampling_ns;  /* how long the timer ran since then */
	__le64 period_ns;    /* mean period of the timer on each CPU */
	__le64 tick_ns;	     /* the kernel's tick */
	__le64 resolution_ns; /* of the kernel's timers */
	__le64 lost_calls;   /* calls that found no room for their arc */
	__le64 lost_samples; /* samples that found no room for their address */
	__le64 late_samples; /* expiries that were skipped, as the one before came too late */
	__le64 user_samples; /* the CPU was in user mode */
	__le64 idle_samples; /* the CPU had nothing to do */
	__le64 kernel_samples; /* all others, including lost_samples; see below */
	__le64 arc_capacity;
	__le64 sample_capacity;
	__le64 memory_bytes; /* what the module holds for counters, on all CPUs */
	__le32 possible_cpus;
	__le32 online_cpus;
	__le32 arcs;	     /* numbers of the records that follow */
	__le32 samples;
	__le32 modules;
	__le32 reserved;
	char release[64];
};

/*
 * The counts of all samples in a dump and lost_samples sum exactly to kernel_samples, on any number of CPUs and
 * however many samples come while the dump is made. With `take` each sample is in exactly one dump.
 *
 * They are not read at one instant: user_samples, idle_samples, late_samples and lost_samples are read after mono_ns,
 * one CPU after the other, and then the slots of the samples. A sample that comes in between is in this dump or in
 * the next one.
 */

/* Calls from one call site to one function. */
struct kg_dump_arc {
	__le64 caller; /* the return address: just after the call instruction */
	__le64 callee; /* the function's call to ftrace, at its beginning */
	__le64 count;
};

struct kg_dump_sample {
	__le64 ip;
	__le64 count;
};

/* Addresses of a module's code. */
struct kg_dump_module {
	__le64 start;
	__le64 end;
	__le64 gone; /* 1: it was unloaded since the last reset */
	char name[56];
};

struct kg_dump_trailer {
	__le64 bytes; /* of the whole dump */
	__le64 sum;   /* FNV-1a of the words before, 64 bits each */
	__le64 magic;
};

#endif
