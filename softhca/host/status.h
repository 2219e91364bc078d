/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the kernel says of a process or thread in its status file. */
#ifndef SOFTHCA_HOST_STATUS_H
#define SOFTHCA_HOST_STATUS_H

#include <stddef.h>

struct sh_status_field {
	const char *name; /* "State:": what a line begins with */
	char value[24];	  /* what follows it, cut off; "": the file has no such line */
};

/* Reads n fields of such a file. 0 or -errno. Allocates no memory. */
int sh_status_read(const char *path, struct sh_status_field *field, size_t n);

#endif
