// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what others do to a page while it is registered and deregistered is done to it:
 * another process's process_vm_writev(), a thread's read past the page cache (O_DIRECT), a peer's
 * message. No page is exchanged while a ring of asynchronous I/O may have pinned it, be it one that
 * another process has kept. Its tracer does not wait for it. Run as often as repeat() says.
 *
 * Seconds: 900
 * Quick: half
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
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

/* ---- rings of asynchronous I/O ---- */

#define NO_MMAP		   (1U << 14)
#define REGISTERED_FD_ONLY (1U << 15)

static struct io_uring_params offsets; /* of the last ring: where its parts are */

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
	offsets = p;
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

/* ---- a ring of two processes ---- */

static int shared_ring, source, go[2];

/* A ring that is not mapped, a file to read, and a pipe by which a process waits for the other. */
static bool ring_begin(void)
{
	static uint8_t contents[4 * PAGE];

	shared_ring = make_ring(0);
	if (shared_ring < 0)
		return false;
	source = memfd_create("source", 0);
	fill(contents, sizeof(contents), 5);
	CHECK_EQ(write(source, contents, sizeof(contents)), (long long)sizeof(contents));
	CHECK_EQ(pipe(go), 0);
	return true;
}

static void ring_pin(uint8_t *mem)
{
	struct iovec all = {mem, 4 * PAGE};

	memset(mem, 1, 4 * PAGE);
	CHECK_EQ(syscall(SYS_io_uring_register, shared_ring, IORING_REGISTER_BUFFERS, &all, 1), 0);
}

static uint8_t *ring_map(size_t len, off_t part)
{
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			   shared_ring, part);

	CHECK(at != MAP_FAILED);
	return at;
}

/* Reads the file to the pages that the ring has pinned, whosesoever they are. */
static void ring_read(uint8_t *mem)
{
	struct io_uring_sqe *sqe = (void *)ring_map(PAGE, IORING_OFF_SQES);
	uint8_t *queue = ring_map(PAGE, IORING_OFF_SQ_RING);
	uint32_t *tail = (uint32_t *)(queue + offsets.sq_off.tail);
	int32_t *result = (int32_t *)(queue + offsets.cq_off.cqes + 8);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_READ_FIXED;
	sqe->fd = source;
	sqe->addr = (uintptr_t)mem;
	sqe->len = 4 * PAGE;
	((uint32_t *)(queue + offsets.sq_off.array))[0] = 0;
	__atomic_store_n(tail, 1, __ATOMIC_RELEASE);
	CHECK_EQ(syscall(SYS_io_uring_enter, shared_ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0),
		 1);
	CHECK_EQ(*result, (long long)(4 * PAGE));
}

static uint8_t *pinned;

static void reads_when_told(int arg)
{
	char byte;

	(void)arg;
	CHECK_EQ(read(go[0], &byte, 1), 1);
	ring_read(pinned);
}

/* A child reads to the parent's pages, whose ring was closed before they were registered. */
static void ring_kept(int arg)
{
	struct ibv_mr *mr;
	pid_t pid;

	(void)arg;
	if (!ring_begin())
		return;
	up();
	pinned = pages(4);
	ring_pin(pinned);
	pid = spawn(reads_when_told, 0);
	close(shared_ring);
	CHECK(!shares(pinned, 4 * PAGE, &mr));
	CHECK_EQ(write(go[1], "", 1), 1);
	join(pid);
	CHECK_EQ(differs(pinned, 4 * PAGE, 5), -1);
	through(mr, pinned, 4 * PAGE, 7);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

/* The same with pages that were device memory when the ring pinned them. */
static void ring_later(int arg)
{
	struct ibv_mr *mr;
	pid_t pid;

	(void)arg;
	up();
	pinned = pages(4);
	mr = reg(pinned, 4 * PAGE);
	if (ring_begin()) {
		ring_pin(pinned);
		pid = spawn(reads_when_told, 0);
		close(shared_ring);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(write(go[1], "", 1), 1);
		join(pid);
		CHECK_EQ(differs(pinned, 4 * PAGE, 5), -1);
		mr = reg(pinned, 4 * PAGE);
		through(mr, pinned, 4 * PAGE, 7);
	}
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

enum { PINNED = 40, READ, WHERE };

static void lends(int arg)
{
	struct ibv_mr *mr;

	(void)arg;
	pinned = pages(4);
	ring_pin(pinned);
	close(shared_ring);
	up();
	CHECK(!shares(pinned, 4 * PAGE, &mr));
	board->word[WHERE] = (uintptr_t)pinned;
	post(PINNED, 1);
	await(READ, 1);
	CHECK_EQ(differs(pinned, 4 * PAGE, 5), -1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	down();
}

/* A child has lent its pages to the parent's ring. */
static void ring_lent(int arg)
{
	pid_t pid;

	(void)arg;
	board->word[PINNED] = board->word[READ] = 0;
	if (!ring_begin())
		return;
	up();
	pid = spawn(lends, 0);
	await(PINNED, 1);
	ring_read((uint8_t *)(uintptr_t)board->word[WHERE]);
	post(READ, 1);
	join(pid);
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
	repeat(argc, argv, "rings", rings);
	repeat(argc, argv, "ring_kept", ring_kept);
	repeat(argc, argv, "ring_later", ring_later);
	repeat(argc, argv, "ring_lent", ring_lent);
	repeat(argc, argv, "traces", traces);
	return 0;
}
