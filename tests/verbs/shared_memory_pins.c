// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what others do to a page while it is registered and deregistered is done to it:
 * another process's process_vm_writev(), a thread's read past the page cache (O_DIRECT), a store; a
 * sleeper on a word in it is woken; a userfaultfd of the program's fills it. No page is exchanged while
 * a ring of asynchronous I/O may have pinned it. Its tracer does not wait for it. Run as often as
 * repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_memory_test.h"

enum { PID = 20, ADDR, STOP, READY, ROUNDS = 60, FAR = 256 };

/* ---- another process ---- */

/* Writes one word after another; each must be there when the next is written. */
static void writes_there(int arg)
{
	size_t len = arg ? FAR * PAGE : 8;
	uint8_t *mine = calloc(1, len), *seen = calloc(1, len);
	struct iovec local = {mine, len}, back = {seen, 8}, remote = {NULL, len}, there = {NULL, 8};
	uint64_t n = 0;

	await(READY, 1);
	remote.iov_base = there.iov_base = (void *)(uintptr_t)board->word[ADDR];
	while (!__atomic_load_n(&board->word[STOP], __ATOMIC_ACQUIRE)) {
		n++;
		memcpy(mine, &n, 8);
		memcpy(mine + len - 8, &n, 8);
		CHECK_EQ(process_vm_writev((pid_t)board->word[PID], &local, 1, &remote, 1, 0),
			 (long long)len);
		CHECK_EQ(process_vm_readv((pid_t)board->word[PID], &back, 1, &there, 1, 0), 8);
		CHECK_EQ(memcmp(seen, mine, 8), 0);
		there.iov_base = (uint8_t *)remote.iov_base + len - 8;
		CHECK_EQ(process_vm_readv((pid_t)board->word[PID], &back, 1, &there, 1, 0), 8);
		CHECK_EQ(memcmp(seen, mine, 8), 0);
		there.iov_base = remote.iov_base;
	}
	post(STOP, 2);
	free(mine);
	free(seen);
}

/* The other process writes beside a buffer that is registered and deregistered, one word or a
 * megabyte, in the buffer's own pages. */
static void other_process(int large)
{
	uint8_t *mem = pages(FAR + 2);
	pid_t pid;

	/* As MPI libraries do for single copies. */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	memset(mem, 0, (FAR + 2) * PAGE);
	board->word[PID] = (uint64_t)getpid();
	board->word[ADDR] = (uintptr_t)mem + 2048;
	board->word[READY] = board->word[STOP] = 0;
	pid = spawn(writes_there, large);
	side_open(&s, PAGE, 16, 0);
	post(READY, 1);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr = reg(mem + 100, large ? FAR * PAGE : 50);

		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	post(STOP, 1);
	join(pid);
	munmap(mem, (FAR + 2) * PAGE);
	side_close(&s);
}

static void writev_small(int arg)
{
	(void)arg;
	other_process(0);
}

static void writev_large(int arg)
{
	(void)arg;
	other_process(1);
}

/* ---- the device, for another process ---- */

enum { RKEY = 34, GO, DONE, LAST, TURNS = 10 };

/* Writes one number after another and reads it back at once, until the owner goes on to the next
 * region. */
static void writes_by_key(int arg)
{
	struct ibv_qp *qp;
	uint64_t n = 0, *mine;

	(void)arg;
	side_open(&s, PAGE, 64, 0);
	mine = (uint64_t *)s.buf;
	qp = connect_to_other(1, false);
	for (uint64_t turn = 1; turn <= TURNS; turn++) {
		await(GO, turn);
		do {
			uint64_t addr = board->word[ADDR];
			uint32_t key = (uint32_t)board->word[RKEY];

			mine[0] = ++n;
			CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, n, 0, 8, addr, key,
					    IBV_SEND_SIGNALED),
				 0);
			expect_wc(s.scq, n, IBV_WC_SUCCESS);
			CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_READ, n, 64, 8, addr, key,
					    IBV_SEND_SIGNALED),
				 0);
			expect_wc(s.scq, n, IBV_WC_SUCCESS);
			CHECK_EQ(mine[8], n);
		} while (__atomic_load_n(&board->word[STOP], __ATOMIC_ACQUIRE) < turn);
		board->word[LAST] = n;
		post(DONE, turn);
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

static void *does_nothing(void *arg)
{
	return arg;
}

/* The peer writes to a region of the heap that a fork or a thread makes private, and that is shared
 * again. */
static void peer(int arg)
{
	struct ibv_qp *qp;
	uint64_t seen;
	pid_t pid, child;
	pthread_t t;
	int status;

	(void)arg;
	board->word[GO] = board->word[STOP] = board->word[DONE] = 0;
	pid = spawn(writes_by_key, 0);
	side_open(&s, PAGE, 16, 0);
	qp = connect_to_other(0, false);
	for (uint64_t turn = 1; turn <= TURNS; turn++) {
		uint8_t *mem = malloc(20000);
		struct ibv_mr *mr;

		CHECK(mem);
		memset(mem, 0, 20000);
		mr = reg(mem, 20000);
		board->word[ADDR] = (uintptr_t)mem + 10000;
		board->word[RKEY] = mr->rkey;
		post(GO, turn);
		/* Waits until it writes there. */
		while (!*(volatile uint64_t *)(mem + 10000))
			;
		if (turn & 1) {
			child = fork();
			CHECK(child >= 0);
			if (!child)
				_exit(0);
			CHECK_EQ(waitpid(child, &status, 0), child);
			CHECK_EQ(status, 0);
		} else {
			CHECK_EQ(pthread_create(&t, NULL, does_nothing, NULL), 0);
			CHECK_EQ(pthread_join(t, NULL), 0);
		}
		post(STOP, turn);
		await(DONE, turn);
		memcpy(&seen, mem + 10000, 8);
		CHECK_EQ(seen, board->word[LAST]);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(memcmp(mem + 10000, &seen, 8), 0);
		free(mem);
	}
	join(pid);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* ---- a second thread, past the page cache ---- */

static uint8_t *field;
static bool over;
static char path[] = "/var/tmp/shared-memory.XXXXXX";

enum { BLOCKS = 4, SIZE = 1024 };

static void *reads_directly(void *arg)
{
	int fd = *(int *)arg;

	for (uint64_t n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
		uint64_t block = n % BLOCKS;

		memset(field, 0, SIZE * PAGE);
		CHECK_EQ(pread(fd, field, SIZE * PAGE, (off_t)(block * SIZE * PAGE)),
			 (long long)(SIZE * PAGE));
		CHECK_EQ(differs(field, SIZE * PAGE, block), -1);
	}
	return NULL;
}

static void direct(int arg)
{
	uint8_t *mem;
	pthread_t t;
	int fd;

	(void)arg;
	fd = mkstemp(path);
	CHECK(fd >= 0);
	mem = pages(SIZE + 128);
	field = mem + 64 * PAGE;
	for (int i = 0; i < BLOCKS; i++) {
		fill(field, SIZE * PAGE, i);
		CHECK_EQ(write(fd, field, SIZE * PAGE), (long long)(SIZE * PAGE));
	}
	CHECK_EQ(fsync(fd), 0);
	close(fd);
	fd = open(path, O_RDONLY | O_DIRECT);
	unlink(path);
	if (fd < 0) {
		printf("# no O_DIRECT in /var/tmp: that part is left out\n");
		return;
	}
	side_open(&s, PAGE, 16, 0);
	CHECK_EQ(pthread_create(&t, NULL, reads_directly, &fd), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr = reg(field, (SIZE + 1) * PAGE);

		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(fd);
	munmap(mem, (SIZE + 128) * PAGE);
	side_close(&s);
}

/* ---- sleepers ---- */

struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t before, after;
	bool told;
};

static void *sleeps(void *arg)
{
	struct shared *w = arg;

	/* Sleeps until told: first on the mutex, then on the condition. */
	CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	while (!w->told)
		CHECK_EQ(pthread_cond_wait(&w->cond, &w->mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&w->mutex), 0);
	return NULL;
}

/* Is that thread of this process asleep, and in futex()? */
static bool asleep(pid_t tid)
{
	char name[64], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(name, "r");
	if (!f)
		return false;
	CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

static pid_t sleeper;

static void *sleeps_there(void *arg)
{
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_RELEASE);
	return sleeps(arg);
}

static void await_sleeper(void)
{
	for (int i = 0; i < 2000; i++) {
		pid_t tid = __atomic_load_n(&sleeper, __ATOMIC_ACQUIRE);

		if (tid && asleep(tid))
			return;
		sleep_ms(1);
	}
	CHECK(false);
}

/* A word of a mutex that processes may share: the kernel knows its futex by what is mapped
 * there. */
static void sleeping(bool on_mutex, bool within)
{
	struct ibv_mr *mr = NULL;
	struct shared *w;
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_t t;

	side_open(&s, PAGE, 16, 0);
	w = (void *)(pages(2) + 512);
	if (within)
		mr = reg((uint8_t *)w - 256, 100);
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&ma, PTHREAD_MUTEX_ROBUST);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_mutex_init(&w->mutex, &ma), 0);
	CHECK_EQ(pthread_cond_init(&w->cond, &ca), 0);
	if (on_mutex)
		CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	CHECK_EQ(pthread_create(&t, NULL, sleeps_there, w), 0);
	await_sleeper();
	if (within)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	else
		mr = reg((uint8_t *)w - 256, 100);
	if (!on_mutex)
		CHECK_EQ(pthread_mutex_lock(&w->mutex), 0);
	w->told = true;
	CHECK_EQ(pthread_cond_signal(&w->cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&w->mutex), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	if (!within)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	side_close(&s);
}

static void sleepers(int arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		sleeper = 0;
		sleeping(i & 1, i & 2);
	}
}

static void *waits_for_word(void *arg)
{
	char word;

	CHECK_EQ(read(*(int *)arg, &word, 1), 1);
	return NULL;
}

static void *joins(void *arg)
{
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(*(pthread_t *)arg, NULL), 0);
	return NULL;
}

/* A thread waits for the end of another thread, whose stack, with its descriptor at the end, is
 * memory of this process. */
static void joiner(int arg)
{
	size_t size = 64 * PAGE;
	/* In the middle: the first thread's own memory, which is never shared, may be next to what
	 * it maps first. */
	uint8_t *mem = pages(192), *stack = mem + 64 * PAGE;
	pthread_attr_t attr;
	pthread_t t, j;
	struct ibv_mr *mr;
	int ends[2];

	(void)arg;
	side_open(&s, PAGE, 16, 0);
	CHECK_EQ(pipe(ends), 0);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, size), 0);
	CHECK_EQ(pthread_create(&t, &attr, waits_for_word, ends), 0);
	CHECK_EQ(pthread_create(&j, NULL, joins, &t), 0);
	await_sleeper();
	/* As a registration cache does, which registers the whole of what it was asked for. */
	mr = reg(stack + size - 3 * PAGE, 3 * PAGE);
	CHECK_EQ(write(ends[1], "", 1), 1);
	CHECK_EQ(pthread_join(j, NULL), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(mem, 192 * PAGE);
	side_close(&s);
}

/* ---- pages that another process fills when they are touched ---- */

enum { FILLED = 32 }; /* pages */

static void fills(int fd)
{
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg msg;

	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = {.src = (uintptr_t)page, .len = PAGE};

		if (msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		fill(page, PAGE, copy.dst);
		CHECK_EQ(ioctl(fd, UFFDIO_COPY, &copy), 0);
	}
	_exit(1);
}

/* The descriptor of one, or -1. */
static int open_userfaultfd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		printf("# userfaultfd() takes a privilege: that part is left out\n");
	else
		CHECK_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	return fd;
}

/* Another process is to fill the pages. Returns what ioctl() returns. */
static int give(int fd, uint8_t *mem)
{
	struct uffdio_register r = {.range = {(uintptr_t)mem, FILLED * PAGE},
				    .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(fd, UFFDIO_REGISTER, &r);
}

static pid_t start_filling(int fd)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		fills(fd);
	return pid;
}

/* The other process has filled each page. */
static void is_filled(const uint8_t *mem)
{
	for (const uint8_t *p = mem; p < mem + FILLED * PAGE; p += PAGE)
		CHECK_EQ(differs(p, PAGE, (uintptr_t)p), -1);
}

static void filled(int arg)
{
	int fd = open_userfaultfd();
	uint8_t *mem, *heap = malloc(3 * PAGE);
	struct ibv_mr *mr, *before;
	pid_t pid;

	(void)arg;
	if (fd < 0)
		return;
	up();
	before = reg(heap, 3 * PAGE);
	mem = pages(FILLED);
	CHECK_EQ(give(fd, mem), 0);
	pid = start_filling(fd);
	mr = reg(mem, FILLED * PAGE);
	is_filled(mem);
	through(mr, mem, 4 * PAGE, 1);
	through(before, heap, 3 * PAGE, 2);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(before), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	join_killed(pid, SIGKILL);
	munmap(mem, FILLED * PAGE);
	free(heap);
	close(fd);
	down();
}

static void *sits(void *arg)
{
	pause();
	return arg;
}

static struct {
	uint8_t *answer;
	int over;
} late;

static void *asks(void *arg)
{
	struct {
		uint32_t number;
		uint16_t in, out; /* in words */
		uint64_t answer;
	} query_device = {1, sizeof(query_device) / 4, 44, (uintptr_t)late.answer};

	CHECK_EQ(write(s.context->cmd_fd, &query_device, sizeof(query_device)),
		 sizeof(query_device));
	__atomic_store_n(&late.over, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void fills_answer(int fd)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)late.answer, PAGE}};

	CHECK_EQ(ioctl(fd, UFFDIO_ZEROPAGE, &zero), 0);
}

/* From stores, or not. */
static void protects_answer(int fd, bool protect)
{
	struct uffdio_writeprotect w = {.range = {(uintptr_t)late.answer, PAGE},
					.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

	CHECK_EQ(ioctl(fd, UFFDIO_WRITEPROTECT, &w), 0);
}

static void lifts_protection(int fd)
{
	protects_answer(fd, false);
}

/*
 * A thread waits for an answer, until the program calls let_in(fd) for its page. Neither the daemon nor
 * another thread waits.
 */
static void answered_late(int fd, void (*let_in)(int fd))
{
	pthread_t thread;

	late.over = 0;
	CHECK_EQ(pthread_create(&thread, NULL, asks, NULL), 0);
	for (int i = 0; i < 100; i++) {
		struct ibv_context *other = open_device(0);

		sleep_ms(1);
		CHECK_EQ(ibv_close_device(other), 0);
	}
	CHECK(!__atomic_load_n(&late.over, __ATOMIC_SEQ_CST));
	let_in(fd);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* The device's GUID, behind the version of its firmware. */
	CHECK_EQ(memcmp(late.answer + 8, &(uint64_t){0}, 8) != 0, 1);
	munmap(late.answer, FILLED * PAGE);
	close(fd);
	down();
}

/* The answer to a command goes to a page that the program has yet to fill. */
static void answered_missing(int arg)
{
	int fd = open_userfaultfd();

	(void)arg;
	if (fd < 0)
		return;
	up();
	late.answer = pages(FILLED);
	CHECK_EQ(give(fd, late.answer), 0);
	answered_late(fd, fills_answer);
}

/* It goes to a page that the program protects, and is told of stores to. */
static void answered_protected(int arg)
{
	int fd = open_userfaultfd();
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_WP};

	(void)arg;
	if (fd < 0)
		return;
	up();
	late.answer = pages(FILLED);
	memset(late.answer, 0, FILLED * PAGE);
	r.range = (struct uffdio_range){(uintptr_t)late.answer, FILLED * PAGE};
	CHECK_EQ(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	protects_answer(fd, true);
	answered_late(fd, lifts_protection);
}

/*
 * Beside a thread the memory stays device memory, which has no missing pages: the program is told so, and its memory is as
 * it was. What it has not registered is filled.
 */
static void filled_beside(int arg)
{
	int fd = open_userfaultfd(), ret;
	pthread_t thread;
	struct ibv_mr *mr;
	uint8_t *mem;
	bool shared;
	pid_t pid;

	(void)arg;
	if (fd < 0)
		return;
	up();
	mem = pages(FILLED);
	shared = shares(mem, FILLED * PAGE, &mr);
	CHECK_EQ(pthread_create(&thread, NULL, sits, NULL), 0);
	fill(mem, FILLED * PAGE, 3);
	ret = give(fd, mem);
	if (shared) {
		CHECK_EQ(ret, -1);
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(differs(mem, FILLED * PAGE, 3), -1);
		through(mr, mem, 4 * PAGE, 1);
		munmap(mem, FILLED * PAGE);
		mem = pages(FILLED);
		ret = give(fd, mem);
	}
	CHECK_EQ(ret, 0);
	pid = start_filling(fd);
	CHECK_EQ(madvise(mem, FILLED * PAGE, MADV_DONTNEED), 0);
	is_filled(mem);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	join_killed(pid, SIGKILL);
}

/* ---- rings of asynchronous I/O ---- */

#define NO_MMAP		   (1U << 14)
#define REGISTERED_FD_ONLY (1U << 15)

/* Returns the ring's descriptor, or number; -1 if the kernel does not make such a ring. */
static int make_ring(unsigned int flags)
{
	struct io_uring_params p = {.flags = flags};
	uint8_t *own = flags & NO_MMAP ? pages(2) : NULL;
	int ring;

	if (own) {
		memset(own, 0, 2 * PAGE);
		/* Named user_addr in headers that know the flag. */
		memcpy((char *)&p.cq_off + sizeof(p.cq_off) - 8, &(uint64_t){(uintptr_t)own}, 8);
		memcpy((char *)&p.sq_off + sizeof(p.sq_off) - 8, &(uint64_t){(uintptr_t)own + PAGE},
		       8);
	}
	ring = (int)syscall(SYS_io_uring_setup, 4, &p);
	if (ring < 0)
		printf("# no ring with the flags 0x%x: that part is left out\n", flags);
	return ring;
}

/* A ring may have pinned pages. It is not mapped; the last one does not even have a descriptor. */
static void rings(int arg)
{
	static const unsigned int flags[] = {0, NO_MMAP, NO_MMAP | REGISTERED_FD_ONLY};
	uint8_t *mem = pages(4);
	struct ibv_mr *mr;
	bool usual;

	(void)arg;
	up();
	memset(mem, 1, 4 * PAGE);
	usual = shares(mem, 4 * PAGE, &mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	for (int i = 0; i < 3; i++) {
		int ring = make_ring(flags[i]);

		if (ring < 0)
			continue;
		CHECK(!shares(mem, 4 * PAGE, &mr));
		through(mr, mem, 4 * PAGE, 7);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		if (flags[i] & REGISTERED_FD_ONLY)
			continue;
		close(ring);
		CHECK_EQ(shares(mem, 4 * PAGE, &mr), usual);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	down();
}

/* ---- a debugger ---- */

static void is_traced(uint8_t *mem)
{
	up();
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	CHECK_EQ(raise(SIGSTOP), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ibv_dereg_mr(reg(mem, 4 * PAGE)), 0);
	_exit(differs(mem, 4 * PAGE, 3) == -1 ? 0 : 1);
}

/* Reads its memory at each system call, as strace does. */
static void traces(int arg)
{
	uint8_t *mem = pages(4);
	uint64_t shared = hca_counter("regions_shared");
	int status, stops = 0;
	pid_t pid;

	(void)arg;
	s.context = open_device(0);
	fill(mem, 4 * PAGE, 3);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		is_traced(mem);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL), 0);
	while (WIFSTOPPED(status)) {
		struct iovec local = {&(uint64_t){0}, 8}, remote = {mem, 8};

		CHECK_EQ(process_vm_readv(pid, &local, 1, &remote, 1, 0), 8);
		CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		stops++;
	}
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK(stops > 10);
	CHECK_EQ(hca_counter("regions_shared"), shared + 3);
	CHECK_EQ(ibv_close_device(s.context), 0);
}

int main(int argc, char **argv)
{
	test_begin();
	repeat(argc, argv, "writev_small", writev_small);
	repeat(argc, argv, "writev_large", writev_large);
	repeat(argc, argv, "peer", peer);
	repeat(argc, argv, "direct", direct);
	repeat(argc, argv, "sleepers", sleepers);
	repeat(argc, argv, "joiner", joiner);
	repeat(argc, argv, "filled", filled);
	repeat(argc, argv, "filled_beside", filled_beside);
	repeat(argc, argv, "answered_missing", answered_missing);
	repeat(argc, argv, "answered_protected", answered_protected);
	repeat(argc, argv, "rings", rings);
	repeat(argc, argv, "traces", traces);
	return 0;
}
