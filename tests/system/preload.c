// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that knows of sockets alone, for tests of librspreload.so.
 *
 * preload kinds: prints a word for each kind of socket: rsocket or plain.
 * preload names: the same under other names: with sizes that the compiler does not know, with masks, for large files.
 * preload ranges: close_range() and closefrom().
 * preload many: several messages with a call, and what ioctl() does to sockets.
 * preload cut: a file becomes shorter while it is sent.
 * preload broken, preload broken-ioctl: the peer is killed, and calls in between do not hide that.
 * preload fork: children close what their parent uses, and cannot use it.
 * preload serve: prints its port, has a child serve one connection, and ends.
 * preload ask PORT: sends to that server, and prints what comes back.
 */
/* Makes read() __read_chk(), and so on. Compilers that do not optimize know no sizes. */
#undef _FORTIFY_SOURCE
#ifdef __OPTIMIZE__
#define _FORTIFY_SOURCE 2
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload.h"

static struct sockaddr_in addr = {.sin_family = AF_INET};

static void kinds(void)
{
	static const int domains[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
	int d, t, fd;

	for (d = 0; d < 2; d++)
		for (t = 0; t < 2; t++) {
			fd = socket(domains[d], types[t], 0);
			CHECK(fd >= 0);
			printf("%s%s", d + t ? " " : "", is_rsocket(fd) ? "rsocket" : "plain");
			CHECK(!close(fd));
		}
	printf("\n");
}

static int listen_there(void)
{
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(!listen(fd, 8));
	CHECK(!getsockname(fd, (struct sockaddr *)&addr, &len));
	return fd;
}

static void *connect_there(void *arg)
{
	int *fd = arg;

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(*fd >= 0);
	CHECK(!connect(*fd, (struct sockaddr *)&addr, sizeof(addr)));
	return NULL;
}

static void exchange(int from, int to)
{
	char data[5] = "";

	CHECK(write(from, "four", 4) == 4);
	CHECK(recv(to, data, 4, MSG_WAITALL) == 4);
	CHECK(!strcmp(data, "four"));
}

/* The compiler does not know them. */
static volatile size_t four = 4;
static volatile nfds_t one = 1;

static void checked_reads(int from, int to)
{
	char data[8] = "";
	int i;

	for (i = 0; i < 12; i++)
		CHECK(write(from, "four", 4) == 4);
	CHECK(recv(to, data, four, MSG_WAITALL) == 4 && !strcmp(data, "four"));
	/* What was sent at once is there at once. */
	for (i = 0; i < 5; i++) {
		memset(data, 0, sizeof(data));
		CHECK(read(to, data, four) == 4 && !strcmp(data, "four"));
		memset(data, 0, sizeof(data));
		CHECK(recvfrom(to, data, four, 0, NULL, NULL) == 4 && !strcmp(data, "four"));
	}
	CHECK(recv(to, data, four, MSG_WAITALL) == 4 && !strcmp(data, "four"));
}

static int select_one(int fd, const struct timespec *timeout, const sigset_t *mask)
{
	fd_set in;
	int ret;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	ret = pselect(fd + 1, &in, NULL, NULL, timeout, mask);
	CHECK(ret <= 0 || FD_ISSET(fd, &in));
	return ret;
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void waits(int from, int to)
{
	struct pollfd p[2] = {{.fd = to, .events = POLLIN}};
	struct sigaction act = {.sa_handler = on_signal};
	const struct timespec now = {0}, long_time = {.tv_sec = 100};
	sigset_t usr1, none;
	char data[8];

	/* A number of /dev/null is always readable. */
	CHECK(poll(p, one, 0) == 0);
	CHECK(ppoll(p, one, &now, NULL) == 0);
	CHECK(select_one(to, &now, NULL) == 0);
	/* A signal that waits for the mask of the call ends it. */
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK(!sigaction(SIGUSR1, &act, NULL));
	CHECK(!pthread_sigmask(SIG_BLOCK, &usr1, NULL));
	CHECK(!pthread_kill(pthread_self(), SIGUSR1));
	/* librdmacm looks for the end of a connection only now and then: here, in the call. */
	usleep(20000);
	CHECK(ppoll(p, one, NULL, &none) == -1 && errno == EINTR && signals == 1);
	CHECK(!pthread_kill(pthread_self(), SIGUSR1));
	CHECK(ppoll(p, one, &now, &usr1) == 0 && signals == 1);
	usleep(20000);
	CHECK(select_one(to, &long_time, &none) == -1 && errno == EINTR && signals == 2);

	CHECK(write(from, "four", 4) == 4);
	CHECK(poll(p, one, -1) == 1 && p[0].revents == POLLIN);
	CHECK(ppoll(p, one, &long_time, NULL) == 1 && p[0].revents == POLLIN);
	CHECK(select_one(to, NULL, &none) == 1);
	CHECK(recv(to, data, four, MSG_WAITALL) == 4);
}

static void copies(int from, int to)
{
	int fd = dup(from);

	CHECK(fd >= 0 && is_rsocket(fd));
	exchange(fd, to);
	exchange(to, fd);
	CHECK(dup3(from, 100, O_CLOEXEC) == 100);
	exchange(100, to);
	CHECK(!close(fd) && !close(100));
	exchange(from, to);
	CHECK(dup3(from, from, 0) == -1 && errno == EINVAL);
}

static void large_files(int from, int to)
{
	FILE *file = tmpfile();
	off64_t at = 3;
	char data[5] = "";

	CHECK(file && fputs("twofour", file) >= 0 && !fflush(file));
	CHECK(sendfile64(from, fileno(file), &at, 4) == 4 && at == 7);
	CHECK(recv(to, data, 4, MSG_WAITALL) == 4 && !strcmp(data, "four"));
	CHECK(fcntl64(from, F_GETFL) == O_RDWR);
	errno = 0;
	CHECK(sendfile(from, fileno(file), NULL, 0) == 0 && !errno);
	CHECK(!fclose(file));
}

/* Files of /proc have no size, and a pipe is no file that the system would send. */
static void other_files(int from, int to)
{
	char sent[64], expected[64];
	int fd = open("/proc/self/status", O_RDONLY), pipes[2];
	off_t at = 5;
	ssize_t n;

	CHECK(fd >= 0 && read(fd, expected, 20) == 20);
	CHECK(sendfile(from, fd, NULL, 10) == 10 && lseek(fd, 0, SEEK_CUR) == 30);
	CHECK(recv(to, sent, 10, MSG_WAITALL) == 10);
	CHECK(pread(fd, expected, 10, 20) == 10 && !memcmp(sent, expected, 10));
	CHECK(sendfile(from, fd, &at, 10) == 10 && at == 15 && lseek(fd, 0, SEEK_CUR) == 30);
	CHECK(recv(to, sent, 10, MSG_WAITALL) == 10);
	CHECK(pread(fd, expected, 10, 5) == 10 && !memcmp(sent, expected, 10));
	at = 0;
	while ((n = sendfile(from, fd, &at, 1000)) > 0)
		while (n > 0) {
			ssize_t got = recv(to, sent, sizeof(sent), 0);

			CHECK(got > 0);
			n -= got;
		}
	CHECK(n == 0 && at > 30);
	CHECK(!close(fd));
	CHECK(!pipe(pipes) && write(pipes[1], "pipe", 4) == 4);
	CHECK(sendfile(from, pipes[0], NULL, 4) == -1 && errno == EINVAL);
	CHECK(!close(pipes[0]) && !close(pipes[1]));
}

enum { FILE_SIZE = 8 << 20 };

static void *cut_file(void *arg)
{
	static char in[65536];
	const int *fds = arg;

	usleep(100000);
	CHECK(!ftruncate(fds[0], 1000));
	while (recv(fds[1], in, sizeof(in), 0) > 0)
		;
	return NULL;
}

/* A file that becomes shorter while it is sent: far more than the stream has room for waits until somebody reads. */
static void shorter_file(int from, int to)
{
	FILE *file = tmpfile();
	int fds[2] = {fileno(file), to};
	off_t at = 0;
	pthread_t thread;
	ssize_t n;

	CHECK(file && !ftruncate(fds[0], FILE_SIZE));
	CHECK(!pthread_create(&thread, NULL, cut_file, fds));
	n = sendfile(from, fds[0], &at, FILE_SIZE);
	CHECK(n > 0 && n < FILE_SIZE && at == n);
	CHECK(!shutdown(from, SHUT_WR));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!fclose(file));
}

static void check_zero(int fd)
{
	char data = 1;

	CHECK(read(fd, &data, 1) == 1 && !data);
}

/* A number that is taken away with others is none of an rsocket's any more. */
static void ranges(void)
{
	int fd, again;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0 && is_rsocket(fd) && dup2(fd, 200) == 200 && dup2(fd, 201) == 201);
	CHECK(!close_range((unsigned int)fd, (unsigned int)fd, 0));
	while ((again = open("/dev/zero", O_RDONLY)) != fd)
		CHECK(again >= 0 && again < fd);
	check_zero(again);
	CHECK(!close_range(201, 201, CLOSE_RANGE_CLOEXEC));
	CHECK(fcntl(201, F_GETFD) == FD_CLOEXEC && fcntl(201, F_GETFL) == O_RDWR);
	CHECK(fcntl(200, F_GETFL) == O_RDWR);
	closefrom(200);
	CHECK(fcntl(200, F_GETFL) == -1 && errno == EBADF);
	CHECK(fcntl(201, F_GETFL) == -1 && errno == EBADF);
	CHECK(!close(again));
}

static void in_child(const int fds[3])
{
	char data;
	int i, fd;

	for (i = 0; i < 3; i++) {
		errno = 0;
		CHECK(read(fds[i], &data, 1) == -1 && errno == EBADF);
		errno = 0;
		CHECK(write(fds[i], "no", 2) == -1 && errno == EBADF);
	}
	errno = 0;
	CHECK(accept(fds[0], NULL, NULL) == -1 && errno == EBADF);
	CHECK(dup2(fds[1], 100) == 100);
	CHECK(!close(100));
	for (i = 0; i < 3; i++)
		CHECK(!close(fds[i]));
	/* The device is the parent's; and the numbers are free for others. */
	for (i = 0; i < 3; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd >= 0 && !is_rsocket(fd));
	}
	exit(0);
}

static void forks(void)
{
	int fds[3];
	pthread_t thread;
	pid_t child;

	fds[0] = listen_there();
	CHECK(!pthread_create(&thread, NULL, connect_there, &fds[1]));
	fds[2] = accept(fds[0], NULL, NULL);
	CHECK(fds[2] >= 0);
	CHECK(!pthread_join(thread, NULL));
	CHECK(is_rsocket(fds[1]) && is_rsocket(fds[2]));
	child = fork();
	if (!child)
		in_child(fds);
	ended_well(child);
	exchange(fds[1], fds[2]);
	/* As what starts a program does, in the memory of its parent. */
	child = vfork();
	if (!child) {
		dup2(fds[1], 0);
		close(fds[1]);
		close(fds[2]);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	ended_well(child);
	exchange(fds[2], fds[1]);
	child = vfork();
	if (!child) {
		CHECK(fcntl(fds[1], F_DUPFD, 200) == 200);
		CHECK(fcntl(fds[1], F_DUPFD_CLOEXEC, 201) == 201);
		_exit(0);
	}
	ended_well(child);
	for (int fd = 200; fd < 202; fd++)
		CHECK(close(fd) == -1 && errno == EBADF);
	exchange(fds[1], fds[2]);
	CHECK(!system("true"));
	exchange(fds[1], fds[2]);
	CHECK(!close(fds[1]) && !close(fds[2]) && !close(fds[0]));
}

static void names(void)
{
	pthread_t thread;
	char data[8];
	int fds[3];

	fds[0] = listen_there();
	CHECK(!pthread_create(&thread, NULL, connect_there, &fds[1]));
	fds[2] = accept4(fds[0], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(fds[2] >= 0);
	CHECK(!pthread_join(thread, NULL));
	CHECK(is_rsocket(fds[1]) && is_rsocket(fds[2]));
	CHECK(recv(fds[2], data, four, 0) == -1 && errno == EAGAIN);
	CHECK(!fcntl(fds[2], F_SETFL, 0));
	checked_reads(fds[1], fds[2]);
	waits(fds[1], fds[2]);
	copies(fds[1], fds[2]);
	large_files(fds[1], fds[2]);
	other_files(fds[1], fds[2]);
	CHECK(!close(fds[1]) && !close(fds[2]) && !close(fds[0]));
}

/* A datagram's length comes out as it was sent, and a timeout is looked at after each one. */
static void many_datagrams(void)
{
	char out[3][8] = {"one", "seven77", ""}, in[4][8] = {{0}};
	struct sockaddr_in from[4], to = {.sin_family = AF_INET};
	struct iovec from_out[3], to_in[4];
	struct mmsghdr sends[3], receives[4];
	struct timespec none = {0, 0}, wrong = {0, 1000000000};
	int fds[2], n, len;
	socklen_t size = sizeof(to);

	memset(sends, 0, sizeof(sends));
	memset(receives, 0, sizeof(receives));
	for (n = 0; n < 2; n++) {
		fds[n] = socket(AF_INET, SOCK_DGRAM, 0);
		CHECK(is_rsocket(fds[n]));
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		to.sin_port = 0;
		CHECK(!bind(fds[n], (struct sockaddr *)&to, sizeof(to)));
	}
	CHECK(!getsockname(fds[1], (struct sockaddr *)&to, &size));
	for (n = 0; n < 4; n++) {
		to_in[n] = (struct iovec){in[n], sizeof(in[n])};
		receives[n].msg_hdr.msg_iov = &to_in[n];
		receives[n].msg_hdr.msg_iovlen = 1;
		receives[n].msg_hdr.msg_name = &from[n];
		receives[n].msg_hdr.msg_namelen = sizeof(from[n]);
	}
	for (n = 0; n < 3; n++) {
		from_out[n] = (struct iovec){out[n], strlen(out[n])};
		sends[n].msg_hdr.msg_iov = &from_out[n];
		sends[n].msg_hdr.msg_iovlen = 1;
		sends[n].msg_hdr.msg_name = &to;
		sends[n].msg_hdr.msg_namelen = sizeof(to);
	}
	CHECK(recvmmsg(fds[1], receives, 4, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
	CHECK(recvmmsg(fds[1], receives, 4, 0, &wrong) == -1 && errno == EINVAL);
	CHECK(sendmmsg(fds[0], sends, 0, 0) == 0);
	CHECK(sendmmsg(fds[0], sends, 3, 0) == 3);
	CHECK(sends[0].msg_len == 3 && sends[1].msg_len == 7 && sends[2].msg_len == 0);
	CHECK(recvmmsg(fds[1], receives, 1, 0, &none) == 1 && receives[0].msg_len == 3);
	CHECK(!strcmp(in[0], "one") && from[0].sin_family == AF_INET);
	CHECK(!ioctl(fds[1], FIONREAD, &len) && len == 7);
	CHECK(recvmmsg(fds[1], receives, 2, 0, NULL) == 2);
	CHECK(receives[0].msg_len == 7 && receives[1].msg_len == 0);
	CHECK(!strcmp(in[0], "seven77"));
	CHECK(!close(fds[0]) && !close(fds[1]));
}

static void many_of_stream(int from, int to)
{
	char in[2][4] = {{0}};
	struct iovec parts[2] = {{in[0], 4}, {in[1], 4}};
	struct mmsghdr m[2];
	int on = 1, len = -1;

	memset(m, 0, sizeof(m));
	for (int i = 0; i < 2; i++) {
		m[i].msg_hdr.msg_iov = &parts[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	/* As Python's sockets and many servers make themselves non-blocking. */
	CHECK(!ioctl(to, FIONBIO, &on) && fcntl(to, F_GETFL) & O_NONBLOCK);
	CHECK(recv(to, in[0], 4, 0) == -1 && errno == EAGAIN);
	CHECK(!ioctl(to, FIONREAD, &len) && len == 0);
	on = 0;
	CHECK(!ioctl(to, FIONBIO, &on) && !(fcntl(to, F_GETFL) & O_NONBLOCK));
	memcpy(in, "abcdefgh", 8);
	CHECK(sendmmsg(from, m, 2, 0) == 2 && m[0].msg_len == 4 && m[1].msg_len == 4);
	memset(in, 0, 8);
	CHECK(recv(to, in, 8, MSG_WAITALL | MSG_PEEK) == 8);
	CHECK(!ioctl(to, FIONREAD, &len) && len == 8);
	memset(in, 0, 8);
	CHECK(recvmmsg(to, m, 2, 0, NULL) == 2 && m[0].msg_len == 4 && m[1].msg_len == 4);
	CHECK(!memcmp(in, "abcdefgh", 8));
	/* What has come so far counts, and the error does not. */
	CHECK(write(from, "ijkl", 4) == 4 && !shutdown(from, SHUT_WR));
	CHECK(recvmmsg(to, m, 2, MSG_WAITFORONE, NULL) >= 1 && m[0].msg_len == 4);
	CHECK(ioctl(to, FIONREAD, NULL) == -1 && errno == EFAULT);
	CHECK(ioctl(to, TIOCGWINSZ, &len) == -1 && errno == ENOTTY);
}

/* Makes room after the time that the sender waits for its first message, so that a second one would go. */
static void *read_late(void *arg)
{
	static char in[65536];

	usleep(150000);
	while (recv((int)(intptr_t)arg, in, sizeof(in), 0) > 0)
		;
	return NULL;
}

/* A message that has gone in part ends the call: what follows would leave a hole in the stream. */
static void many_cut_short(int from, int to)
{
	pthread_t reader;
	static char large[20000000];
	struct iovec parts[2] = {{large, sizeof(large)}, {large, 1000}};
	struct timeval soon = {.tv_usec = 100000};
	struct mmsghdr m[2];

	memset(m, 0, sizeof(m));
	for (int i = 0; i < 2; i++) {
		m[i].msg_hdr.msg_iov = &parts[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK(!setsockopt(from, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)));
	CHECK(!pthread_create(&reader, NULL, read_late, (void *)(intptr_t)to));
	CHECK(sendmmsg(from, m, 2, 0) == 1);
	CHECK(m[0].msg_len > 0 && m[0].msg_len < sizeof(large));
	CHECK(!shutdown(from, SHUT_WR));
	CHECK(!pthread_join(reader, NULL));
}

static void connect_pair(int fds[3], int flags)
{
	pthread_t thread;

	fds[0] = listen_there();
	CHECK(!pthread_create(&thread, NULL, connect_there, &fds[1]));
	fds[2] = flags ? accept4(fds[0], NULL, NULL, flags) : accept(fds[0], NULL, NULL);
	CHECK(!pthread_join(thread, NULL));
	CHECK(is_rsocket(fds[1]) && is_rsocket(fds[2]));
}

static void many(void)
{
	int fds[3];

	connect_pair(fds, 0);
	many_of_stream(fds[1], fds[2]);
	CHECK(!close(fds[1]) && !close(fds[2]) && !close(fds[0]));
	connect_pair(fds, 0);
	many_cut_short(fds[1], fds[2]);
	CHECK(!close(fds[2]) && !close(fds[1]) && !close(fds[0]));
	many_datagrams();
}

static void cut(void)
{
	int fds[3];

	connect_pair(fds, 0);
	shorter_file(fds[1], fds[2]);
	CHECK(!close(fds[1]) && !close(fds[2]) && !close(fds[0]));
}

/* The peer is killed when it has sent two bytes. No call in between makes that look like an orderly end. */
static void broken(bool by_ioctl)
{
	int ports[2], listener, fd, len = -1;
	char in[2][2];
	struct iovec parts[2] = {{in[0], 2}, {in[1], 2}};
	struct mmsghdr m[2];
	pid_t child;

	CHECK(!pipe(ports));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(read(ports[0], &addr, sizeof(addr)) == sizeof(addr));
		fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
		CHECK(write(fd, "ab", 2) == 2);
		pause();
	}
	listener = listen_there();
	CHECK(write(ports[1], &addr, sizeof(addr)) == sizeof(addr));
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0 && recv(fd, in[0], 2, MSG_PEEK) == 2);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	if (by_ioctl) {
		CHECK(read(fd, in[0], 2) == 2);
		do
			CHECK(!ioctl(fd, FIONREAD, &len) && len == 0);
		while (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 0);
		CHECK(!ioctl(fd, FIONREAD, &len) && len == 0);
	} else {
		memset(m, 0, sizeof(m));
		for (int i = 0; i < 2; i++) {
			m[i].msg_hdr.msg_iov = &parts[i];
			m[i].msg_hdr.msg_iovlen = 1;
		}
		CHECK(recvmmsg(fd, m, 2, 0, NULL) == 1 && m[0].msg_len == 2);
	}
	errno = 0;
	CHECK(read(fd, in[0], 2) == -1 && errno == ECONNRESET);
	CHECK(read(fd, in[0], 2) == 0);
	CHECK(!close(fd) && !close(listener));
}

static bool cloexec(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	CHECK(flags == 0 || flags == FD_CLOEXEC);
	return flags;
}

static int same(int fd, bool wanted)
{
	CHECK(is_rsocket(fd) && cloexec(fd) == wanted);
	return fd;
}

/* FD_CLOEXEC is the number's, and as the program has set it, although what it executes gets no rsocket in any case. */
static void descriptor_flags(void)
{
	int fds[3], fd, twin;

	for (int i = 0; i < 2; i++) {
		fd = same(socket(AF_INET, i ? SOCK_DGRAM : SOCK_STREAM, 0), false);
		CHECK(!fcntl(fd, F_SETFD, FD_CLOEXEC) && cloexec(fd));
		CHECK(!fcntl(fd, F_SETFD, 0) && !cloexec(fd));
		CHECK(!close(fd));
		fd = same(socket(AF_INET, (i ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0), true);
		/* A copy has its own. */
		twin = same(dup(fd), false);
		CHECK(!fcntl(twin, F_SETFD, FD_CLOEXEC) && !fcntl(fd, F_SETFD, 0));
		CHECK(cloexec(twin) && !cloexec(fd));
		CHECK(!close(twin));
		CHECK(same(fcntl(fd, F_DUPFD_CLOEXEC, twin), true) == twin && !close(twin));
		CHECK(same(fcntl(fd, F_DUPFD, twin), false) == twin && !close(twin));
		CHECK(same(dup3(fd, twin, O_CLOEXEC), true) == twin);
		CHECK(same(dup2(fd, twin), false) == twin && !close(twin));
		CHECK(!close(fd));
	}
	fd = same(socket(AF_INET, SOCK_STREAM, 0), false);
	CHECK(!close_range((unsigned int)fd, (unsigned int)fd, CLOSE_RANGE_CLOEXEC) && cloexec(fd));
	CHECK(!close(fd));
	for (int i = 0; i < 2; i++) {
		connect_pair(fds, i ? SOCK_CLOEXEC : 0);
		same(fds[2], i);
		CHECK(!close(fds[2]) && !close(fds[1]) && !close(fds[0]));
	}
}

static void serve(void)
{
	int listener = listen_there(), fd;
	char data[4];
	pid_t child;

	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	child = fork();
	if (!child) {
		CHECK(!close(listener));
		CHECK(recv(fd, data, 4, MSG_WAITALL) == 4);
		CHECK(write(fd, data, 4) == 4);
		exit(0);
	}
	CHECK(!close(fd));
	ended_well(child);
}

static void ask(const char *port)
{
	char data[5] = "";
	int fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)atoi(port));
	connect_there(&fd);
	CHECK(write(fd, "echo", 4) == 4);
	CHECK(recv(fd, data, 4, MSG_WAITALL) == 4);
	printf("%s\n", data);
	CHECK(!close(fd));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "kinds"))
		kinds();
	else if (!strcmp(what, "fork"))
		forks();
	else if (!strcmp(what, "names"))
		names();
	else if (!strcmp(what, "ranges"))
		ranges();
	else if (!strcmp(what, "flags"))
		descriptor_flags();
	else if (!strcmp(what, "many"))
		many();
	else if (!strcmp(what, "cut"))
		cut();
	else if (!strcmp(what, "broken"))
		broken(false);
	else if (!strcmp(what, "broken-ioctl"))
		broken(true);
	else if (!strcmp(what, "serve"))
		serve();
	else if (!strcmp(what, "ask") && argc > 2)
		ask(argv[2]);
	else
		return 2;
	return 0;
}
