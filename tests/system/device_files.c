// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For device_files.sh: the files of an instance's devices are opened with the flags that the
 * program says, and have no extended attributes. Ends at the first thing that is not so.
 */
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

static const char *const nodes[] = {"/dev/infiniband/umad0", "/dev/infiniband/issm0",
				    "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"};
#define NODES (sizeof(nodes) / sizeof(nodes[0]))

/* Another one of issm is opened when the daemon has heard of the last close. */
static int reopened(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags);
	while (fd < 0 && errno == EAGAIN && usleep(1000) == 0);
	return fd;
}

static int refused(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	CHECK(fd < 0);
	return errno;
}

/* What a read or a write says before it looks at anything else. */
static void ways(const char *path)
{
	static const int extra[] = {0,	    O_NONBLOCK,		 O_APPEND, O_APPEND | O_NONBLOCK,
				    O_SYNC, O_DSYNC | O_NONBLOCK};
	int null = open("/dev/null", O_RDONLY),
	    large = fcntl(null, F_GETFL); /* the kernel's O_LARGEFILE */
	char byte = 0;

	close(null);
	for (int way = O_RDONLY; way <= O_RDWR; way++)
		for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++) {
			int flags = way | extra[i], fd = reopened(path, flags | O_NOCTTY | O_TRUNC),
			    twin;

			CHECK(fd >= 0);
			CHECK((fcntl(fd, F_GETFL) & ~large) == flags);
			CHECK(fcntl(fd, F_GETFD) == 0);
			if (way == O_RDONLY) {
				errno = 0;
				CHECK(write(fd, &byte, 1) < 0 && errno == EBADF);
			}
			/* rdma_cm has no read(). */
			if (way == O_WRONLY && !strstr(path, "rdma_cm")) {
				errno = 0;
				CHECK(read(fd, &byte, 1) < 0 && errno == EBADF);
			}
			/* What changes later is the open file's, not the descriptor's. */
			twin = dup(fd);
			CHECK(fcntl(twin, F_SETFL, fcntl(twin, F_GETFL) ^ O_NONBLOCK) == 0);
			CHECK((fcntl(fd, F_GETFL) & ~large) == (flags ^ O_NONBLOCK));
			CHECK(close(twin) == 0 && close(fd) == 0);
			fd = reopened(path, flags | O_CLOEXEC);
			CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
			CHECK(close(fd) == 0);
		}
	CHECK(refused(path, O_RDWR | O_CREAT | O_EXCL) == EEXIST);
	CHECK(refused(path, O_RDWR | O_DIRECTORY) == ENOTDIR);
	CHECK(refused(path, O_RDWR | O_DIRECT) == EINVAL);
}

static void attributes(const char *path, int acl)
{
	static const char *const names[] = {"security.selinux", "security.capability", "user.mine"};
	char value[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		errno = 0;
		CHECK(getxattr(path, names[i], value, sizeof(value)) < 0 && errno == ENODATA);
		errno = 0;
		CHECK(lgetxattr(path, names[i], NULL, 0) < 0 && errno == ENODATA);
	}
	errno = 0;
	CHECK(getxattr(path, "system.posix_acl_access", value, sizeof(value)) < 0 && errno == acl);
	CHECK(listxattr(path, value, sizeof(value)) == 0);
	CHECK(llistxattr(path, NULL, 0) == 0);
	errno = 0;
	CHECK(setxattr(path, "user.mine", "x", 1, 0) < 0 &&
	      (errno == EPERM || errno == EOPNOTSUPP));
	errno = 0;
	CHECK(removexattr(path, "user.mine") < 0 && (errno == EPERM || errno == EOPNOTSUPP));
}

static int says_manager(void)
{
	FILE *f = fopen("/sys/class/infiniband/mlx4_0/ports/1/cap_mask", "re");
	unsigned int mask;

	CHECK(f && fscanf(f, "%x", &mask) == 1 && fclose(f) == 0);
	return !!(mask & 2);
}

/* Who has closed the file, or waited for the end of a program that had it, reads of no manager. */
static void manager(void)
{
	for (int i = 0; i < 200; i++) {
		int fd = open("/dev/infiniband/issm0", O_RDWR | O_CLOEXEC | O_NONBLOCK);

		CHECK(fd >= 0);
		CHECK(says_manager());
		CHECK(close(fd) == 0);
		CHECK(!says_manager());
	}
}

/* An attribute that no program can write. */
static void by_stdio(const char *path)
{
	static const char *const modes[] = {"w", "a", "r+", "w+e", "rb+"};
	FILE *f;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		errno = 0;
		CHECK(!fopen(path, modes[i]) && errno == EACCES);
	}
	f = fopen(path, "re");
	CHECK(f && fgetc(f) != EOF && fclose(f) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "manager")) {
		manager();
		return 0;
	}
	if (!strcmp(argv[1], "stdio")) {
		by_stdio("/sys/class/infiniband/mlx4_0/ports/1/state");
		return 0;
	}
	for (size_t i = 0; i < NODES; i++) {
		if (!strcmp(argv[1], "flags"))
			ways(nodes[i]);
		else
			attributes(nodes[i], ENODATA);
	}
	if (strcmp(argv[1], "flags")) {
		attributes("/sys/class/infiniband_mad/umad0/ibdev", EOPNOTSUPP);
		errno = 0;
		CHECK(llistxattr("/dev/infiniband/umad63", NULL, 0) < 0 && errno == ENOENT);
		errno = 0;
		CHECK(getxattr("/dev/infiniband/none", "user.mine", NULL, 0) < 0 &&
		      errno == ENOENT);
	}
	return 0;
}
