/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the kernel says of a process or thread in its stat file. Allocates no memory. */
#ifndef SOFTHCA_HOST_PROCSTAT_H
#define SOFTHCA_HOST_PROCSTAT_H

#include <string.h>

#include "sys.h"

/*
 * Reads such a file into text. Returns what follows the name of the program: " S 1 ...". The name
 * is in parentheses and may contain anything. NULL with -errno in *err on failure; -ESRCH: the
 * process ended while the file was open.
 */
static inline const char *sh_proc_stat(const char *path, char *text, size_t size, int *err)
{
	int fd = sh_open_aside(path, O_RDONLY);
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

#endif
