/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Where unit tests have their instances; tests/place.sh says why. */
#ifndef SOFTHCA_PLACE_H
#define SOFTHCA_PLACE_H

#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <linux/magic.h>

/* Shared memory with 1 GiB or more that is free, or else /tmp. */
static inline const char *place(void)
{
	static const char shm[] = "/dev/shm";
	struct statfs fs;

	if (!statfs(shm, &fs) && fs.f_type == TMPFS_MAGIC &&
	    (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >= 1ULL << 30 &&
	    !access(shm, W_OK | X_OK))
		return shm;
	return "/tmp";
}

#endif
