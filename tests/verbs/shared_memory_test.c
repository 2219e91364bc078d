// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See shared_memory_test.h. */
#include <fcntl.h>
#include <sys/mman.h>

#include "shared_memory_test.h"

struct side s;
static struct ibv_qp *a, *b;

void up(void)
{
	side_open(&s, 16 * PAGE, 64, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
}

void down(void)
{
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

uint8_t *pages(size_t n)
{
	uint8_t *p =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

struct ibv_mr *reg(void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, addr, len, ACCESS);

	CHECK(mr);
	return mr;
}

void through(struct ibv_mr *mr, uint8_t *to, size_t len, uint64_t seed)
{
	CHECK(len <= 8 * PAGE);
	fill(s.buf, len, seed);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 1, 0, len, (uintptr_t)to, mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(to, len, seed), -1);
	fill(to, len, seed + 1);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_READ, 2, 8 * PAGE, len, (uintptr_t)to, mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 8 * PAGE, len, seed + 1), -1);
}

void refused(struct ibv_mr *mr, uint8_t *to, size_t len, enum ibv_wc_status status)
{
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 3, 0, len, (uintptr_t)to, mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 3, status);
	expect_event(s.context, IBV_EVENT_QP_ACCESS_ERR);
	CHECK_EQ(to_state(a, IBV_QPS_RESET), 0);
	CHECK_EQ(to_state(b, IBV_QPS_RESET), 0);
	connect_pair(&s, a, b);
}

bool shares(void *addr, size_t len, struct ibv_mr **mr)
{
	uint64_t shared = hca_counter("regions_shared"), private = hca_counter("regions_private");

	*mr = reg(addr, len);
	shared = hca_counter("regions_shared") - shared;
	private = hca_counter("regions_private") - private;
	CHECK_EQ(shared + private, 1);
	return shared;
}

void attributes_of(const void *addr, char *out, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	bool inside = false;
	char line[512];

	CHECK(f);
	out[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)addr >= from && (uintptr_t)addr < to;
		else if (inside &&
			 (!strncmp(line, "VmFlags", 7) || !strncmp(line, "ProtectionKey", 13)))
			strncat(out, line, len - strlen(out) - 1);
	}
	fclose(f);
}

struct rlimit use_up_descriptors(void)
{
	struct rlimit was, none;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	CHECK_EQ(open("/dev/null", O_RDONLY), -1);
	CHECK_EQ(errno, EMFILE);
	return was;
}

void given_back(uint64_t used)
{
	for (int i = 0; i < 2000 && hca_counter("shared_pages_used") != used; i++)
		sleep_ms(5);
	CHECK_EQ(hca_counter("shared_pages_used"), used);
}

static bool named(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

static bool full_tier(void)
{
	const char *tier = getenv("TIER");

	return tier && !strcmp(tier, "full");
}

int rounds(int n)
{
	return full_tier() ? n : n / 4;
}

static int times_run = 1;

int each_time(int n)
{
	return times_run > 1 ? n / 4 : n;
}

void repeat(int argc, char **argv, const char *name, void (*fn)(int arg))
{
	const char *times = getenv("REPEAT");
	int n = times && *times ? atoi(times) : full_tier() ? 15 : 1;

	if (!named(argc, argv, name))
		return;
	times_run = n;
	printf("# %s, %d times\n", name, n);
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		alarm(test_seconds());
		join(spawn(fn, 0));
	}
}

struct ibv_qp *connect_to_other(int me, bool hasty)
{
	enum { QPN = 30, LID = 32 };
	struct ibv_qp *qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	struct link l;

	post((unsigned int)(LID + me), s.lid);
	post((unsigned int)(QPN + me), qp->qp_num);
	meet(2);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	if (hasty) {
		l.timeout = 8;
		l.retry_cnt = 1;
	}
	connect_qp(qp, &l);
	meet(2);
	return qp;
}
