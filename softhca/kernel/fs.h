/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Files and directories of the instance. 0 or -errno.
 */
#ifndef SOFTHCA_KERNEL_FS_H
#define SOFTHCA_KERNEL_FS_H

int file_write(int dirfd, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same of a file that programs cannot write: its mode says so. */
int file_attribute(int dirfd, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int dir_make(int dirfd, const char *path); /* with its parents */

#endif
