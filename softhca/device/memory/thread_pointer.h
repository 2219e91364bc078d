/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Where the C library keeps what it has for each thread. The built-in function is in gcc since
 * version 11, and in clang for x86-64 since version 14. There the first word is its own address.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_THREAD_POINTER_H
#define SOFTHCA_DEVICE_MEMORY_THREAD_POINTER_H

#include <stdint.h>

static inline uint64_t sh_thread_pointer(void)
{
#ifdef __x86_64__
	uint64_t at;

	__asm__("mov %%fs:0, %0" : "=r"(at));
	return at;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

#endif
