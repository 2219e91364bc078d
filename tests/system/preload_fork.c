// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a server that forks for each connection, and its clients, under librspreload.so with
 * RDMAV_FORK_SAFE=1: whoever speaks first, the connections are rsockets from then on. An end that
 * is gone, or knows nothing of this, keeps no child waiting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "preload.h"

enum { CLIENTS = 4 };

static struct sockaddr_in6 addr;

static void one_way(int from, const char *text)
{
	CHECK(write(from, text, 4) == 4);
}

static void other_way(int to, const char *text)
{
	char data[4];

	CHECK(recv(to, data, 4, MSG_WAITALL) == 4 && !memcmp(data, text, 4));
}

static int is_nodelay(int fd)
{
	int on = -1;
	socklen_t len = sizeof(on);

	CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len));
	return on;
}

static int come(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = addr.sin6_port}, from;
	socklen_t len = sizeof(from);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	CHECK(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK(!getpeername(fd, (struct sockaddr *)&from, &len) && from.sin_port == to.sin_port);
	return fd;
}

/* ---- What a child does with its connection, and a client ---- */

static void listens(int fd)
{
	other_way(fd, "hail");
	CHECK(is_rsocket(fd));
	one_way(fd, "ave!");
	CHECK(read(fd, &(char){0}, 1) == 0);
}

static void speaks(int fd)
{
	other_way(fd, "hail");
	CHECK(is_rsocket(fd) && is_nodelay(fd) == 1);
	one_way(fd, "ave!");
}

static void calls(void)
{
	int fd = come();

	one_way(fd, "hail");
	CHECK(is_rsocket(fd) && is_nodelay(fd) == 1);
	other_way(fd, "ave!");
	CHECK(!close(fd));
}

static void waits_and_calls(void)
{
	int fd = come();
	struct pollfd p = {.fd = fd, .events = POLLIN};

	CHECK(poll(&p, 1, 30000) == 1 && p.revents == POLLIN);
	speaks(fd);
	CHECK(!close(fd));
}

static void greets(int fd)
{
	one_way(fd, "hail");
	CHECK(is_rsocket(fd));
	other_way(fd, "ave!");
}

static void *read_there(void *arg)
{
	other_way(*(int *)arg, "ave!");
	return NULL;
}

/* By a thread for each way. */
static void calls_at_once(void)
{
	pthread_t thread;
	int fd = come();

	CHECK(!pthread_create(&thread, NULL, read_there, &fd));
	one_way(fd, "hail");
	CHECK(!pthread_join(thread, NULL) && is_rsocket(fd));
	CHECK(!close(fd));
}

/* As a program of inetd's kind takes its connection. */
static void as_input(int fd)
{
	CHECK(dup2(fd, 0) == 0 && dup2(0, 1) == 1 && !close(fd));
	CHECK(is_rsocket(0) && is_rsocket(1));
	other_way(0, "hail");
	one_way(1, "ave!");
}

static void says_nothing(void)
{
	(void)come();
	CHECK(!kill(getpid(), SIGKILL));
}

static void hears_nothing(int fd)
{
	CHECK(read(fd, &(char){0}, 1) <= 0 && !is_rsocket(fd));
}

/*
 * Without the mode: nobody listens for its rsocket, and it gets a socket. Its data tell the child
 * so.
 */
static void is_another(void)
{
	int fd = come();

	CHECK(!is_rsocket(fd));
	one_way(fd, "hail");
	other_way(fd, "ave!");
}

static void becomes_another(void)
{
	char port[8];

	snprintf(port, sizeof(port), "%d", ntohs(addr.sin6_port));
	CHECK(!unsetenv("RDMAV_FORK_SAFE"));
	execl("/proc/self/exe", "preload_fork", port, NULL);
	CHECK(false);
}

static void knows_another(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	CHECK(poll(&p, 1, 30000) == 1);
	other_way(fd, "hail");
	CHECK(!is_rsocket(fd));
	one_way(fd, "ave!");
}

static void is_gone(int fd)
{
	CHECK(!close(fd));
}

static void finds_nobody(void)
{
	int fd = come();

	CHECK(read(fd, &(char){0}, 1) == 0 && !is_rsocket(fd));
	CHECK(!close(fd));
}

/* ---- The server, which does nothing but to fork, and the clients, all at once ---- */

static void serve(int to, void (*child_does)(int))
{
	socklen_t len = sizeof(addr);
	int fd, listener = socket(AF_INET6, SOCK_STREAM, 0);
	pid_t pids[CLIENTS];

	addr = (struct sockaddr_in6){.sin6_family = AF_INET6};
	CHECK(!bind(listener, (struct sockaddr *)&addr, sizeof(addr)) && !listen(listener, 8));
	CHECK(!getsockname(listener, (struct sockaddr *)&addr, &len));
	CHECK(write(to, &addr, sizeof(addr)) == sizeof(addr));
	for (int i = 0; i < CLIENTS; i++) {
		fd = i % 2 ? accept(listener, NULL, NULL)
			   : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		CHECK(fd >= 0);
		pids[i] = fork();
		if (!pids[i]) {
			CHECK(!close(listener));
			child_does(fd);
			exit(0);
		}
		CHECK(!close(fd));
	}
	for (int i = 0; i < CLIENTS; i++)
		ended_well(pids[i]);
	exit(0);
}

static void scene(void (*client_does)(void), void (*child_does)(int), bool killed)
{
	pid_t server, pids[CLIENTS];
	int ports[2], status;

	CHECK(!pipe(ports));
	server = fork();
	if (!server)
		serve(ports[1], child_does);
	CHECK(read(ports[0], &addr, sizeof(addr)) == sizeof(addr));
	for (int i = 0; i < CLIENTS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		client_does();
		exit(0);
	}
	for (int i = 0; i < CLIENTS; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(killed ? WIFSIGNALED(status) : !status);
	}
	ended_well(server);
	CHECK(!close(ports[0]) && !close(ports[1]));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		addr.sin6_port = htons((uint16_t)atoi(argv[1]));
		is_another();
		return 0;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	scene(calls, listens, false);
	puts("the client speaks first");
	scene(waits_and_calls, greets, false);
	puts("the child does");
	scene(calls_at_once, listens, false);
	puts("two threads");
	scene(calls, as_input, false);
	puts("as its input");
	scene(says_nothing, hears_nothing, true);
	puts("a client that is killed");
	scene(finds_nobody, is_gone, false);
	puts("a child that ends");
	scene(becomes_another, knows_another, false);
	puts("clients without the mode");
	return 0;
}
