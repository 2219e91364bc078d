/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the kernel says of a process or thread in its stat file. Allocates no memory. */
#ifndef SOFTHCA_HOST_PROCSTAT_H
#define SOFTHCA_HOST_PROCSTAT_H

#include <stdbool.h>
#include <string.h>

#include "sys.h"

/*
 * Reads such a file into text. Returns what follows the name of the program: " S 1 ...". The name
 * is in parentheses and may contain anything. NULL with -errno in *err on failure; -ESRCH: the
 * process ended while the file was open.
 */
static inline const char *sh_proc_stat(const char *path, char *text, size_t size, int *err)
{
	int fd = sh_open_own(path, O_RDONLY);
	long len = fd < 0 ? fd : sh_read(fd, text, size - 1);
	char *end;

	if (fd >= 0)
		sh_close(fd);
	if (len <= 0) {
		*err = len ? (int)len : -ESRCH;
		return NULL;
	}
	text[len] = '\0';
	end = strrchr(text, ')');
	*err = end ? 0 : -EPROTO;
	return end ? end + 1 : NULL;
}

#define SH_PF_EXITING 0x4 /* in do_exit(): the thread is past its last instruction of user code */

/*
 * The state, and the flags, which are the seventh field, in what sh_proc_stat() returns. False: it
 * is not that. By hand, since a handler may jump out of the caller, and sscanf() is not left so.
 */
static inline bool sh_proc_state(const char *at, char *state, unsigned int *flags)
{
	*flags = 0;
	for (int field = 1; field <= 7; field++) {
		if (*at++ != ' ')
			return false;
		if (field == 1)
			*state = *at;
		if (field < 7)
			at += strcspn(at, " ");
	}
	if (*at < '0' || *at > '9')
		return false;
	while (*at >= '0' && *at <= '9')
		*flags = *flags * 10 + (unsigned int)(*at++ - '0');
	return true;
}

#endif
