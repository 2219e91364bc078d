// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program that a process executes has its memory to itself. The process before it
 * had registered the same addresses. Its peer writes, sends and reads there all the time, and does
 * not reach the new program.
 * Again: SOFTHCA_QUEUES=copy EXEC_DROPS=1
 *
 * One process alternates by exec between two parts. As the owner it registers two areas at fixed
 * addresses (this program is linked without PIE). As the stranger it has no device, and checks the
 * content of the areas. EXEC_ROUNDS is the number of rounds. With EXEC_DROPS both give up what the
 * kernel asks for where one of them reaches the other's memory.
 * Quick: half
 */
#include <pthread.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "verbs_test.h"

#define AREA  (16 * 4096)
#define HALF  (AREA / 2)
#define FRESH 0x5a /* content in the program file */
#define OWNED 0xa5 /* written by the owner, for its peer to read */
#define SENT  0xee /* written by the peer */
#define LATER 400  /* posts that the stranger waits for */

/* The first area stays private, as it is memory of a file; the second can be shared. */
static uint8_t of_file[AREA] __attribute__((aligned(4096))) = {[0 ... AREA - 1] = FRESH};
static uint8_t of_none[AREA] __attribute__((aligned(4096)));

/* Survives exec: a memfd, whose number is the second argument. */
static struct stage {
	uint32_t rounds, published, connected, ready, looked;
	uint32_t qpn[2], peer_qpn[2], rkey[2];
	uint32_t posts, read, bad;
	uint16_t lid, peer_lid;
} * stage;

#define SAY(word, value) __atomic_store_n(&stage->word, value, __ATOMIC_RELEASE)
#define HEAR(word)	 __atomic_load_n(&stage->word, __ATOMIC_ACQUIRE)

static char self[4096], fd_arg[16], round_arg[16];

static void become(const char *role, uint32_t round)
{
	char *argv[] = {self, (char *)role, fd_arg, round_arg, NULL};

	snprintf(round_arg, sizeof(round_arg), "%u", round);
	execv(self, argv);
	check_failed(__FILE__, __LINE__, "execv", errno);
}

static void *become_stranger(void *round)
{
	become("stranger", (uint32_t)(uintptr_t)round);
	return NULL;
}

static void link_of(struct link *l, bool rc, uint16_t lid, uint32_t qpn)
{
	link_defaults(l, lid, qpn);
	l->timeout = 10;
	l->access = rc ? l->access : IBV_ACCESS_REMOTE_WRITE;
}

static void drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (!getenv("EXEC_DROPS"))
		return;
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
	CHECK_EQ(syscall(SYS_capset, &head, none), 0);
}

static void owner(uint32_t round)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *mr[2];
	struct ibv_qp *qp[2];
	struct side s;
	struct link l;

	memset(of_file, OWNED, AREA);
	memset(of_none, OWNED, AREA);
	side_open(&s, 4096, 64, SIDE_ONE_CQ);
	mr[0] = ibv_reg_mr(s.pd, of_file, AREA, access);
	mr[1] = ibv_reg_mr(s.pd, of_none, AREA, access);
	CHECK(mr[0] && mr[1]);
	qp[0] = make_qp(&s, IBV_QPT_UC, NULL, NULL, NULL);
	qp[1] = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		stage->qpn[i] = qp[i]->qp_num;
		stage->rkey[i] = mr[i]->rkey;
	}
	stage->lid = s.lid;
	SAY(published, round);
	while (HEAR(connected) != round)
		sleep_ms(1);
	for (int i = 0; i < 2; i++) {
		link_of(&l, i == 1, stage->peer_lid, stage->peer_qpn[i]);
		connect_qp(qp[i], &l);
	}
	for (int i = 0; i < 16; i++) {
		struct ibv_sge sge = {(uintptr_t)of_file + 64 * i, 64, mr[0]->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		CHECK_EQ(ibv_post_recv(qp[1], &wr, &bad), 0);
	}
	drop();
	SAY(ready, round);
	while (((volatile uint8_t *)of_file)[HALF - 1] != SENT ||
	       ((volatile uint8_t *)of_none)[HALF - 1] != SENT)
		;
	/* On a busy machine all READs may come too late, so the first owner waits for one. */
	while (round == 1 && !HEAR(read))
		sleep_ms(1);
	if (round % 2) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, become_stranger, (void *)(uintptr_t)round),
			 0);
		pthread_join(thread, NULL);
	}
	become("stranger", round);
}

static void stranger(uint32_t round)
{
	uint32_t before = HEAR(posts);

	while (HEAR(posts) - before < LATER)
		sleep_ms(1);
	for (int i = 0; i < AREA; i++) {
		if (of_file[i] != FRESH || of_none[i] != 0) {
			fprintf(stderr, "round %u: at %d the new program finds %#x and %#x\n",
				round, i, of_file[i], of_none[i]);
			__atomic_fetch_add(&stage->bad, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	SAY(looked, round);
	if (round == stage->rounds)
		exit(0);
	become("owner", round + 1);
}

/* ---- the peer ---- */

/* Takes completions. What was read must be the owner's content. */
static void look(struct side *s)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(s->scq, 8, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id != 2 || wc[i].status != IBV_WC_SUCCESS)
			continue;
		stage->read++;
		for (unsigned int j = 0; j < 4096; j++)
			CHECK_EQ(s->buf[4096 + j], OWNED);
	}
}

static void harass(struct side *s, struct ibv_qp *uc, struct ibv_qp *rc, uint32_t round)
{
	uint64_t at[2] = {(uintptr_t)of_file, (uintptr_t)of_none};

	for (uint32_t n = 0; HEAR(looked) != round; n++) {
		uint32_t len = n % 3 ? 8 : 4096,
			 off = n % 3 == 1 ? HALF - 8 : n * 64 % (HALF - 4096);

		/* If the queue is full, the next round finds it empty. */
		(void)post_rdma1(uc, s, IBV_WR_RDMA_WRITE, 0, 0, len, at[n / 3 % 2] + off,
				 stage->rkey[n / 3 % 2], IBV_SEND_SIGNALED);
		if (n % 16 == 0)
			(void)post_send1(rc, s, 1, 0, 64, IBV_SEND_SIGNALED);
		if (n % 16 == 8)
			(void)post_rdma1(rc, s, IBV_WR_RDMA_READ, 2, 4096, 4096,
					 at[n / 16 % 2] + HALF, stage->rkey[n / 16 % 2],
					 IBV_SEND_SIGNALED);
		look(s);
		SAY(posts, HEAR(posts) + 1);
	}
}

static void peer(void)
{
	struct ibv_qp *qp[2];
	struct side s;
	struct link l;

	side_open(&s, 2 * 4096, 64, SIDE_ONE_CQ);
	memset(s.buf, SENT, 4096);
	stage->peer_lid = s.lid;
	drop();
	for (uint32_t round = 1; round <= stage->rounds; round++) {
		while (HEAR(published) != round)
			sleep_ms(1);
		for (int i = 0; i < 2; i++) {
			qp[i] = make_qp(&s, i ? IBV_QPT_RC : IBV_QPT_UC, NULL, NULL, NULL);
			stage->peer_qpn[i] = qp[i]->qp_num;
			link_of(&l, i == 1, stage->lid, stage->qpn[i]);
			connect_qp(qp[i], &l);
		}
		SAY(connected, round);
		/* A request that comes before that is retried, but only for a time. */
		while (HEAR(ready) != round)
			sleep_ms(1);
		harass(&s, qp[0], qp[1], round);
		for (int i = 0; i < 2; i++)
			CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
		alarm(test_seconds());
	}
	side_close(&s);
}

static void map_stage(int fd)
{
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(stage != MAP_FAILED);
	snprintf(fd_arg, sizeof(fd_arg), "%d", fd);
}

static void first_owner(int arg)
{
	(void)arg;
	become("owner", 1);
}

int main(int argc, char **argv)
{
	const char *rounds = getenv("EXEC_ROUNDS");
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t child;
	int fd;

	CHECK(len > 0);
	self[len] = '\0';
	if (argc == 4) {
		alarm(test_seconds());
		map_stage(atoi(argv[2]));
		(strcmp(argv[1], "owner") ? stranger : owner)((uint32_t)atoi(argv[3]));
	}
	test_begin();
	fd = memfd_create("stage", 0);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, sizeof(*stage)), 0);
	map_stage(fd);
	stage->rounds = rounds ? (uint32_t)atoi(rounds) : 12;
	child = spawn(first_owner, 0);
	peer();
	join(child);
	CHECK(stage->read > 0);
	CHECK_EQ(stage->bad, 0);
	return 0;
}
