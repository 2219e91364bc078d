// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A sysfs tree in a temporary directory, for SYSFS_PATH. Each function ends the test program if it
 * fails.
 */
#ifndef FAKE_SYSFS_H
#define FAKE_SYSFS_H

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_PATH_MAX 512

static inline void fake_die(const char *what, const char *path)
{
	perror(what);
	fprintf(stderr, "path: %s\n", path);
	abort();
}

/* A new directory below $TMPDIR. */
static inline void fake_tree_make(char *root)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, FAKE_PATH_MAX, "%s/ibverbs-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		fake_die("mkdtemp", root);
}

static inline int fake_remove_(const char *path, const struct stat64 *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void fake_tree_remove(const char *root)
{
	nftw64(root, fake_remove_, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes (or rewrites) root/path, with the directories on the way. */
static inline void fake_file(const char *root, const char *path, const char *format, ...)
{
	char name[2 * FAKE_PATH_MAX], *slash;
	va_list args;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(name, 0755);
		*slash = '/';
	}

	f = fopen(name, "w");
	if (!f)
		fake_die("fopen", name);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	if (fclose(f))
		fake_die("fclose", name);
}

/* The class of uverbs devices, with this ABI version and no device. */
static inline void fake_sysfs_abi(const char *root, int abi)
{
	fake_file(root, "class/infiniband_verbs/abi_version", "%d\n", abi);
}

/* A uverbs device of the named RDMA device; driver is what the test's plug-ins look at. */
static inline void fake_sysfs_device(const char *root, const char *uverbs, const char *ibdev,
				     const char *driver)
{
	char path[FAKE_PATH_MAX];

	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/ibdev", uverbs);
	fake_file(root, path, "%s\n", ibdev);
	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/abi_version", uverbs);
	fake_file(root, path, "3\n");
	snprintf(path, sizeof(path), "class/infiniband_verbs/%s/device/driver_name", uverbs);
	fake_file(root, path, "%s\n", driver);
	snprintf(path, sizeof(path), "class/infiniband/%s/node_type", ibdev);
	fake_file(root, path, "1: CA\n");
	snprintf(path, sizeof(path), "class/infiniband/%s/node_guid", ibdev);
	fake_file(root, path, "0002:c903:0001:0203\n");
}

#endif
