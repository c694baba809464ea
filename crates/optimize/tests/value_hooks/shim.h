/* What kernel/gcov/values.c takes from the kernel, so that it runs as a part of a program. */
#pragma once
#include <features.h>
#undef __always_inline
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint32_t u32;
typedef uint64_t u64;
#define CONFIG_GCOV_VALUES 1
#define CONFIG_GCOV_VALUES_NODES NODES
#define __always_inline inline __attribute__((always_inline))
#define noinstr
#define __init
#define __alias(name) __attribute__((alias(#name)))
#define EXPORT_SYMBOL(name) _Static_assert(1, "")
#define EXPORT_PER_CPU_SYMBOL(name) _Static_assert(1, "")
/* A thread is to a program what a CPU is to the kernel. */
#define DECLARE_PER_CPU(type, name) extern __thread type name
#define DEFINE_PER_CPU(type, name) __thread type name
#define raw_cpu_read(it) (it)
#define raw_cpu_write(it, value) ((it) = (value))
#define READ_ONCE(it) (*(volatile typeof(it) *)&(it))
#define WRITE_ONCE(it, value) (*(volatile typeof(it) *)&(it) = (value))
#define smp_load_acquire(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define IS_ENABLED(option) (option)
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define kvzalloc(size, flags) calloc(1, size)
#define kvfree free
#define pr_warn(...) fprintf(stderr, __VA_ARGS__)
struct seq_file;
struct dentry;
#define seq_printf(seq, ...) fprintf(stderr, __VA_ARGS__)
#define DEFINE_SHOW_ATTRIBUTE(name) int (*name##_fops)(struct seq_file *, void *) = name##_show
#define debugfs_create_file(name, mode, dir, data, fops) ((void)(fops))

/* kernel/gcov/gcov.h */
typedef long gcov_type;
size_t store_gcov_u32(void *buffer, size_t off, u32 v);
size_t store_gcov_u64(void *buffer, size_t off, u64 v);
