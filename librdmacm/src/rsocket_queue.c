// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The queues of a stream: what they are made of, what is posted to them, and what their completions
 * mean. One CQ serves both directions. Few sends ask for a completion: it stands for all before it.
 */

#include <byteswap.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rs.h"

enum { BATCH = 16, ACKNOWLEDGE = 64, CREDITS_AT_ONCE = 2 };

/* Receives have no buffers: the peer writes data where the target list says. */
#define NEXT(n)                                                                                    \
	{                                                                                          \
		.next = (struct ibv_recv_wr *)&receives[(n) + 1]                                   \
	}
static const struct ibv_recv_wr receives[BATCH] = {
	NEXT(0), NEXT(1), NEXT(2),  NEXT(3),  NEXT(4),	NEXT(5),  NEXT(6),  NEXT(7),
	NEXT(8), NEXT(9), NEXT(10), NEXT(11), NEXT(12), NEXT(13), NEXT(14), {.next = NULL},
};

static int post_receives(struct rs *rs)
{
	struct ibv_recv_wr *bad;
	unsigned int n;

	while (rs->rq_missing) {
		n = rs->rq_missing < BATCH ? rs->rq_missing : BATCH;
		if (ibv_post_recv(rs->qp, (struct ibv_recv_wr *)&receives[BATCH - n], &bad))
			return -ECONNRESET;
		rs->rq_missing -= n;
	}
	return 0;
}

int rs_start_receiving(struct rs *rs)
{
	rs->rq_missing = rs->rq_size + RS_CONTROLS;
	return post_receives(rs);
}

void rs_break(struct rs *rs, int error)
{
	if (rs->broken)
		return;
	rs->broken = true;
	if (!rs->recv_down || !rs->send_down)
		rs->error = error;
	rs->recv_down = rs->send_down = true;
}

/* ---- Posting ---- */

/* A completion tells how far the ring, and the queue, have become free again. */
static uint64_t position(const struct rs *rs, bool control)
{
	return (uint64_t)rs->sbuf_pos << 32 | (uint32_t)(rs->sq_pos << 1) | control;
}

static int post(struct rs *rs, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (rs->broken || ibv_post_send(rs->qp, wr, &bad)) {
		rs_break(rs, ECONNRESET);
		return -ECONNRESET;
	}
	return 0;
}

/* Asks for a completion if a quarter of the queue, or of the ring, waits for one. */
static void signal_if_due(struct rs *rs, struct ibv_send_wr *wr)
{
	wr->wr_id = position(rs, false);
	if (rs->sq_pos - rs->sq_signaled < rs->sq_room / 4 &&
	    rs->sbuf_pos - rs->sbuf_signaled < rs->sbuf_size / 4)
		return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	rs->sq_signaled = rs->sq_pos;
	rs->sbuf_signaled = rs->sbuf_pos;
}

int rs_post_write(struct rs *rs, struct ibv_sge *sge, uint32_t length, int64_t imm, uint64_t addr,
		  uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = imm < 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = length ? IBV_SEND_INLINE : 0,
		.imm_data = htobe32((uint32_t)imm),
		.sg_list = sge,
		.num_sge = length ? 1 : 0,
		.wr.rdma = {.remote_addr = addr, .rkey = key},
	};

	rs->sq_pos++;
	signal_if_due(rs, &wr);
	return post(rs, &wr);
}

int rs_post_piece(struct rs *rs, uint32_t offset, uint32_t length, int64_t imm, uint64_t addr,
		  uint32_t key)
{
	struct ibv_send_wr wrs[RS_PIECE / RS_STEP];
	struct ibv_sge sges[RS_PIECE / RS_STEP];
	uint32_t room = rs->sq_room - (rs->sq_pos - rs->sq_done), n, i, len;

	/* With less room the last write is longer. */
	n = (length + RS_STEP - 1) / RS_STEP;
	if (n > room)
		n = room;
	for (i = 0; i < n; i++) {
		len = i + 1 < n ? RS_STEP : length;
		sges[i] = (struct ibv_sge){.addr = (uintptr_t)(rs->sbuf + offset),
					   .length = len,
					   .lkey = rs->send_mem.mr->lkey};
		wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wrs[i + 1] : NULL,
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sges[i],
			.num_sge = 1,
			.wr.rdma = {.remote_addr = addr, .rkey = key},
		};
		rs->sq_pos++;
		rs->sbuf_pos += len;
		offset += len;
		addr += len;
		length -= len;
	}
	if (imm >= 0) {
		wrs[n - 1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wrs[n - 1].imm_data = htobe32((uint32_t)imm);
	}
	rs->sbuf_offset = offset == rs->sbuf_size ? 0 : offset;
	signal_if_due(rs, &wrs[n - 1]);
	return post(rs, wrs);
}

int rs_post_control(struct rs *rs, uint32_t op, uint32_t value, const void *data, size_t len,
		    uint64_t addr, uint32_t key)
{
	uint8_t *slot =
		rs->sbuf + rs->sbuf_size + rs->controls % RS_CONTROLS * sizeof(struct rs_mapping);
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot, .length = len, .lkey = rs->send_mem.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = position(rs, true),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(op << RS_OP_SHIFT | value),
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.wr.rdma = {.remote_addr = addr, .rkey = key},
	};
	int ret;

	if (rs->controls - rs->controls_done >= RS_CONTROLS)
		return -EAGAIN;
	if (len)
		memcpy(slot, data, len);
	ret = post(rs, &wr);
	if (ret)
		return ret;
	rs->controls++;
	rs->sq_signaled = rs->sq_pos;
	rs->sbuf_signaled = rs->sbuf_pos;
	return 0;
}

void rs_give_credits(struct rs *rs)
{
	uint32_t half = rs->rbuf_size / 2;
	bool space = rs->rbuf_free >= half;
	struct rs_buffer buffer;
	uint64_t addr = 0;
	uint32_t key = 0;

	if (!space && (uint16_t)(rs->rseq + rs->rq_size - rs->rseq_granted) < rs->rq_size / 2)
		return;
	/* More messages than these would need receives that the peer may not have. */
	if (rs->broken || rs->recv_down || rs->controls - rs->controls_done >= CREDITS_AT_ONCE)
		return;
	if (post_receives(rs)) {
		rs_break(rs, ECONNRESET);
		return;
	}

	/* The entry is free: the peer has filled it to reach what was read last. */
	if (space) {
		buffer.addr = (uintptr_t)(rs->rbuf + rs->rbuf_publish);
		buffer.key = rs->recv_mem.mr->rkey;
		buffer.length = half;
		if (rs->peer_swaps) {
			buffer.addr = bswap_64(buffer.addr);
			buffer.key = bswap_32(buffer.key);
			buffer.length = bswap_32(buffer.length);
		}
		addr = rs->peer_targets + rs->peer_next * sizeof(buffer);
		key = rs->peer_key;
	}
	if (rs_post_control(rs, RS_CREDIT, (uint16_t)(rs->rseq + rs->rq_size), &buffer,
			    space ? sizeof(buffer) : 0, addr, key))
		return;
	rs->rseq_granted = rs->rseq + rs->rq_size;
	if (space) {
		rs->rbuf_free -= half;
		rs->rbuf_publish = rs->rbuf_publish ? 0 : half;
		rs->peer_next = (rs->peer_next + 1) % rs->peer_count;
	}
}

void rs_keep_alive(struct rs *rs)
{
	struct ibv_sge none = {0};
	int64_t now;

	if (!rs_keeps_alive(rs))
		return;
	now = rs_now_us();
	if (!rs->heard_us)
		rs->heard_us = now;
	if (now - rs->heard_us < rs->options.keep_idle * INT64_C(1000000))
		return;
	rs->heard_us = now;
	if (rs->sq_pos - rs->sq_done < rs->sq_room)
		rs_post_write(rs, &none, 0, -1, rs->peer_targets, rs->peer_key);
}

/* ---- Completions ---- */

static void take_control(struct rs *rs, uint32_t what)
{
	switch (what) {
	case RS_SHUTDOWN:
		rs->recv_down = true;
		break;
	case RS_DISCONNECT:
		rs->recv_down = rs->send_down = rs->heard_disconnect = true;
		break;
	default:
		break;
	}
}

static void take_receive(struct rs *rs, const struct ibv_wc *wc)
{
	uint32_t message = be32toh(wc->imm_data), value = message & ((1U << RS_OP_SHIFT) - 1);

	rs->rq_missing++;
	switch (message >> RS_OP_SHIFT) {
	case RS_DATA:
		rs->rseq++;
		if (value > rs->rbuf_size - rs->rbuf_bytes)
			rs_break(rs, ECONNRESET);
		else
			rs->rbuf_bytes += value;
		break;
	case RS_CREDIT:
		rs->seq_end = (uint16_t)value;
		if (!rs->target.length)
			rs_next_target(rs);
		break;
	case RS_CONTROL:
		take_control(rs, value);
		break;
	default:
		break;
	}
}

static void take_send(struct rs *rs, uint64_t wr_id)
{
	rs->sbuf_done = wr_id >> 32;
	rs->sq_done += (((uint32_t)wr_id >> 1) - rs->sq_done) & (UINT32_MAX >> 1);
	rs->controls_done += wr_id & 1;
}

void rs_next_target(struct rs *rs)
{
	volatile struct rs_buffer *from = &rs->targets[rs->target_next];

	/* The length is the last that the peer's write puts there. */
	rs->target.length = __atomic_load_n(&from->length, __ATOMIC_ACQUIRE);
	if (!rs->target.length)
		return;
	rs->target.addr = from->addr;
	rs->target.key = from->key;
	from->length = 0;
	rs->target_next = (rs->target_next + 1) % RS_TARGETS;
}

bool rs_poll_queue(struct rs *rs)
{
	struct ibv_wc wc[BATCH];
	bool some = false;
	int i, n;

	if (!rs->cq)
		return rs->ds && ds_poll(rs);
	do {
		n = ibv_poll_cq(rs->cq, BATCH, wc);
		if (n < 0)
			rs_break(rs, ECONNRESET);
		for (i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				rs_break(rs, ECONNRESET);
			else if (wc[i].opcode & IBV_WC_RECV)
				take_receive(rs, &wc[i]);
			else
				take_send(rs, wc[i].wr_id);
		}
		some |= n > 0;
		if (rs->rq_missing >= BATCH && !rs->broken && post_receives(rs))
			rs_break(rs, ECONNRESET);
	} while (n == BATCH);

	if (some) {
		if (rs->options.keepalive)
			rs->heard_us = rs_now_us();
		rs_give_credits(rs);
		rs_wake(rs);
	}
	return some;
}

void rs_arm(struct rs *rs)
{
	if (rs->ds)
		ds_arm(rs);
	if (!rs->cq || rs->armed || rs->broken)
		return;
	if (ibv_req_notify_cq(rs->cq, 0))
		rs_break(rs, ECONNRESET);
	else
		rs->armed = true;
}

void rs_drain(struct rs *rs)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(rs->comp, &cq, &context)) {
		rs->armed = false;
		if (++rs->events == ACKNOWLEDGE) {
			ibv_ack_cq_events(rs->cq, rs->events);
			rs->events = 0;
		}
	}
	/* Those that sleep have to arm again. */
	rs_wake(rs);
}

/* ---- What they are made of ---- */

int rs_get_memory(struct ibv_pd *pd, struct rs_memory *memory, size_t size, int access)
{
	int ret;

	memory->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory->at == MAP_FAILED)
		return -ENOMEM;
	memory->size = size;
	errno = 0;
	memory->mr = ibv_reg_mr(pd, memory->at, size, access);
	if (memory->mr)
		return 0;
	ret = errno ? -errno : -ENOMEM;
	munmap(memory->at, size);
	memory->at = NULL;
	return ret;
}

void rs_put_memory(struct rs_memory *memory)
{
	if (!memory->at)
		return;
	ibv_dereg_mr(memory->mr);
	munmap(memory->at, memory->size);
	memory->at = NULL;
}

/*
 * The region is the parent's. With ibv_fork_init() a child does not have the memory, and something
 * else may lie at this address now: so nothing is unmapped. Memory that was inherited goes with the
 * process, or with exec().
 */
void rs_forget_memory(struct rs_memory *memory)
{
	memory->at = NULL;
}

static int get_memories(struct rs *rs)
{
	size_t head = RS_TARGETS * sizeof(struct rs_buffer) +
		      rs->options.iomap_size * sizeof(struct rs_mapping);
	uint8_t *at;
	int ret;

	head = (head + 63) & ~(size_t)63;
	ret = rs_get_memory(rs->id->pd, &rs->recv_mem, head + rs->options.recv_size,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (ret)
		return ret;
	at = rs->recv_mem.at;
	rs->targets = rs->recv_mem.at;
	rs->iomap = (void *)(at + RS_TARGETS * sizeof(struct rs_buffer));
	rs->iomap_size = rs->options.iomap_size;
	rs->rbuf = at + head;
	rs->rbuf_size = rs->options.recv_size;

	ret = rs_get_memory(rs->id->pd, &rs->send_mem,
			    rs->options.send_size + RS_CONTROLS * sizeof(struct rs_mapping),
			    IBV_ACCESS_LOCAL_WRITE);
	if (ret)
		return ret;
	rs->sbuf = rs->send_mem.at;
	rs->sbuf_size = rs->options.send_size;
	rs->sbuf_pos = rs->sbuf_done = rs->sbuf_signaled = RS_FIRST_POS;
	rs->sbuf_offset = 0;
	return 0;
}

static uint32_t at_most(uint32_t wanted, int limit)
{
	return limit > 0 && wanted > (uint32_t)limit ? (uint32_t)limit : wanted;
}

static int make_queues(struct rs *rs)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
	struct ibv_device_attr limits;
	int ret, flags;

	ret = ibv_query_device(rs->id->verbs, &limits);
	if (ret)
		return -ret;
	rs->sq_room = at_most(rs->options.sq_size, limits.max_qp_wr - RS_CONTROLS);
	rs->rq_size = at_most(rs->options.rq_size, limits.max_qp_wr - RS_CONTROLS);

	errno = 0;
	rs->comp = ibv_create_comp_channel(rs->id->verbs);
	if (!rs->comp)
		return errno ? -errno : -ENOMEM;
	cm_keep(rs->comp->fd);
	flags = fcntl(rs->comp->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->comp->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	rs->cq = ibv_create_cq(rs->id->verbs, (int)(rs->sq_room + rs->rq_size + 2 * RS_CONTROLS),
			       rs, rs->comp, 0);
	if (!rs->cq)
		return errno ? -errno : -ENOMEM;

	attr.send_cq = attr.recv_cq = rs->cq;
	attr.cap.max_send_wr = rs->sq_room + RS_CONTROLS;
	attr.cap.max_recv_wr = rs->rq_size + RS_CONTROLS;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	attr.cap.max_inline_data = rs->options.inline_size;
	if (rdma_create_qp(rs->id, NULL, &attr)) {
		/* The device may have less room for data in its queue. */
		attr.cap.max_inline_data = 0;
		if (!rs->options.inline_size || rdma_create_qp(rs->id, NULL, &attr))
			return -errno;
	}
	rs->qp = rs->id->qp;
	rs->inline_max = at_most(rs->options.inline_size, (int)attr.cap.max_inline_data);
	if (!attr.cap.max_inline_data)
		rs->inline_max = 0;
	return 0;
}

int rs_setup(struct rs *rs)
{
	int ret;

	ret = make_queues(rs);
	if (!ret)
		ret = get_memories(rs);
	if (!ret)
		ret = rs_start_receiving(rs);
	if (ret)
		rs_teardown(rs);
	return ret;
}

void rs_teardown(struct rs *rs)
{
	rs->broken = true;
	if (rs->qp)
		rdma_destroy_qp(rs->id);
	rs->qp = NULL;
	if (rs->cq) {
		if (rs->events)
			ibv_ack_cq_events(rs->cq, rs->events);
		ibv_destroy_cq(rs->cq);
	}
	rs->events = 0;
	rs->cq = NULL;
	rs->armed = false;
	if (rs->comp) {
		cm_give_up(rs->comp->fd);
		ibv_destroy_comp_channel(rs->comp);
	}
	rs->comp = NULL;
	rs_iomap_free(rs);
	rs_put_memory(&rs->send_mem);
	rs_put_memory(&rs->recv_mem);
}

/*
 * What belongs to libibverbs stays in the child: only commands that end the parent's would free it.
 */
void rs_forget_comp_channel(struct ibv_comp_channel *comp)
{
	if (!comp)
		return;
	cm_give_up(comp->fd);
	close(comp->fd);
}

void rs_forget_queues(struct rs *rs)
{
	rs_forget_comp_channel(rs->comp);
	rs_iomap_forget(rs);
	rs_forget_memory(&rs->send_mem);
	rs_forget_memory(&rs->recv_mem);
}

/* ---- The first message ---- */

void rs_say_hello(const struct rs *rs, struct rs_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->version = RS_HELLO_VERSION;
	hello->flags =
		(htobe16(1) == 1 ? RS_HELLO_BIG_ENDIAN : 0) | (rs->iomap_size ? RS_HELLO_IOMAP : 0);
	hello->credits = htobe16(rs->rq_size);
	hello->iomap_size = rs_iomap_scale(rs->iomap_size);
	hello->target.addr = htobe64((uintptr_t)rs->targets);
	hello->target.length = htobe32(RS_TARGETS);
	hello->target.key = htobe32(rs->recv_mem.mr->rkey);
	hello->data.addr = htobe64((uintptr_t)rs->rbuf);
	hello->data.length = htobe32(rs->rbuf_size);
	hello->data.key = htobe32(rs->recv_mem.mr->rkey);
}

int rs_hear_hello(struct rs *rs, const void *data, size_t len)
{
	struct rs_hello hello;

	if (len < sizeof(hello))
		return -EPROTO;
	memcpy(&hello, data, sizeof(hello));
	/* With one entry alone there is none to publish while the other is being filled. */
	if (hello.version != RS_HELLO_VERSION || be32toh(hello.target.length) < 2)
		return -EPROTO;

	rs->peer_swaps = !(hello.flags & RS_HELLO_BIG_ENDIAN) != (htobe16(1) != 1);
	rs->seq_end = be16toh(hello.credits);
	rs->target.addr = be64toh(hello.data.addr);
	rs->target.key = be32toh(hello.data.key);
	rs->target.length = be32toh(hello.data.length);
	rs->target_next = 1;
	rs->peer_targets = be64toh(hello.target.addr);
	rs->peer_key = be32toh(hello.target.key);
	rs->peer_count = be32toh(hello.target.length);
	rs->peer_next = 1;
	rs->peer_iomap = rs->peer_targets + rs->peer_count * sizeof(struct rs_buffer);
	rs->peer_iomap_size = rs_iomap_unscale(hello.iomap_size);
	rs->rseq_granted = rs->rq_size;
	return 0;
}
