// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a device file is an open file, not a number. Duplicated, inherited and passed
 * descriptors all mean the same file. A program that closes or reuses numbers that it did not open
 * loses nothing. Patterns find the files of the device.
 * Quick: half
 */
#include <fcntl.h>
#include <glob.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define TOP 1100

struct alloc_pd {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
};

static int alloc_pd(int fd)
{
	uint32_t answer[3] = {~0u, ~0u, ~0u};
	struct alloc_pd cmd = {3, sizeof(cmd) / 4, 3, (uintptr_t)answer};

	if (write(fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return -errno;
	return answer[0] == ~0u ? -EIO : 0;
}

static void check_device(int fd)
{
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(major(st.st_rdev), 231);
	CHECK_EQ(minor(st.st_rdev), 192);
}

static void lying_writes(int fd)
{
	volatile uintptr_t nowhere = 16;
	char bytes[64] = {0};

	for (size_t len = 0; len < 8; len++) {
		CHECK_EQ(write(fd, bytes, len), -1);
		CHECK_EQ(errno, EINVAL);
	}
	CHECK_EQ(write(fd, bytes, 17), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(write(fd, (void *)nowhere, 16), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(ioctl(fd, 0xc0181b01, bytes), -1);
	CHECK_EQ(errno, ENOTTY);
}

/* A device takes a vector as one write for each piece. */
static void vectored(int fd)
{
	uint32_t answer[2][3];
	struct alloc_pd cmd[2] = {
		{3, 4, 3, (uintptr_t)answer[0]},
		{3, 4, 3, (uintptr_t)answer[1]},
	};
	struct iovec iov[2] = {{&cmd[0], sizeof(cmd[0])}, {&cmd[1], sizeof(cmd[1])}};

	CHECK_EQ(writev(fd, iov, 2), 2 * sizeof(cmd[0]));
	CHECK(answer[0][0] != answer[1][0]);
}

/* How often the pattern is found as that path. */
static int found(const char *pattern, int flags, const char *path)
{
	glob_t list = {.gl_offs = 0};
	int n = 0, ret = glob(pattern, flags, NULL, &list);

	CHECK(ret == 0 || ret == GLOB_NOMATCH);
	CHECK(!(list.gl_flags & GLOB_ALTDIRFUNC) && !list.gl_opendir);
	for (size_t i = 0; i < list.gl_pathc; i++)
		n += !strcmp(list.gl_pathv[i], path);
	globfree(&list);
	return n;
}

static void patterns(void)
{
	CHECK_EQ(found("/sys/class/infiniband/*", 0, "/sys/class/infiniband/mlx4_0"), 1);
	CHECK_EQ(found("/sys/class/infiniband/*/ports/[1-9]", GLOB_ERR,
		       "/sys/class/infiniband/mlx4_0/ports/1"),
		 1);
	CHECK_EQ(found("/sys/cla*/{infiniband,net}/mlx4_?", GLOB_BRACE,
		       "/sys/class/infiniband/mlx4_0"),
		 1);
	CHECK_EQ(found("/dev/infiniband/uverbs*", GLOB_MARK, "/dev/infiniband/uverbs0"), 1);
	CHECK_EQ(found("/sys/class/infiniband/*", GLOB_ONLYDIR | GLOB_MARK,
		       "/sys/class/infiniband/mlx4_0/"),
		 1);
	CHECK_EQ(found("/proc/self/statu?", 0, "/proc/self/status"), 1);
	CHECK_EQ(found("/sys/class/infiniband/mlx9*", 0, ""), 0);
}

static void names(void)
{
	struct stat st;
	char link[256];
	int dir, fd;

	CHECK_EQ(stat("/dev/infiniband/uverbs0", &st), 0);
	CHECK(S_ISCHR(st.st_mode) && minor(st.st_rdev) == 192);
	CHECK_EQ(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
	CHECK_EQ(access("/dev/infiniband/uverbs77", F_OK), -1);
	CHECK_EQ(open("/dev/infiniband/uverbs77", O_RDWR), -1);
	CHECK_EQ(errno, ENOENT);
	fd = open("/dev/char/231:192", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	check_device(fd);
	CHECK_EQ(close(fd), 0);
	dir = open("/dev//infiniband/.", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	fd = openat(dir, "uverbs0", O_RDWR);
	CHECK(fd >= 0);
	check_device(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	close(fd);
	close(dir);
	CHECK(realpath("/sys/class/infiniband/mlx4_0/device", link) && !strncmp(link, "/sys/", 5));
	CHECK_EQ(access(link, F_OK), 0);
	CHECK_EQ(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20), -1);
	CHECK_EQ(errno, EPROTONOSUPPORT);
}

/* Runs in a new program, which knows only the number of the descriptor. */
static int other_image(const char *number)
{
	int fd = atoi(number);

	check_device(fd);
	lying_writes(fd);
	return 0;
}

static void through_exec(const char *self, int fd)
{
	char number[16];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(number, sizeof(number), "%d", fd);
		execl(self, self, number, NULL);
		_exit(127);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static int passed;

static void receiver(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};

	CHECK_EQ(recvmsg(sock, &msg, 0), 1);
	memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(passed));
	check_device(passed);
}

static void pass_to(int sock, int fd)
{
	char byte = 0;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(sock, &msg, 0), 1);
}

static struct side s;
static struct ibv_qp *a, *b;

/* Sends a message and takes the event of its completion. This uses all that the shim does, once. */
static void one_message(uint64_t id)
{
	send_with_event(&s, a, b, id);
}

static bool ours(int fd)
{
	return fd < 3 || fd == s.context->cmd_fd || fd == s.context->async_fd ||
	       fd == s.channel->fd;
}

/*
 * Closes all descriptors from 3 on, but for those of the verbs, and then opens other files under
 * the same numbers. The shim does not see these system calls, and must not write a byte into the
 * files. shim_closing.c has the C library's functions.
 */
static void strangers(void)
{
	struct ibv_pd *pd;
	int pipefd[2], n = 0;
	struct rlimit files;
	char byte;

	/* So numbers beyond TOP stay free. */
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (int fd = 3; fd < TOP; fd++)
		if (!ours(fd) && syscall(SYS_close, fd) == 0)
			n++;
	CHECK(n > 0);
	one_message(2);
	CHECK_EQ(pipe2(pipefd, O_NONBLOCK), 0);
	for (int fd = 3; fd < TOP; fd++)
		if (!ours(fd) && fd != pipefd[0] && fd != pipefd[1])
			syscall(SYS_dup3, pipefd[1], fd, 0);
	one_message(3);
	pd = ibv_alloc_pd(s.context);
	CHECK(pd);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(read(pipefd[0], &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	for (int fd = 3; fd < TOP; fd++)
		if (!ours(fd))
			syscall(SYS_close, fd);
}

int main(int argc, char **argv)
{
	int fd, pair[2];
	pid_t child;

	if (argc > 1)
		return other_image(argv[1]);
	test_begin();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = spawn(receiver, pair[1]);

	side_open(&s, 8192, 16, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	names();
	patterns();
	fd = dup(s.context->cmd_fd);
	check_device(fd);
	CHECK_EQ(alloc_pd(fd), 0);
	lying_writes(fd);
	vectored(fd);
	through_exec(argv[0], fd);
	pass_to(pair[0], fd);
	join(child);
	close(fd);
	one_message(1);
	strangers();
	one_message(4);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return 0;
}
