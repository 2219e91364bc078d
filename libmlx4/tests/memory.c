// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: doorbell records and number tables of many objects; pages that fork() keeps from
 * children; and failure of each allocation in turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_xrc_domain *domain;
static struct dev_cq cq;

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	return attr;
}

/*
 * A page holds 512 records of CQs. A new CQ gets the lowest free record, and an empty page is
 * unmapped.
 */
static void cq_records(void **state)
{
	enum { N = 1200 };
	uint32_t per_page = sysconf(_SC_PAGESIZE) / 8, i;
	int mapped = fk.mapped;
	struct dev_cq *d = test_malloc(N * sizeof(*d));
	uint8_t *db;

	(void)state;
	for (i = 0; i < N; ++i) {
		dev_create_cq(&d[i], ctx, 1);
		assert_int_equal((uintptr_t)d[i].db % 8, 0);
		/* The CQ that setup() made has the first record of the first page. */
		if ((i + 1) % per_page)
			assert_ptr_equal(d[i].db, (i ? d[i - 1].db : cq.db) + 8);
	}
	assert_int_equal(fk.mapped - mapped, N + N / per_page);

	/* These records are in the newest page, where the provider looks first. */
	db = d[1150].db;
	memset(db, 0xff, 8);
	assert_int_equal(ibv_destroy_cq(d[1151].cq), 0);
	assert_int_equal(ibv_destroy_cq(d[1150].cq), 0);
	dev_create_cq(&d[1150], ctx, 1);
	assert_ptr_equal(d[1150].db, db);
	assert_int_equal(be64_at(db, 0), 0);
	dev_create_cq(&d[1151], ctx, 1);
	assert_ptr_equal(d[1151].db, db + 8);

	for (i = 0; i < N; ++i)
		assert_int_equal(ibv_destroy_cq(d[i].cq), 0);
	assert_int_equal(fk.mapped, mapped);
	test_free(d);
}

/* QPs and SRQs share the pages of receive records. */
static void rq_records(void **state)
{
	enum { N = 1100 };
	uint32_t per_page = sysconf(_SC_PAGESIZE) / 4, i;
	struct ibv_qp_init_attr attr;
	struct dev_srq *srq = test_malloc(N * sizeof(*srq));
	int mapped = fk.mapped;
	struct dev_qp qp;

	(void)state;
	for (i = 0; i < N; ++i) {
		dev_create_srq(&srq[i], pd, NULL, NULL, 1, 1);
		assert_int_equal((uintptr_t)srq[i].db % 4, 0);
		if (i % per_page)
			assert_ptr_equal(srq[i].db, srq[i - 1].db + 4);
	}
	attr = qp_attr(IBV_QPT_RC);
	dev_create_qp(&qp, pd, &attr);
	assert_ptr_equal(qp.db, srq[N - 1].db + 4);
	assert_int_equal(fk.mapped - mapped, N + 1 + N / per_page + 1);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	for (i = 0; i < N; ++i)
		assert_int_equal(ibv_destroy_srq(srq[i].srq), 0);
	assert_int_equal(fk.mapped, mapped);
	test_free(srq);
}

/*
 * QPs have numbers from the whole space, many of which share low bits with numbers given out
 * before. Each completion finds its QP.
 */
static void find_qps(uint32_t table_size)
{
	enum { N = 300 };
	struct dev_qp *qp = test_malloc(N * sizeof(*qp));
	struct ibv_sge sge = {1, 1, 1};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_qp_init_attr attr;
	uint32_t i, k, n = N < table_size ? N : table_size;
	struct ibv_wc wc;

	for (i = 0; i < n; ++i) {
		/* The low bits are all different, the high bits arbitrary. */
		fk.next_qpn =
			((i * 0x9e37 + 1) & (table_size - 1)) | ((i * 77 * table_size) & 0x7fffff);
		attr = qp_attr(i % 7 ? IBV_QPT_RC : IBV_QPT_XRC);
		dev_create_qp(&qp[i], pd, &attr);
		dev_init_qp(&qp[i]);
	}
	for (k = 0; k < 2; ++k) {
		for (i = 0; i < n; ++i) {
			wr.wr_id = k * 1000 + i;
			assert_int_equal(ibv_post_send(qp[i].qp, &wr, &bad), 0);
			dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp[i].qp->qp_num,
								.wqe_index = k,
								.sr_opcode = 0x4a});
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, k * 1000 + i);
			assert_int_equal(wc.qp_num, qp[i].qp->qp_num);
		}
	}
	/*
	 * Completions of a destroyed QP are errors; those of its neighbours still find their QPs.
	 */
	for (i = 0; i < n; i += 2)
		assert_int_equal(ibv_destroy_qp(qp[i].qp), 0);
	for (i = 0; i < n; ++i) {
		k = ((i * 0x9e37 + 1) & (table_size - 1)) | ((i * 77 * table_size) & 0x7fffff) |
		    (i % 7 ? 0 : 1 << 23);
		dev_write_cqe(&cq,
			      &(struct cqe_fields){.qpn = k, .wqe_index = 2, .sr_opcode = 0x4a});
		if (i & 1)
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		else
			assert_true(ibv_poll_cq(cq.cq, 1, &wc) < 0);
	}
	for (i = 1; i < n; i += 2)
		assert_int_equal(ibv_destroy_qp(qp[i].qp), 0);
	test_free(qp);
}

static void tables(void **state)
{
	find_qps(atoi(*state));
}

static void xrc_srq_table(void **state)
{
	enum { N = 200 };
	struct dev_srq *srq = test_malloc(N * sizeof(*srq));
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_wc wc;
	uint32_t i;

	(void)state;
	for (i = 0; i < N; ++i) {
		fk.next_srqn = (i * 0x135 + 0x40) & 0xffff;
		dev_create_srq(&srq[i], pd, domain, cq.cq, 1, 1);
		wr.wr_id = i;
		assert_int_equal(ibv_post_srq_recv(srq[i].srq, &wr, &bad), 0);
	}
	for (i = 0; i < N; ++i) {
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = 0x800001,
							.dw2 = srq[i].srq->xrc_srq_num,
							.sr_opcode = 1});
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
	}
	for (i = 0; i < N; ++i)
		assert_int_equal(ibv_destroy_srq(srq[i].srq), 0);
	test_free(srq);
}

/*
 * Creates each object with its first, second, ... allocation refused. The call fails with ENOMEM
 * and leaves nothing; when no allocation is refused, it succeeds.
 */
static void out_of_memory(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr attr;
	struct ibv_ah_attr ah_attr = {.dlid = 1, .port_num = 1};
	int mapped = fk.mapped;
	unsigned int n, refused;

	(void)state;
#define EXHAUST(type, expected, create, destroy)                                                   \
	do {                                                                                       \
		type *obj;                                                                         \
		for (n = 1, refused = 0;; ++n) {                                                   \
			fk.fail_at = n;                                                            \
			errno = 0;                                                                 \
			obj = create;                                                              \
			if (obj && fk.fail_at)                                                     \
				break;                                                             \
			if (obj) {                                                                 \
				destroy(obj);                                                      \
				continue;                                                          \
			}                                                                          \
			assert_int_equal(errno, ENOMEM);                                           \
			assert_int_equal(fk.mapped, mapped);                                       \
			++refused;                                                                 \
		}                                                                                  \
		fk.fail_at = 0;                                                                    \
		destroy(obj);                                                                      \
		assert_int_equal(fk.mapped, mapped);                                               \
		assert_int_equal(refused, expected);                                               \
	} while (0)
	/*
	 * Allocations: object, buffer, wr_ids or WQEs, record page and its bookkeeping, part of the
	 * table.
	 */
	EXHAUST(struct ibv_pd, 1, ibv_alloc_pd(ctx), ibv_dealloc_pd);
	EXHAUST(struct ibv_mr, 1, ibv_reg_mr(pd, &n, 4, 0), ibv_dereg_mr);
	EXHAUST(struct ibv_ah, 1, ibv_create_ah(pd, &ah_attr), ibv_destroy_ah);
	EXHAUST(struct ibv_cq, 2, ibv_create_cq(ctx, 1, NULL, NULL, 0), ibv_destroy_cq);
	EXHAUST(struct ibv_srq, 5, ibv_create_srq(pd, &srq_attr), ibv_destroy_srq);
	EXHAUST(struct ibv_srq, 6,
		(fk.next_srqn = 0x7000, ibv_create_xrc_srq(pd, domain, cq.cq, &srq_attr)),
		ibv_destroy_srq);
	EXHAUST(struct ibv_qp, 7,
		(fk.next_qpn = 0x30000, attr = qp_attr(IBV_QPT_RC), ibv_create_qp(pd, &attr)),
		ibv_destroy_qp);
	EXHAUST(struct ibv_xrc_domain, 1, ibv_open_xrc_domain(ctx, -1, O_CREAT),
		ibv_close_xrc_domain);

	fk.fail_at = 1;
	assert_int_equal(ibv_resize_cq(cq.cq, 1000), ENOMEM);
	assert_int_equal(fk.mapped, mapped);
	/* The provider destroyed each object in the kernel that it could not put into its table. */
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_CREATE_QP],
			 fk.count[IB_USER_VERBS_CMD_DESTROY_QP]);
	assert_int_equal(fk.count[IB_USER_VERBS_CMD_CREATE_SRQ] +
				 fk.count[IB_USER_VERBS_CMD_CREATE_XRC_SRQ],
			 fk.count[IB_USER_VERBS_CMD_DESTROY_SRQ]);
}

/*
 * Returns whether fork() keeps the page from children, by its flags in smaps; -1 if it is not
 * mapped.
 */
static int kept_from_children(const void *p)
{
	unsigned long start, end;
	char line[512];
	int inside = 0, kept = -1;
	FILE *f;

	f = fopen("/proc/self/smaps", "r");
	assert_non_null(f);
	while (kept < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)p >= start && (uintptr_t)p < end;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			kept = !!strstr(line, " dc");
	}
	fclose(f);
	return kept;
}

static void fork_safety(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct dev_srq srq;
	struct dev_qp qp;
	const char *emulator = getenv("EMULATOR");

	(void)state;
	/*
	 * qemu-user accepts MADV_DONTFORK but keeps nothing from children. The test returns early
	 * because cmocka's skip() counts as failed.
	 */
	if (emulator && *emulator) {
		print_message("# left out in an emulator: pages that fork() keeps from children\n");
		return;
	}
	dev_create_srq(&srq, pd, NULL, NULL, 1, 1);
	dev_create_qp(&qp, pd, &attr);
	assert_int_equal(kept_from_children(cq.buf), 1);
	assert_int_equal(kept_from_children(cq.db), 1);
	assert_int_equal(kept_from_children(srq.buf), 1);
	assert_int_equal(kept_from_children(srq.db), 1);
	assert_int_equal(kept_from_children(qp.sq), 1);
	assert_int_equal(kept_from_children(qp.db), 1);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq.srq), 0);
}

static int setup(void **state)
{
	fk_reset();
	if (*state)
		fk.qp_tab_size = atoi(*state);
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, O_CREAT);
	dev_create_cq(&cq, ctx, 3);
	return !pd || !domain;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx) || fk.mapped;
}

int main(void)
{
#define TEST(test, size)                                                                           \
	{                                                                                          \
#test, test, setup, teardown, size                                                 \
	}
	const struct CMUnitTest tests[] = {
		TEST(cq_records, NULL),	   TEST(rq_records, NULL),    TEST(tables, "262144"),
		TEST(tables, "256"),	   TEST(tables, "64"),	      TEST(tables, "16777216"),
		TEST(xrc_srq_table, NULL), TEST(out_of_memory, NULL), TEST(fork_safety, NULL),
	};

	if (ibv_fork_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
