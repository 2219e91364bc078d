// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: opening an XRC domain with every kind of descriptor, O_CREAT, O_EXCL, and a domain
 * that is there or not, gives the errno that a kernel gives; identity is device and inode.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "verbs_test.h"

static struct ibv_context *context;

static int open_domain(struct ibv_context *ctx, int fd, int oflag, struct ibv_xrc_domain **domain)
{
	errno = 0;
	*domain = ibv_open_xrc_domain(ctx, fd, oflag);
	if (!*domain)
		return errno;
	CHECK((*domain)->context == ctx);
	return 0;
}

static int try_open(int fd, int oflag)
{
	struct ibv_xrc_domain *domain;
	int err = open_domain(context, fd, oflag, &domain);

	if (!err)
		CHECK_EQ(ibv_close_xrc_domain(domain), 0);
	return err;
}

/* All eight cases for one descriptor. None of them may leave a domain behind. */
static void every_case(int fd)
{
	struct ibv_xrc_domain *held;

	CHECK_EQ(try_open(fd, 0), EAGAIN);
	CHECK_EQ(try_open(fd, O_EXCL), EAGAIN);
	CHECK_EQ(try_open(fd, O_CREAT), 0);
	CHECK_EQ(try_open(fd, O_CREAT | O_EXCL), 0);
	CHECK_EQ(try_open(fd, 0), EAGAIN); /* the last reference ended it */

	CHECK_EQ(open_domain(context, fd, O_CREAT, &held), 0);
	CHECK_EQ(try_open(fd, 0), 0);
	CHECK_EQ(try_open(fd, O_CREAT), 0);
	CHECK_EQ(try_open(fd, O_EXCL), EINVAL);
	CHECK_EQ(try_open(fd, O_CREAT | O_EXCL), EINVAL);
	CHECK_EQ(ibv_close_xrc_domain(held), 0);
	CHECK_EQ(try_open(fd, 0), EAGAIN);
}

static char *path_of(const char *name)
{
	char *path;

	CHECK(asprintf(&path, "%s/%s", getenv("WORK"), name) > 0);
	return path;
}

static void identity(void)
{
	char *path = path_of("domain"), *hard = path_of("hard-link"), *moved = path_of("moved");
	struct ibv_xrc_domain *held, *second;
	int first, again, linked, other;

	first = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(first >= 0);
	CHECK_EQ(open_domain(context, first, O_CREAT, &held), 0);

	again = open(path, O_RDONLY);
	CHECK_EQ(try_open(again, O_EXCL), EINVAL);
	CHECK_EQ(try_open(again, 0), 0);
	CHECK_EQ(link(path, hard), 0);
	linked = open(hard, O_RDONLY);
	CHECK_EQ(try_open(linked, 0), 0);

	/*
	 * Renamed and replaced: the domain belongs to the old inode, and the path names another
	 * file now.
	 */
	CHECK_EQ(rename(path, moved), 0);
	other = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK_EQ(try_open(other, 0), EAGAIN);
	close(again);
	again = open(moved, O_RDONLY);
	CHECK_EQ(try_open(again, 0), 0);

	/*
	 * Closed descriptors and removed names do not matter while the domain is open; its inode
	 * number is not reused.
	 */
	close(first);
	close(again);
	CHECK_EQ(unlink(moved), 0);
	CHECK_EQ(try_open(linked, 0), 0);
	CHECK_EQ(unlink(hard), 0);
	CHECK_EQ(open_domain(context, linked, 0, &second), 0);
	close(linked);
	CHECK_EQ(ibv_close_xrc_domain(held), 0);
	CHECK_EQ(try_open(other, 0), EAGAIN);
	CHECK_EQ(ibv_close_xrc_domain(second), 0);
	close(other);
	unlink(path);
	free(path);
	free(hard);
	free(moved);
}

/*
 * A bind-mounted file counts as the file that it is, not as the one whose name it has. Needs root;
 * without root the test says so.
 */
static void bind_mounted(void)
{
	char *real = path_of("real"), *over = path_of("over");
	struct ibv_xrc_domain *held;
	int fd = open(real, O_RDWR | O_CREAT, 0600), below = open(over, O_RDWR | O_CREAT, 0600),
	    through;

	CHECK(fd >= 0 && below >= 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(real, over, NULL, MS_BIND, NULL)) {
		printf("bind mounts not tried: %s\n", strerror(errno));
	} else {
		CHECK_EQ(open_domain(context, fd, O_CREAT, &held), 0);
		through = open(over, O_RDONLY);
		CHECK_EQ(try_open(through, 0), 0);
		CHECK_EQ(try_open(through, O_EXCL), EINVAL);
		CHECK_EQ(try_open(below, 0), EAGAIN);
		close(through);
		CHECK_EQ(umount2(over, MNT_DETACH), 0);
		CHECK_EQ(ibv_close_xrc_domain(held), 0);
	}
	close(fd);
	close(below);
	unlink(real);
	unlink(over);
	free(real);
	free(over);
}

static void other_device_file(void)
{
	struct ibv_context *second = open_device(0);
	struct ibv_xrc_domain *a, *b;
	char *path = path_of("shared");
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	/* Two open files of one device, one inode: one domain. */
	CHECK_EQ(open_domain(context, fd, O_CREAT, &a), 0);
	CHECK_EQ(open_domain(second, fd, 0, &b), 0);
	CHECK_EQ(ibv_close_xrc_domain(a), 0);
	CHECK_EQ(try_open(fd, 0), 0);
	CHECK_EQ(ibv_close_xrc_domain(b), 0);
	CHECK_EQ(try_open(fd, 0), EAGAIN);
	close(fd);
	unlink(path);
	free(path);
	ibv_close_device(second);
}

int main(void)
{
	struct ibv_xrc_domain *first, *second;
	char *path;
	int fd;

	test_begin();
	context = open_device(0);

	/* -1 creates a domain that no other context can open, with any flags. */
	for (int flags = 0; flags < 4; flags++) {
		int oflag = (flags & 1 ? O_CREAT : 0) | (flags & 2 ? O_EXCL : 0);

		CHECK_EQ(open_domain(context, -1, oflag, &first), 0);
		CHECK_EQ(open_domain(context, -1, oflag, &second), 0);
		CHECK(first->handle != second->handle);
		CHECK_EQ(ibv_close_xrc_domain(first), 0);
		CHECK_EQ(ibv_close_xrc_domain(second), 0);
	}

	path = path_of("file");
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	every_case(fd);
	close(fd);
	fd = open(path, O_RDONLY);
	every_case(fd);
	CHECK_EQ(unlink(path), 0);
	every_case(fd);
	close(fd);
	CHECK_EQ(try_open(fd, O_CREAT), EBADF);
	CHECK_EQ(try_open(fd, 0), EBADF);
	CHECK_EQ(try_open(100000, O_CREAT), EBADF);
	fd = open(getenv("WORK"), O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0);
	every_case(fd);
	close(fd);
	free(path);

	identity();
	other_device_file();
	bind_mounted();
	ibv_close_device(context);
	return 0;
}
