/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Functions that run on a stack of the shim's. */
#ifndef SOFTHCA_SHIM_STACK_H
#define SOFTHCA_SHIM_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* Can this processor's stack be changed? If not, everything runs on the caller's. */
#if defined(__x86_64__) || defined(__aarch64__)
#define STACK_OTHER 1
#else
#define STACK_OTHER 0
#endif

struct stack_call {
	int (*fn)(void *);
	void *arg;
	int result; /* what fn returned */
};

/* Runs the call on the stack that ends at top. */
void stack_at(char *top, struct stack_call *call);
/* Runs fn(arg) on a new stack of size bytes. Returns -ENOMEM, or what fn returns. */
int stack_new(size_t size, int (*fn)(void *), void *arg);
/*
 * Runs fn(arg) on one of a few stacks that are kept for this, and on the caller's if each is in use
 * or there is no memory. Returns what fn returns. Any thread may call it at any time.
 */
int stack_spare(int (*fn)(void *), void *arg);
/* The same, but waits a second for a stack: for a caller whose own may be small. */
int stack_spare_wait(int (*fn)(void *), void *arg);
/*
 * The same, but never on the caller's stack. 0: *result is what fn returned; -EBUSY: each stack is
 * in use;
 * -ENOMEM.
 */
int stack_spare_only(int (*fn)(void *), void *arg, int *result);
/* Is this thread in stack_spare(), but for the case that it runs on its own stack? */
bool stack_on_spare(void);
void stack_forked(void);

#endif
