/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Descriptors that softhca has for itself in a program, which knows nothing of them. Programs close
 * numbers that they did not open, and dup2() to them, while other threads use the device. The calls
 * that the shim stands in front of ask here first. sys.h has the functions that open and close such
 * descriptors.
 */
#ifndef SOFTHCA_HOST_DESCRIPTORS_H
#define SOFTHCA_HOST_DESCRIPTORS_H

#include <stdbool.h>

/*
 * A section: between these two no call of the program takes away a number that this thread has not
 * marked yet. Sections may be nested. The thread must not wait for anything in a section.
 */
void sh_section_begin(void);
void sh_section_end(void);

/*
 * From now on handlers of the program wait while their thread is in a section or a sweep, and fn()
 * is called when it is out of both.
 */
void sh_section_guard(void (*fn)(void));
/* Is this thread in a section or a sweep for which its handlers wait? */
bool sh_section_guarded(void);

enum sh_number {
	SH_NUMBER_FREE,
	SH_NUMBER_OWN,	 /* softhca's */
	SH_NUMBER_OTHER, /* the program's */
};

/* Whose is the number, in this process? */
enum sh_number sh_number_is(int fd);
/* The lowest number of softhca's from there on, or -1. */
int sh_number_own_from(unsigned int fd);

/*
 * A sweep: around a call of the program that takes many numbers away. No other thread gets a number
 * for softhca meanwhile. A thread that wants one waits for some milliseconds at most, since the
 * call may take long.
 */
void sh_sweep_begin(void);
void sh_sweep_end(void);

/* When the process begins, and in a forked child. */
void sh_descriptors_here(void);

#endif
