// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program that closes descriptors which it did not open, softhca's connection among
 * them, loses nothing of its registered memory. What the device writes after a fork or beside a new
 * thread is what the program reads, and calls on mappings mean what they say: also while memory is
 * being registered, and where no other connection can be made, because no descriptor is left or the
 * root directory is another. So it is when the daemon has been killed, which stops no device.
 * Quick: half
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

#define SIZE (8 * PAGE)

enum how { FORK, THREAD, REMAP, GIVE_UP };

static uint8_t *mem;
static struct ibv_mr *mr;
static FILE *file; /* in registered memory as well; NULL: there is none */

/* By the system call: the shim keeps its own from close(). */
static void close_what(const char *leads_to)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	unsigned int n = 0;
	char link[64];

	CHECK(dir);
	while ((d = readdir(dir)))
		if (readlinkat(dirfd(dir), d->d_name, link, sizeof(link)) >=
			    (ssize_t)strlen(leads_to) &&
		    !memcmp(link, leads_to, strlen(leads_to))) {
			CHECK_EQ(syscall(SYS_close, atoi(d->d_name)), 0);
			n++;
		}
	CHECK(n);
	closedir(dir);
}

static void close_sockets(void)
{
	close_what("socket:");
}

static void *nothing(void *arg)
{
	return arg;
}

static void in_child(uint64_t seed)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit((file && fputc('x', file) == EOF) || differs(mem, SIZE, seed) != -1 ? 1 : 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/*
 * The seed of what is in the memory afterwards; 0: zeroes. Where the daemon cannot be told, all is
 * refused.
 */
static uint64_t change(enum how how, uint64_t seed, bool can_connect)
{
	uint8_t *more;
	pthread_t t;

	switch (how) {
	case FORK:
		if (can_connect) {
			in_child(seed);
			break;
		}
		CHECK_EQ(fork(), -1);
		CHECK_EQ(errno, EAGAIN);
		CHECK(fputc('x', file) != EOF);
		break;
	case THREAD:
		CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), can_connect ? 0 : EAGAIN);
		if (can_connect)
			CHECK_EQ(pthread_join(t, NULL), 0);
		break;
	case REMAP:
		more = mremap(mem, SIZE, 4 * SIZE, MREMAP_MAYMOVE);
		if (!can_connect) {
			CHECK(more == MAP_FAILED);
			CHECK_EQ(errno, ENOMEM);
			break;
		}
		CHECK(more != MAP_FAILED);
		CHECK_EQ(differs(more, SIZE, seed), -1);
		for (size_t i = SIZE; i < 4 * SIZE; i++)
			CHECK_EQ(more[i], 0);
		CHECK(mremap(more, 4 * SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, mem) == mem);
		break;
	case GIVE_UP:
		CHECK_EQ(madvise(mem, SIZE, MADV_DONTNEED), can_connect ? 0 : -1);
		if (!can_connect) {
			CHECK_EQ(errno, ENOMEM);
			break;
		}
		for (size_t i = 0; i < SIZE; i++)
			CHECK_EQ(mem[i], 0);
		return 0;
	}
	return seed;
}

static void closed(int arg)
{
	enum how how = (enum how)(arg / 2);
	bool can_connect = arg % 2 == 0;
	struct rlimit was;
	struct ibv_mr *beside = NULL;
	uint64_t seed;

	up();
	/* Of the heap, which becomes private for a child or a thread. */
	mem = how == FORK || how == THREAD ? aligned_alloc(PAGE, SIZE) : pages(8);
	CHECK(mem);
	if (how == FORK) {
		/*
		 * Whole pages, as registration caches have it. A child resets the FILE's lock at
		 * once.
		 */
		file = fopen("/dev/null", "w");
		CHECK(file);
		beside = reg((void *)((uintptr_t)file & ~(PAGE - 1)), PAGE);
	}
	fill(mem, SIZE, 1);
	CHECK(shares(mem, SIZE, &mr));
	through(mr, mem, SIZE, 2);
	close_sockets();
	if (!can_connect)
		was = use_up_descriptors();
	seed = change(how, 3, can_connect);
	if (seed)
		CHECK_EQ(differs(mem, SIZE, seed), -1);
	through(mr, mem, SIZE, 4);
	if (!can_connect)
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
	through(mr, mem, SIZE, 6);
	in_child(7);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, SIZE, 7), -1);
	if (how == FORK) {
		CHECK_EQ(ibv_dereg_mr(beside), 0);
		CHECK_EQ(fclose(file), 0);
	}
	down();
}

/* ---- without a daemon ---- */

static void kill_daemon(void)
{
	const char *instance = getenv("SOFTHCA_INSTANCE");
	struct pollfd ended = {.events = POLLIN};
	char path[4096], text[32] = "";
	int fd, daemon;

	CHECK(instance);
	snprintf(path, sizeof(path), "%s/pid", instance);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	daemon = atoi(text);
	CHECK(daemon > 1);
	ended.fd = (int)syscall(SYS_pidfd_open, daemon, 0);
	CHECK(ended.fd >= 0);
	CHECK_EQ(kill(daemon, SIGKILL), 0);
	CHECK_EQ(poll(&ended, 1, -1), 1);
	close(ended.fd);
}

/*
 * In an instance that has no other program. finds: softhca has its descriptor of device memory, by
 * which it finds the keys.
 */
static void killed(enum how how, bool finds)
{
	uint64_t seed;

	up();
	mem = how == FORK || how == THREAD ? aligned_alloc(PAGE, SIZE) : pages(8);
	CHECK(mem);
	fill(mem, SIZE, 1);
	CHECK(shares(mem, SIZE, &mr));
	through(mr, mem, SIZE, 2);
	kill_daemon();
	if (!finds)
		close_what("/memfd:softhca");
	through(mr, mem, SIZE, 4);
	seed = change(how, 5, finds);
	if (seed)
		CHECK_EQ(differs(mem, SIZE, seed), -1);
	through(mr, mem, SIZE, 6);
	if (finds)
		in_child(7);
	through(mr, mem, SIZE, 8);
}

/* This program once more, in an instance of its own. */
static void with_own_daemon(int arg)
{
	const char *softhca = getenv("SOFTHCA");
	char self[4096] = "", command[3 * 4096];

	CHECK(softhca);
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(command, sizeof(command),
		 "'%s' start daemon%d && '%s' run --instance daemon%d -- '%s' %d", softhca,
		 (int)getpid(), softhca, (int)getpid(), self, arg);
	CHECK_EQ(system(command), 0);
}

/*
 * The same below another root, where the instance's directory is not to be found. By system calls
 * that softhca does not see, since the memory would become private before.
 */
static void below_another_root(int arg)
{
	char dir[] = "/tmp/shared-memory.XXXXXX", proc[64];
	int root;

	(void)arg;
	CHECK(mkdtemp(dir));
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	CHECK_EQ(mkdir(proc, 0700), 0);
	up();
	mem = pages(8);
	fill(mem, SIZE, 1);
	CHECK(shares(mem, SIZE, &mr));
	through(mr, mem, SIZE, 2);
	if (syscall(SYS_unshare, CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL)) {
		printf("# another root takes root's privileges: that part is left out\n");
	} else {
		root = open("/", O_PATH | O_DIRECTORY);
		CHECK(root >= 0);
		close_sockets();
		CHECK_EQ(syscall(SYS_chroot, dir), 0);
		if (change(GIVE_UP, 3, false))
			CHECK_EQ(differs(mem, SIZE, 3), -1);
		through(mr, mem, SIZE, 4);
		CHECK_EQ(fchdir(root), 0);
		CHECK_EQ(syscall(SYS_chroot, "."), 0);
		close(root);
		CHECK_EQ(umount2(proc, MNT_DETACH), 0);
	}
	through(mr, mem, SIZE, 6);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, SIZE, 7), -1);
	down();
	CHECK_EQ(rmdir(proc), 0);
	CHECK_EQ(rmdir(dir), 0);
}

/* ---- the connection goes while a registration is under way ---- */

enum { PARENT = 1, MUCH, COPIES, NOW, LONG = 100, COPIED = 8 << 20 };

/*
 * Copies from the parent for as long as it is not stopped. An exchange of the parent's pages waits
 * for it.
 */
static void reads_much(int arg)
{
	uint8_t *to = malloc(COPIED);
	struct iovec local[LONG], remote[LONG];

	(void)arg;
	CHECK(to);
	await(MUCH, 1);
	for (int i = 0; i < LONG; i++) {
		local[i] = (struct iovec){to, COPIED};
		remote[i] = (struct iovec){(void *)(uintptr_t)board->word[MUCH], COPIED};
	}
	for (uint64_t n = 1;; n++) {
		post(COPIES, n);
		CHECK(process_vm_readv((pid_t)board->word[PARENT], local, LONG, remote, LONG, 0) >
		      0);
	}
}

/* A process with the same descriptors, of which softhca knows nothing. */
static pid_t closes_later(rlim_t most)
{
	const struct rlimit none = {0, most};
	long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0);
	if (pid)
		return (pid_t)pid;
	await(NOW, 1);
	sleep_ms(30);
	CHECK_EQ(syscall(SYS_prlimit64, (pid_t)board->word[PARENT], RLIMIT_NOFILE, &none, NULL), 0);
	close_sockets();
	syscall(SYS_exit_group, 0);
	return 0;
}

/*
 * The exchange of pages fails, which the daemon cannot be told. Then the registration fails as
 * well, or the device uses the program's pages.
 */
static void lost_meanwhile(int arg)
{
	pid_t reader = spawn(reads_much, 0), closes;
	uint8_t *much = malloc(COPIED);
	struct rlimit was;
	siginfo_t info;

	(void)arg;
	CHECK(much);
	memset(much, 1, COPIED);
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	up();
	mem = pages(8);
	fill(mem, SIZE, 1);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
	board->word[PARENT] = (uint64_t)getpid();
	closes = closes_later(was.rlim_max);
	post(MUCH, (uintptr_t)much);
	await(COPIES, 2);
	CHECK_EQ(kill(reader, SIGSTOP), 0);
	CHECK_EQ(waitid(P_PID, (id_t)reader, &info, WSTOPPED), 0);
	post(NOW, 1);
	mr = ibv_reg_mr(s.pd, mem, SIZE, ACCESS);
	CHECK(mr || errno == EIO);
	CHECK_EQ(waitpid(closes, NULL, 0), closes);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
	printf("# %s\n", mr ? "registered" : "not registered");
	fflush(stdout);
	if (mr)
		through(mr, mem, SIZE, 2);
	CHECK_EQ(kill(reader, SIGKILL), 0);
	join_killed(reader, SIGKILL);
	mr = reg(mem, SIZE);
	through(mr, mem, SIZE, 4);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(differs(mem, SIZE, 5), -1);
}

int main(int argc, char **argv)
{
	static const char *const name[] = {"fork", "thread", "mremap", "MADV_DONTNEED"};

	test_begin();
	if (argc > 1) {
		int arg = atoi(argv[1]);

		killed((enum how)(arg / 2), arg % 2 == 0);
		return 0;
	}
	for (int i = 0; i < 8; i++) {
		printf("# %s%s\n", name[i / 2], i % 2 ? ", no descriptor left" : "");
		fflush(stdout);
		join(spawn(closed, i));
	}
	for (int i = 0; i < 8; i++) {
		if (i == 2 * FORK + 1)
			continue;
		printf("# %s, the daemon is killed%s\n", name[i / 2],
		       i % 2 ? ", and device memory closed" : "");
		fflush(stdout);
		join(spawn(with_own_daemon, i));
	}
	printf("# meanwhile\n");
	fflush(stdout);
	join(spawn(lost_meanwhile, 0));
	printf("# another root\n");
	fflush(stdout);
	join(spawn(below_another_root, 0));
	return 0;
}
