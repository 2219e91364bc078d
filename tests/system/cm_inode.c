// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An inode of an rdma_cm file that was closed comes again: as that of another one, which a process
 * gets from another process, and as that of a FIFO of the program's own. The process takes neither
 * for the first file. Exits 1 and names what is not so, and 77 if the file system gives no inode
 * twice.
 *
 * Usage: cm_inode DIRECTORY, on the file system of the instance
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "pass_fd.h"

enum { CREATE_ID = 0, DESTROY_ID = 1, RESOLVE_IP = 3, GET_EVENT = 12, TRIES = 64 };
static uint32_t event[84]; /* the type is at 3 */

struct command {
	uint32_t number;
	uint16_t in, out;
	union {
		struct {
			uint64_t uid, response;
			uint16_t space;
			uint8_t type;
		} create;
		struct {
			uint64_t response;
			uint32_t id;
		} destroy;
		struct {
			struct sockaddr_in6 from, to;
			uint32_t id, ms;
		} resolve;
		uint64_t response;
	};
};

static int give(int fd, const struct command *c)
{
	size_t len = 8 + (size_t)c->in;

	return write(fd, c, len) == (ssize_t)len ? 0 : errno;
}

/* Returns the number, or -1. */
static int create(int fd)
{
	uint32_t number;
	struct command c = {.number = CREATE_ID, .in = 24, .out = 4};

	c.create.response = (uintptr_t)&number;
	c.create.uid = 1;
	c.create.space = 0x106;
	c.create.type = 2;
	return give(fd, &c) ? -1 : (int)number;
}

static int destroy(int fd, int id)
{
	uint32_t reported;
	struct command c = {.number = DESTROY_ID, .in = 16, .out = 4};

	c.destroy.response = (uintptr_t)&reported;
	c.destroy.id = (uint32_t)id;
	return give(fd, &c);
}

/* One event. */
static int resolve(int fd, int id)
{
	struct command c = {.number = RESOLVE_IP, .in = 64};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	memcpy(&c.resolve.to, &to, sizeof(to));
	c.resolve.id = (uint32_t)id;
	c.resolve.ms = 1000;
	return give(fd, &c);
}

static int get_event(int fd)
{
	struct command c = {
		.number = GET_EVENT, .in = 8, .out = sizeof(event), .response = (uintptr_t)event};

	return give(fd, &c);
}

static int open_channel(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR);

	CHECK(fd >= 0);
	return fd;
}

static ino_t inode(int fd)
{
	struct stat st;

	CHECK(!fstat(fd, &st));
	return st.st_ino;
}

/*
 * A channel that this process knows, and has closed. The daemon has removed its file when it has
 * answered again.
 */
static ino_t known(int other)
{
	int fd = open_channel(), id = create(fd);
	ino_t ino = inode(fd);

	CHECK(id >= 0 && !destroy(fd, id));
	CHECK(!close(fd));
	id = create(other);
	CHECK(id >= 0 && !destroy(other, id));
	return ino;
}

/*
 * Gets an inode, and answers with a channel of another one, or of that one. Then asks for an event
 * by it, once it may.
 */
static void other_process(int line)
{
	ino_t wanted;
	char byte;

	while (read(line, &wanted, sizeof(wanted)) == sizeof(wanted)) {
		int fds[TRIES], n = 0, id;

		do
			fds[n] = open_channel();
		while (inode(fds[n]) != wanted && ++n < TRIES);
		n -= n == TRIES;
		CHECK(!pass_fd(line, fds[n]));
		id = create(fds[n]);
		CHECK(id >= 0);
		CHECK(read(line, &byte, 1) == 1);
		if (byte == 'w')
			usleep(300000);
		if (byte == 'w')
			CHECK(!resolve(fds[n], id));
		CHECK(read(line, &byte, 1) == 1);
		do
			close(fds[n]);
		while (n--);
	}
	exit(0);
}

/* What is done with the other one first: to wait, or not to. False: its inode is another. */
static bool another_channel(int other, int line, bool wait)
{
	ino_t ino = known(other);
	bool same;
	int fd, id;

	CHECK(write(line, &ino, sizeof(ino)) == sizeof(ino));
	fd = take_fd(line);
	CHECK(fd >= 0);
	CHECK(write(line, wait ? "w" : "c", 1) == 1);
	if (wait)
		CHECK(!get_event(fd) && event[3] == 0);
	id = create(fd);
	CHECK(id >= 0 && !destroy(fd, id));
	same = inode(fd) == ino;
	CHECK(!close(fd));
	CHECK(write(line, "e", 1) == 1);
	return same;
}

static bool own_fifo(int other, const char *dir)
{
	ino_t ino = known(other);
	int fds[TRIES], n = 0;
	char name[4096], byte;
	bool same;

	do {
		snprintf(name, sizeof(name), "%s/own.%d", dir, n);
		CHECK(!mkfifo(name, 0600));
		fds[n] = open(name, O_RDWR | O_NONBLOCK);
		CHECK(fds[n] >= 0);
	} while (inode(fds[n]) != ino && ++n < TRIES);
	same = n < TRIES;
	n -= !same;
	CHECK(write(fds[n], "a", 1) == 1);
	CHECK(read(fds[n], &byte, 1) == 1 && byte == 'a');
	do {
		snprintf(name, sizeof(name), "%s/own.%d", dir, n);
		CHECK(!unlink(name) && !close(fds[n]));
	} while (n--);
	return same;
}

int main(int argc, char **argv)
{
	int pair[2], other, seen[3] = {0};
	pid_t child;

	CHECK(argc == 2);
	alarm(60);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(pair[0]);
		other_process(pair[1]);
	}
	close(pair[1]);
	other = open_channel();
	for (int i = 0; i < 8; i++) {
		seen[0] += another_channel(other, pair[0], false);
		seen[1] += another_channel(other, pair[0], true);
		seen[2] += own_fifo(other, argv[1]);
	}
	close(pair[0]);
	CHECK(waitpid(child, NULL, 0) == child);
	printf("an inode came again: %d, %d and %d times of 8\n", seen[0], seen[1], seen[2]);
	return seen[0] && seen[1] && seen[2] ? 0 : 77;
}
