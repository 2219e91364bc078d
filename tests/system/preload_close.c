// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: under librspreload.so, a program that closes all that it does not know. The argument says how: range, from
 * or each. The rsockets that it keeps go on, those that it closes are closed, new ones work, and nobody reads from the
 * files that get the numbers. What children close is theirs. Other threads send and receive meanwhile. One that sleeps in what is
 * closed is told so. A number that is too high for an rsocket is refused, and stays what it was.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

/* Numbers of the program's: what else is open is above. */
enum {
	FIRST = 3,
	LISTENER = FIRST,
	ONE,
	OTHER,
	RECEIVER,
	SENDER,
	END,
	MANY = 100,
	TOP = 1024,
	ROUNDS = 100,
	TOO_HIGH = 1 << 16 /* of librspreload.so */
};

static const char *how;

static void close_all(int first)
{
	if (!strcmp(how, "range"))
		CHECK(!close_range((unsigned int)first, ~0U, 0));
	else if (!strcmp(how, "from"))
		closefrom(first);
	else
		for (int fd = first; fd < TOP; fd++)
			close(fd);
}

static struct sockaddr_in there;

static void move(int from, int to)
{
	CHECK(from >= 0);
	if (from == to)
		return;
	CHECK(dup2(from, to) == to);
	CHECK(!close(from));
}

static void bind_there(int fd)
{
	socklen_t len = sizeof(there);

	there = (struct sockaddr_in){.sin_family = AF_INET};
	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(fd, (struct sockaddr *)&there, sizeof(there)));
	CHECK(!getsockname(fd, (struct sockaddr *)&there, &len));
}

static void *connect_there(void *arg)
{
	int *fd = arg;

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(*fd >= 0);
	CHECK(!connect(*fd, (struct sockaddr *)&there, sizeof(there)));
	return NULL;
}

static void make_sockets(void)
{
	pthread_t thread;
	int fd, i;

	/* So that the library gets none of the program's numbers */
	for (i = FIRST; i < END; i++)
		move(open("/dev/zero", O_RDONLY), i);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	bind_there(fd);
	CHECK(!listen(fd, 8));
	move(fd, LISTENER);
	CHECK(!pthread_create(&thread, NULL, connect_there, &fd));
	move(accept(LISTENER, NULL, NULL), OTHER);
	CHECK(!pthread_join(thread, NULL));
	move(fd, ONE);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	bind_there(fd);
	move(fd, RECEIVER);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(!connect(fd, (struct sockaddr *)&there, sizeof(there)));
	move(fd, SENDER);
}

static void exchange(int from, int to)
{
	struct pollfd fd = {.fd = to, .events = POLLIN};
	char data[5] = "";

	CHECK(send(from, "four", 4, 0) == 4);
	CHECK(poll(&fd, 1, -1) == 1);
	CHECK(recv(to, data, 4, MSG_WAITALL) == 4);
	CHECK(!strcmp(data, "four"));
}

static void *receive(void *arg)
{
	char data[5] = "";

	CHECK(recv(*(int *)arg, data, 4, MSG_WAITALL) == 4 && !strcmp(data, "late"));
	return NULL;
}

static void all_work(void)
{
	int i, to = ONE;
	pthread_t thread;

	for (i = 0; i < 4; i++) {
		exchange(ONE, OTHER);
		exchange(OTHER, ONE);
		exchange(SENDER, RECEIVER);
	}
	/* One that sleeps */
	CHECK(!pthread_create(&thread, NULL, receive, &to));
	CHECK(send(OTHER, "late", 4, 0) == 4);
	CHECK(!pthread_join(thread, NULL));
}

/* The lowest free numbers, with data that nobody else is to read. */
static int reader;

static void fill(void)
{
	int ends[2], i;

	CHECK(!pipe(ends));
	CHECK(write(ends[1], "untouched by anybody else", 25) == 25);
	for (i = 0; i < MANY; i++)
		CHECK(dup(ends[0]) >= 0);
	reader = ends[0];
	CHECK(!close(ends[1]));
}

static void untouched(void)
{
	char data[64];

	CHECK(read(reader, data, sizeof(data)) == 25);
	CHECK(!memcmp(data, "untouched by anybody else", 25));
}

static int stop;

/* Each sleeps in recv() while the other one sends. */
static void *asks(void *arg)
{
	char data[5] = "";

	while (strcmp(data, "last")) {
		bool last = __atomic_load_n(&stop, __ATOMIC_ACQUIRE);

		CHECK(send(ONE, last ? "last" : "more", 4, 0) == 4);
		CHECK(recv(ONE, data, 4, MSG_WAITALL) == 4);
	}
	return arg;
}

static void *answers(void *arg)
{
	char data[5] = "";

	while (strcmp(data, "last")) {
		CHECK(recv(OTHER, data, 4, MSG_WAITALL) == 4);
		CHECK(send(OTHER, data, 4, 0) == 4);
	}
	return arg;
}

static void beside_threads(void)
{
	pthread_t thread[2];
	int i;

	CHECK(!pthread_create(&thread[0], NULL, asks, NULL));
	CHECK(!pthread_create(&thread[1], NULL, answers, NULL));
	for (i = 0; i < ROUNDS; i++) {
		fill();
		untouched();
		close_all(END);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(!pthread_join(thread[0], NULL));
	CHECK(!pthread_join(thread[1], NULL));
}

/* Where the process may have such numbers. */
static void too_high(void)
{
	struct rlimit limit, most;
	struct stat file;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	most = limit;
	if (most.rlim_max < TOO_HIGH + 2)
		most.rlim_max = TOO_HIGH + 2;
	most.rlim_cur = most.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &most)) {
		printf("# numbers end at %llu\n", (unsigned long long)limit.rlim_max);
		return;
	}
	CHECK(dup2(reader, TOO_HIGH) == TOO_HIGH);
	errno = 0;
	CHECK(dup2(ONE, TOO_HIGH) == -1 && errno == EBADF);
	errno = 0;
	CHECK(dup3(ONE, TOO_HIGH, O_CLOEXEC) == -1 && errno == EBADF);
	CHECK(fstat(TOO_HIGH, &file) == 0 && S_ISFIFO(file.st_mode));
	errno = 0;
	CHECK(fcntl(ONE, F_DUPFD, TOO_HIGH) == -1 && errno == EMFILE);
	CHECK(fcntl(TOO_HIGH + 1, F_GETFD) == -1 && errno == EBADF);
	CHECK(!close(TOO_HIGH));
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

static pid_t sleeper;

static void *sleeps(void *arg)
{
	char data[4];

	__atomic_store_n(&sleeper, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(recv(ONE, data, sizeof(data), 0) == -1 && errno == EBADF);
	return arg;
}

/* Or the thread comes later than the close, and is told the same. */
static void await_sleep(void)
{
	char path[64], state = 0;
	FILE *file;

	while (!__atomic_load_n(&sleeper, __ATOMIC_ACQUIRE))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)sleeper);
	for (int i = 0; i < 1000 && state != 'S'; i++) {
		usleep(1000);
		file = fopen(path, "r");
		CHECK(file);
		CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
		CHECK(!fclose(file));
	}
}

static void closed_meanwhile(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, sleeps, NULL));
	await_sleep();
	CHECK(!close(ONE));
	CHECK(!pthread_join(thread, NULL));
}

static void ended_well(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
}

static void children(void)
{
	posix_spawn_file_actions_t actions;
	char *args[] = {"true", NULL};
	pid_t child = fork();

	if (!child) {
		close_all(FIRST);
		_exit(fcntl(FIRST, F_GETFD) != -1);
	}
	ended_well(child);
	all_work();
	child = vfork();
	if (!child) {
		close_all(FIRST);
		execv("/bin/true", args);
		_exit(1);
	}
	ended_well(child);
	all_work();
#if __GLIBC_PREREQ(2, 34)
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_addclosefrom_np(&actions, FIRST));
	CHECK(!posix_spawn(&child, "/bin/true", &actions, NULL, args, environ));
	CHECK(!posix_spawn_file_actions_destroy(&actions));
	ended_well(child);
	all_work();
#else
	(void)actions;
#endif
}

int main(int argc, char **argv)
{
	int file;

	CHECK(argc == 2);
	how = argv[1];
	alarm(60);
	make_sockets();
	all_work();
	file = dup(0);
	close_all(END);
	/* What was the program's is closed. */
	CHECK(file >= END && fcntl(file, F_GETFD) == -1 && errno == EBADF);
	fill();
	all_work();
	untouched();
	too_high();
	children();
	beside_threads();
	closed_meanwhile();

	/* With the rsockets */
	close_all(FIRST);
	for (int fd = FIRST; fd < END; fd++)
		CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	fill();
	untouched();
	close_all(FIRST);
	make_sockets();
	fill();
	all_work();
	untouched();
	return 0;
}
