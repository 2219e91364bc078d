// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a constructor of a library that dlopen() loads may wait for a thread that opens the
 * device, maps memory, sets signals and forks: softhca does not use the loader meanwhile, which
 * belongs to the thread in dlopen().
 * Quick: half
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_test.h"

#define PATIENCE_SECONDS 30

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const char *doing; /* NULL: the thread has done it all */
static bool called, in_time;

static void next(const char *what)
{
	pthread_mutex_lock(&lock);
	doing = what;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void forks(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(3);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 3);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Nothing here needs the loader on a machine with a card. */
static void *work(void *arg)
{
	struct {
		uint32_t command;
		uint16_t in_words, out_words;
		uint64_t response;
	} cmd = {3, 4, 3, 0}; /* allocates a PD */
	struct sigaction act = {.sa_handler = SIG_IGN};
	uint32_t answer[3];
	struct stat st;
	char link[64];
	void *mem, *moved;
	pthread_t t;
	int fd;

	next("stat");
	CHECK_EQ(stat("/dev/infiniband/uverbs0", &st), 0);
	CHECK(readlink("/proc/self/exe", link, sizeof(link)) > 0);
	next("the first open");
	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	next("a command");
	cmd.response = (uintptr_t)answer;
	/* A context that has not begun refuses it. */
	CHECK(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) || errno == EINVAL);
	next("mappings");
	mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	CHECK_EQ(madvise(mem, 8192, MADV_DONTFORK), 0);
	CHECK_EQ(mprotect(mem, 8192, PROT_READ), 0);
	moved = mremap(mem, 8192, 16384, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED);
	CHECK_EQ(munmap(moved, 16384), 0);
	next("signals");
	CHECK_EQ(sigaction(SIGUSR2, &act, NULL), 0);
	CHECK(signal(SIGUSR2, SIG_DFL) == SIG_IGN);
	next("fork");
	forks();
	next("a thread");
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(fd);
	next(NULL);
	return arg;
}

__attribute__((visibility("default"))) void in_constructor(void);
__attribute__((visibility("default"))) void in_constructor(void)
{
	struct timespec until;
	pthread_t t;
	int err = 0;

	called = true;
	doing = "to begin";
	CHECK_EQ(pthread_create(&t, NULL, work, NULL), 0);
	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += PATIENCE_SECONDS;
	pthread_mutex_lock(&lock);
	while (doing && !err)
		err = pthread_cond_timedwait(&changed, &lock, &until);
	in_time = !doing;
	if (doing)
		fprintf(stderr, "the thread waits: %s\n", doing);
	pthread_mutex_unlock(&lock);
	/* Where it waits for the loader, this ends the test. */
	CHECK(in_time);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* The library is beside the program, or where libtool puts it. */
static void *load(void)
{
	static const char *const place[] = {"shim_constructor_module.so",
					    ".libs/shim_constructor_module.so"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;

	CHECK(len > 0);
	self[len] = 0;
	*(strrchr(self, '/') + 1) = 0;
	for (size_t i = 0; !module && i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s", self, place[i]);
		module = dlopen(path, RTLD_NOW);
	}
	if (!module)
		fprintf(stderr, "%s\n", dlerror());
	return module;
}

int main(void)
{
	test_begin();
	/* Softhca has looked in vain for functions that the C library may lack. */
	CHECK(!dlerror());
	CHECK(load());
	CHECK(called && in_time);
	return 0;
}
