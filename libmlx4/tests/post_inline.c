// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: inline data of every length, for every QP type, from one entry and from many, is
 * split at 64-byte boundaries, as the device reads it. A single such request goes through the
 * BlueFlame register; for a list of requests the provider rings the doorbell. Data that is too long
 * is refused.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-kernel.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct dev_cq cq;
static struct ibv_xrc_domain *domain;
static struct ibv_ah *ah;
static uint8_t data[1024];
static uint8_t *edge; /* the end of a page, behind which nothing is mapped */

static uint32_t create(struct dev_qp *qp, enum ibv_qp_type type, uint32_t max_inline)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq.cq,
		.recv_cq = cq.cq,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = max_inline},
		.qp_type = type,
	};

	if (type == IBV_QPT_XRC)
		attr.xrc_domain = domain;
	dev_create_qp(qp, pd, &attr);
	dev_init_qp(qp);
	memset(fk.uar, 0, 4096);
	return attr.cap.max_inline_data;
}

static void retire(const struct dev_qp *qp, uint32_t last_index)
{
	struct ibv_wc wc;

	dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp->qp->qp_num,
						.wqe_index = last_index,
						.sr_opcode = 0x4a});
	assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
}

/*
 * Reads the inline segments from offset at to the end of the WQE, as the device does. Returns how
 * many bytes they hold.
 */
static uint32_t gather_inline(const uint8_t *wqe, uint32_t at, uint8_t *out)
{
	uint32_t end = (wqe[7] & 0x3f) * 16, total = 0, header, n;

	while (at < end) {
		header = be32_at(wqe, at);
		assert_true(header & 0x80000000);
		assert_int_equal(header & 0x7ffffc00, 0);
		n = header & 0x3ff;
		assert_true(n > 0);
		/* A segment lies within one 64-byte chunk. */
		assert_int_equal(at / 64, (at + 4 + n - 1) / 64);
		memcpy(out + total, wqe + at + 4, n);
		total += n;
		at = (at + 4 + n + 15) & ~15u;
	}
	assert_int_equal(at, end);
	return total;
}

/* Returns the size of the WQE, in 16-byte units, that the device's interface prescribes. */
static uint32_t inline_ds(uint32_t fixed, uint32_t bytes)
{
	uint32_t segs = 0, left = bytes, room = 64 - fixed % 64 - 4;

	while (left) {
		++segs;
		left -= left < room ? left : room;
		room = 60;
	}
	return fixed / 16 + (bytes + 4 * segs + 15) / 16;
}

static void check(const struct dev_qp *qp, uint32_t index, uint32_t fixed, uint32_t length)
{
	const uint8_t *wqe = dev_sq_slot(qp, index);
	uint8_t got[1024];

	assert_int_equal(be32_at(wqe, 0) >> 31, !!(index & qp->sq_slots));
	assert_int_equal(wqe[7] & 0x3f, inline_ds(fixed, length));
	assert_int_equal(gather_inline(wqe, fixed, got), length);
	assert_memory_equal(got, data, length);
	/* The chunk behind the WQE still has its stamp. */
	if ((wqe[7] & 0x3f) * 16 % 64 == 0 && (wqe[7] & 0x3f) * 16u < 1u << qp->sq_shift)
		assert_int_equal(be32_at(wqe, (wqe[7] & 0x3f) * 16), 0xffffffff);
}

/*
 * A single request goes through the register if its WQE fits into a BlueFlame buffer, and else by
 * the doorbell.
 */
static void check_bus(const struct dev_qp *qp, uint32_t index, uint32_t length,
		      unsigned int *buffer)
{
	const uint8_t *wqe = dev_sq_slot(qp, index), *bf = fk.bf + *buffer * 256;
	uint32_t bytes = (wqe[7] & 0x3f) * 16;
	uint32_t doorbell = be32_at(fk.uar, 0x14);

	memset(fk.uar, 0, 4096);
	if (length && bytes <= 256) {
		assert_int_equal(doorbell, 0);
		assert_memory_equal(bf, wqe, (bytes + 63) / 64 * 64);
		assert_int_equal(be32_at(bf, 0) >> 8 & 0xffff, index & 0xffff);
		assert_int_equal(be32_at(bf, 4) >> 8, qp->qp->qp_num);
		*buffer ^= 1;
	} else {
		assert_int_equal(doorbell, qp->qp->qp_num << 8);
	}
}

/* Cuts the data into entries whose sizes depend on the seed. Some of them are empty. */
static int cut(struct ibv_sge *list, int max, uint32_t length, uint32_t seed)
{
	uint32_t done = 0, n;
	int i;

	for (i = 0; i < max - 1 && done < length; ++i) {
		n = (seed >> i) % 3 ? (seed * (i + 7)) % 97 : 0;
		if (n > length - done)
			n = length - done;
		list[i] = (struct ibv_sge){(uintptr_t)data + done, n, 0};
		done += n;
	}
	list[i] = (struct ibv_sge){(uintptr_t)data + done, length - done, 0};
	return i + 1;
}

/* Fills the data with bytes that differ from those that the slot still holds. */
static void renew_data(uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < sizeof(data); ++i)
		data[i] = i * 7 + i / 256 + seed * 13;
}

static void every_length(enum ibv_qp_type type, enum ibv_wr_opcode opcode, uint32_t fixed,
			 uint32_t max_inline)
{
	struct ibv_sge list[8];
	struct ibv_send_wr wr, pair[2], *bad;
	uint32_t granted, length, index = 0, seed;
	unsigned int buffer;
	struct dev_qp qp;

	granted = create(&qp, type, max_inline);
	/* Only the first post shows which of the two buffers is next. */
	memset(fk.bf, 0, 4096);
	memset(&wr, 0, sizeof(wr));
	wr.sg_list = list;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_INLINE;
	if (type == IBV_QPT_UD)
		wr.wr.ud.ah = ah;
	list[0] = (struct ibv_sge){(uintptr_t)data, 4, 0};
	wr.num_sge = 1;
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
	buffer = be32_at(fk.bf, 0) ? 1 : 0;
	retire(&qp, index++);

	for (length = 0; length <= granted; ++length) {
		for (seed = 0; seed < 4; ++seed) {
			renew_data(index);
			if (seed) {
				wr.num_sge = cut(list, qp.sq_shift == 6 ? 2 : 3 + seed % 2, length,
						 length * 31 + seed);
			} else {
				/*
				 * The data ends where the page ends: the provider must not read
				 * behind it.
				 */
				list[0] = (struct ibv_sge){(uintptr_t)edge - length, length, 0};
				memcpy(edge - length, data, length);
				wr.num_sge = 1;
			}
			assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
			check(&qp, index, fixed, length);
			check_bus(&qp, index, length, &buffer);
			retire(&qp, index++);
		}

		/*
		 * The provider rings the doorbell for a list, whether the data is in several
		 * entries or in one.
		 */
		for (seed = 0; seed < 2; ++seed) {
			if (seed) {
				renew_data(index);
				list[0] = (struct ibv_sge){(uintptr_t)edge - length, length, 0};
				memcpy(edge - length, data, length);
				wr.num_sge = 1;
			}
			pair[0] = pair[1] = wr;
			pair[0].next = &pair[1];
			assert_int_equal(ibv_post_send(qp.qp, pair, &bad), 0);
			check(&qp, index, fixed, length);
			check(&qp, index + 1, fixed, length);
			assert_int_equal(be32_at(fk.uar, 0x14), qp.qp->qp_num << 8);
			memset(fk.uar, 0, 4096);
			retire(&qp, index + 1);
			index += 2;
		}
	}

	/*
	 * One byte too many, in one entry or in two: the request is refused, the doorbell does not
	 * ring, and the slot is stamped.
	 */
	list[0] = (struct ibv_sge){(uintptr_t)data, granted + 1, 0};
	wr.num_sge = 1;
	bad = NULL;
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	list[0].length = granted;
	list[1] = (struct ibv_sge){(uintptr_t)data, 1, 0};
	wr.num_sge = 2;
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), EINVAL);
	/* a sum of lengths that wraps */
	list[0].length = 0xffffffff;
	list[1].length = 2;
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), EINVAL);
	assert_int_equal(be32_at(fk.uar, 0x14), 0);
	assert_int_equal(be32_at(dev_sq_slot(&qp, index), 0) >> 31, !(index & qp.sq_slots));
	for (length = 64; length < 1u << qp.sq_shift; length += 64)
		assert_int_equal(be32_at(dev_sq_slot(&qp, index), length), 0xffffffff);

	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void rc_send(void **state)
{
	(void)state;
	every_length(IBV_QPT_RC, IBV_WR_SEND, 16, 0);
	every_length(IBV_QPT_RC, IBV_WR_SEND, 16, 64);
	every_length(IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 16, 912);
}

static void rc_write(void **state)
{
	(void)state;
	every_length(IBV_QPT_RC, IBV_WR_RDMA_WRITE, 32, 0);
	every_length(IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, 32, 300);
}

static void uc(void **state)
{
	(void)state;
	every_length(IBV_QPT_UC, IBV_WR_SEND, 16, 200);
	every_length(IBV_QPT_UC, IBV_WR_RDMA_WRITE, 32, 200);
}

static void ud(void **state)
{
	(void)state;
	every_length(IBV_QPT_UD, IBV_WR_SEND, 64, 0);
	every_length(IBV_QPT_UD, IBV_WR_SEND, 64, 884);
}

/* Datagrams one at a time, three times round the queue: the headroom keeps its stamps. */
static void ud_stamps(void **state)
{
	struct ibv_sge sge = {(uintptr_t)data, 0, 0};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				 .wr.ud = {.ah = ah}},
			   *bad;
	struct dev_qp qp;
	uint32_t granted, spare;

	(void)state;
	granted = create(&qp, IBV_QPT_UD, 60);
	spare = (2048 >> qp.sq_shift) + 1;
	for (uint32_t index = 0; index < 3 * qp.sq_slots; ++index) {
		sge.length = 1 + index % granted;
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
		check(&qp, index, 64, sge.length);
		for (uint32_t i = 1; i <= spare; ++i)
			assert_int_equal(be32_at(dev_sq_slot(&qp, index + i), 64), 0xffffffff);
		retire(&qp, index);
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

static void xrc(void **state)
{
	(void)state;
	every_length(IBV_QPT_XRC, IBV_WR_SEND, 16, 150);
	every_length(IBV_QPT_XRC, IBV_WR_RDMA_WRITE, 32, 150);
}

/*
 * All fields of a short inline WQE: flags, immediate data, remote address, SRQ number, owner bit
 * over two rounds; and its wr_id.
 */
static void control_of_short(void **state)
{
	struct ibv_sge sge = {(uintptr_t)data, 9, 0};
	struct ibv_send_wr wr, *bad;
	struct dev_qp qp;
	struct ibv_wc wc;
	uint32_t index;
	uint8_t *wqe;

	(void)state;
	create(&qp, IBV_QPT_XRC, 64);
	for (index = 0; index < 2 * qp.sq_slots + 3; ++index) {
		memset(&wr, 0, sizeof(wr));
		wr.wr_id = 0x123400000000 + index;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = index & 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND;
		wr.send_flags = IBV_SEND_INLINE | (index & 7);
		wr.imm_data = 0x44332211;
		wr.wr.rdma.remote_addr = 0x0102030405060708;
		wr.wr.rdma.rkey = 0x11121314;
		wr.xrc_remote_srq_num = 0xabcdef;
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);

		wqe = dev_sq_slot(&qp, index);
		assert_int_equal(be32_at(wqe, 0), (index & qp.sq_slots ? 0x80000000 : 0) |
							  index << 8 | (index & 1 ? 0x09 : 0x0a));
		assert_int_equal(be32_at(wqe, 4) >> 8, qp.qp->qp_num);
		assert_int_equal(wqe[7], (index & 1 ? 3 : 2) | (index & IBV_SEND_FENCE ? 0x40 : 0));
		assert_int_equal(be32_at(wqe, 8), 0xabcdef00 |
							  (index & IBV_SEND_SIGNALED ? 0xc : 0) |
							  (index & IBV_SEND_SOLICITED ? 2 : 0));
		assert_int_equal(field_get(wqe, 12, 4), index & 1 ? 0x44332211 : 0);
		if (index & 1) {
			assert_int_equal(be64_at(wqe, 16), 0x0102030405060708);
			assert_int_equal(be32_at(wqe, 24), 0x11121314);
			assert_int_equal(be32_at(wqe, 28), 0);
		}
		dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
							.wqe_index = index,
							.sr_opcode = 0x4a});
		assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
		assert_true(wc.wr_id == wr.wr_id);
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/* ---- lists ---- */

enum kind { SHORT, SHORT_WRITE, TWO_ENTRIES, LONG, EMPTY, BY_REFERENCE, KINDS };

static struct ibv_send_wr of_kind(enum kind kind, uint32_t index)
{
	static const uint32_t lengths[KINDS] = {9, 17, 20, 150, 0, 8};
	struct ibv_send_wr wr = {
		.wr_id = UINT64_C(0x432100000000) + index,
		.num_sge = kind == TWO_ENTRIES ? 2 : 1,
		.opcode = kind == SHORT_WRITE ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (index & 5) |
			      (kind == BY_REFERENCE ? 0 : IBV_SEND_INLINE),
		.imm_data = 0x44332211,
		.wr.rdma = {.remote_addr = 0x0102030405060708, .rkey = 0x11121314},
		.xrc_remote_srq_num = 0xabcdef,
	};
	static struct ibv_sge lists[KINDS][2];

	lists[kind][0] = (struct ibv_sge){(uintptr_t)data, lengths[kind], 0x99};
	lists[kind][1] = (struct ibv_sge){(uintptr_t)data + lengths[kind], 5, 0x99};
	wr.sg_list = lists[kind];
	return wr;
}

static void check_of_kind(const struct dev_qp *qp, enum kind kind, uint32_t index)
{
	static const uint32_t lengths[KINDS] = {9, 17, 25, 150, 0, 8};
	uint32_t fixed = kind == SHORT_WRITE ? 32 : 16, ds;
	const uint8_t *wqe = dev_sq_slot(qp, index);
	uint8_t got[1024];

	assert_int_equal(be32_at(wqe, 0), (index & qp->sq_slots ? 0x80000000 : 0) |
						  (kind == SHORT_WRITE ? 0x09 : 0x0a));
	ds = kind == BY_REFERENCE ? 2 : inline_ds(fixed, lengths[kind]);
	assert_int_equal(wqe[7], ds | (index & IBV_SEND_FENCE ? 0x40 : 0));
	assert_int_equal(be32_at(wqe, 8), 0xabcdef0c | (index & IBV_SEND_SOLICITED ? 2 : 0));
	assert_int_equal(field_get(wqe, 12, 4), kind == SHORT_WRITE ? 0x44332211 : 0);
	if (kind == SHORT_WRITE) {
		assert_int_equal(be64_at(wqe, 16), 0x0102030405060708);
		assert_int_equal(be32_at(wqe, 24), 0x11121314);
		assert_int_equal(be32_at(wqe, 28), 0);
	}
	if (kind == BY_REFERENCE) {
		assert_int_equal(be32_at(wqe, 16), 8);
		assert_int_equal(be32_at(wqe, 20), 0x99);
		assert_int_equal(be64_at(wqe, 24), (uintptr_t)data);
	} else {
		assert_int_equal(gather_inline(wqe, fixed, got), lengths[kind]);
		assert_memory_equal(got, data, lengths[kind]);
	}
}

/*
 * Lists of three requests, of any kinds in any order. Each WQE is as if it were posted alone, but
 * the doorbell rings once for all. The WQEs in the headroom are stamped.
 */
static void lists(void **state)
{
	uint32_t combination, n, index = 0, spare, i;
	enum kind kinds[3];
	struct ibv_send_wr wr[3], *bad;
	struct dev_qp qp;
	struct ibv_wc wc;

	(void)state;
	create(&qp, IBV_QPT_XRC, 150);
	spare = (2048 >> qp.sq_shift) + 1;
	/*
	 * First each combination once, then many at random, so that slots hold different data from
	 * before.
	 */
	for (n = 0; n < 3000; ++n) {
		combination = n < KINDS * KINDS * KINDS ? n : n * 2654435761u >> 16;
		renew_data(n);
		for (i = 0; i < 3; ++i) {
			kinds[i] = combination /
				   (i == 0   ? 1
				    : i == 1 ? KINDS
					     : KINDS * KINDS) %
				   KINDS;
			wr[i] = of_kind(kinds[i], index + i);
			wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		}
		assert_int_equal(ibv_post_send(qp.qp, wr, &bad), 0);
		assert_int_equal(be32_at(fk.uar, 0x14), qp.qp->qp_num << 8);
		memset(fk.uar, 0, 4096);
		for (i = 0; i < 3; ++i)
			check_of_kind(&qp, kinds[i], index + i);
		for (i = 3; i < 3 + spare; ++i) {
			const uint8_t *slot = dev_sq_slot(&qp, index + i);
			uint32_t chunk;

			assert_int_not_equal(be32_at(slot, 0) >> 31, !!((index + i) & qp.sq_slots));
			for (chunk = 64; chunk < (slot[7] & 0x3fu) * 16; chunk += 64)
				assert_int_equal(be32_at(slot, chunk), 0xffffffff);
		}
		for (i = 0; i < 3; ++i, ++index) {
			dev_write_cqe(&cq, &(struct cqe_fields){.qpn = qp.qp->qp_num,
								.wqe_index = index,
								.sr_opcode = 0x4a});
			assert_int_equal(ibv_poll_cq(cq.cq, 1, &wc), 1);
			assert_true(wc.wr_id == UINT64_C(0x432100000000) + index);
		}
	}
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * The provider posts only a part of a list: bad_wr is the request at fault, and the doorbell rings
 * for the requests before it.
 */
static void lists_end(void **state)
{
	struct ibv_send_wr wr[64], *bad;
	struct ibv_qp_init_attr init;
	uint32_t granted, i, at;
	struct ibv_qp_attr attr;
	struct dev_qp qp;

	(void)state;
	create(&qp, IBV_QPT_XRC, 64);
	assert_int_equal(ibv_query_qp(qp.qp, &attr, IBV_QP_CAP, &init), 0);
	granted = init.cap.max_send_wr;
	assert_in_range(granted, 4, 60);

	/*
	 * The request at fault is the first, second or third. It has too much data, an unknown
	 * opcode, too many entries, or the opcode of a READ.
	 */
	for (at = 0; at < 3; ++at) {
		for (i = 0; i < 4; ++i) {
			struct ibv_sge list = {(uintptr_t)data, 8, 0};
			uint32_t base = (at * (at - 1) / 2) * 4 + i * at, n;

			for (n = 0; n < 4; ++n) {
				wr[n] = of_kind(SHORT, base + n);
				wr[n].next = n < 3 ? &wr[n + 1] : NULL;
			}
			if (i == 0) {
				list.length = init.cap.max_inline_data + 1;
				wr[at].sg_list = &list;
			} else if (i == 1) {
				wr[at].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD + 1;
			} else if (i == 2) {
				wr[at].num_sge = 99;
			} else {
				wr[at].opcode = IBV_WR_RDMA_READ;
			}
			bad = NULL;
			assert_int_equal(ibv_post_send(qp.qp, wr, &bad), EINVAL);
			assert_ptr_equal(bad, &wr[at]);
			assert_int_equal(be32_at(fk.uar, 0x14), at ? qp.qp->qp_num << 8 : 0);
			memset(fk.uar, 0, 4096);
			for (n = 0; n < at; ++n)
				check_of_kind(&qp, SHORT, base + n);
			assert_int_not_equal(be32_at(dev_sq_slot(&qp, base + at), 0) >> 31,
					     !!((base + at) & qp.sq_slots));
			if (at)
				retire(&qp, base + at - 1);
		}
	}

	/* A list longer than the queue has room for. 12 requests have completed before. */
	for (i = 0; i <= granted; ++i) {
		wr[i] = of_kind(SHORT, 12 + i);
		wr[i].next = i < granted ? &wr[i + 1] : NULL;
	}
	bad = NULL;
	assert_int_equal(ibv_post_send(qp.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[granted]);
	assert_int_equal(be32_at(fk.uar, 0x14), qp.qp->qp_num << 8);
	for (i = 0; i < granted; ++i)
		check_of_kind(&qp, SHORT, 12 + i);
	assert_int_not_equal(be32_at(dev_sq_slot(&qp, 12 + granted), 0) >> 31,
			     !!((12 + granted) & qp.sq_slots));
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/* A request that sends no data cannot have inline data. */
static void not_for_reads(void **state)
{
	struct ibv_sge sge = {(uintptr_t)data, 8, 0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE},
			   *bad;
	struct dev_qp qp;
	int op;

	(void)state;
	create(&qp, IBV_QPT_RC, 64);
	for (op = IBV_WR_RDMA_READ; op <= IBV_WR_ATOMIC_FETCH_AND_ADD; ++op) {
		wr.opcode = op;
		assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), EINVAL);
	}
	assert_int_equal(be32_at(dev_sq_slot(&qp, 0), 0) >> 31, 1);

	/* The provider ignores a flag of a later generation. */
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = 1 << 4 | IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(qp.qp, &wr, &bad), 0);
	assert_int_equal(be32_at(dev_sq_slot(&qp, 0), 8), 0xc);
	retire(&qp, 0);
	assert_int_equal(ibv_destroy_qp(qp.qp), 0);
}

/*
 * The state says whether the application promises to use a single thread: the provider has code of
 * its own for that.
 */
static int setup(void **state)
{
	const char *single_threaded = *state;

	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *two;

	fk_reset();
	setenv("MLX4_SINGLE_THREADED", single_threaded, 1);
	ctx = fk_open();
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	domain = ibv_open_xrc_domain(ctx, -1, 0);
	ah = ibv_create_ah(pd, &attr);
	dev_create_cq(&cq, ctx, 15);

	two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (two == MAP_FAILED || mprotect(two + page, page, PROT_NONE))
		return -1;
	edge = two + page;
	return !pd || !domain || !ah;
}

static int teardown(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);

	(void)state;
	munmap(edge - page, 2 * page);
	return ibv_destroy_ah(ah) || ibv_destroy_cq(cq.cq) || ibv_close_xrc_domain(domain) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

int main(void)
{
#define BOTH(test)                                                                                 \
	{#test, test, setup, teardown, "0"},                                                       \
	{                                                                                          \
#test "_single_threaded", test, setup, teardown, "1"                               \
	}
	const struct CMUnitTest tests[] = {
		BOTH(rc_send),
		BOTH(rc_write),
		BOTH(uc),
		BOTH(ud),
		BOTH(ud_stamps),
		BOTH(xrc),
		BOTH(control_of_short),
		BOTH(not_for_reads),
		BOTH(lists),
		BOTH(lists_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
