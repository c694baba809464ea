/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#define __used __attribute__((used))
#define offsetof(type, member) __builtin_offsetof(type, member)
#define DEFINE(name, value) asm volatile("\n.ascii \"->" #name " %0 " #value "\"" : : "i"(value))
