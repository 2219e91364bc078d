// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the express responder and the ordinary one refuse the same requests. The express one
 * leaves each of them to the ordinary one with nothing changed; the ordinary one answers it, or
 * drops it, as the table says. Both raise the event of an SRQ that falls below its limit.
 */
#include "softhca_rules_rig.h"

static void post(uint32_t len, uint32_t lkey)
{
	const struct tsge sge = {p.bmem + 4096, len, lkey};

	if (srq() && srq()->live)
		tsrq_post(&p.srq, &sge, 1);
	else
		tqp_recv(&p.b, &sge, 1);
}

static void other_qp(void)
{
	req.dqpn ^= 1;
}
static void silent(void)
{
	qp()->silent = 1;
}
static void service(void)
{
	req.service = req.service == SH_SVC_RC	 ? SH_SVC_XRC
		      : req.service == SH_SVC_UC ? SH_SVC_UD
		      : req.service == SH_SVC_UD ? SH_SVC_UC
						 : SH_SVC_RC;
}
static void owner_gone(void)
{
	sh_ctx(&p.m->dev, qp()->ctx ? qp()->ctx : srq()->ctx)->state = SH_CTX_GONE;
}
static void in_init(void)
{
	qp()->state = SH_QPS_INIT;
}
static void in_err(void)
{
	qp()->state = SH_QPS_ERR;
}
static void other_sender(void)
{
	req.slid = 99;
}
static void other_qkey(void)
{
	req.qkey++;
}
static void other_port(void)
{
	port = 2;
}
static void other_pkey(void)
{
	req.pkey = 0x8001;
}
static void no_pkey(void)
{
	req.pkey = sh_hca(&p.m->dev, 1)->port[0].pkey[0] = 0x8000;
}
static void both_limited(void)
{
	req.pkey = sh_hca(&p.m->dev, 1)->port[0].pkey[0] = 0x7fff;
}
static void ahead(void)
{
	req.psn++;
}
static void behind(void)
{
	req.psn--;
}
static void not_first(void)
{
	req.flags &= ~SH_PKT_FIRST;
}
static void in_progress(void)
{
	qp()->cur_op = SH_RECV_SEND;
	qp()->cur_done = 1024;
	qp()->cur_wqe = 1;
}
static void writing(void)
{
	qp()->cur_op = SH_RECV_WRITE;
}
static void too_long(void)
{
	src.len = req.payload.len = req.dmalen = TMTU + 1;
}
static void too_short(void)
{
	req.npackets = 2;
}
static void no_access(void)
{
	qp()->access &= ~(req.op == SH_PKT_READ ? SH_REMOTE_READ : SH_REMOTE_WRITE);
}
static void no_reads(void)
{
	qp()->max_dest_rd_atomic = 0;
}
static void too_large(void)
{
	key()->len = UINT64_C(1) << 40;
	req.dmalen = (1u << 31) + 1;
}
static void other_key(void)
{
	req.rkey += 0x100;
}
static void other_pd(void)
{
	key()->pdn++;
}
static void below(void)
{
	req.va -= 1;
}
static void beyond(void)
{
	req.va += TMEM - LEN + 1;
}
static void key_access(void)
{
	key()->access &= ~(req.op == SH_PKT_READ ? SH_REMOTE_READ : SH_REMOTE_WRITE);
}
static void read_only(void)
{
	key()->access &= ~SH_LOCAL_WRITE;
}
static void no_receive(void)
{
	memset(mock_ptr(srq() ? &p.srq.db : &p.b.db), 0, 4);
}
static void nonsense(void)
{
	const uint32_t n = htobe32(33);

	memcpy(mock_ptr(&p.b.db), &n, sizeof(n));
}
static void names_no_srq(void)
{
	req.srqn = 0;
}
static void names_other_srq(void)
{
	req.srqn = SRQN + 1;
}
static void other_number(void)
{
	srq()->srqn++;
}
static void other_domain(void)
{
	srq()->xrcd++;
}
static void no_cq(void)
{
	srq()->cqn = 0;
}
static void ended(void)
{
	srq()->live = SH_NONE;
}
static void bad_link(void)
{
	memset((uint8_t *)mock_ptr(&p.srq.buf) + 2, 0xff, 2);
}
static void bad_head(void)
{
	srq()->head = 64;
}
static void overrun(void)
{
	cq()->overrun = 1;
}
static void full(void)
{
	cq()->producer = 1u << p.bcq[1].log_size;
}

/*
 * A rule, and how a request breaks it. The receive, of this length and with this key, is posted
 * before spoil() runs. heard: the syndrome in the answer's AETH; 0: no answer.
 */
struct rule {
	const char *name;
	uint32_t type;
	bool srq;
	uint8_t op, flags;
	void (*spoil)(void);
	uint8_t heard;
	uint32_t room; /* 0: enough */
	bool bad_lkey;
	/* 0: no receive fails; else the syndrome of the receive that does */
	uint8_t fails;
};

#define RULE(what, qp_type, with_srq, request, with, how, answer)                                  \
	{                                                                                          \
		.name = what, .type = qp_type, .srq = with_srq, .op = request, .flags = with,      \
		.spoil = how, .heard = answer                                                      \
	}
#define FAILS(what, qp_type, with_srq, how, answer, size, bad, syndrome)                           \
	{                                                                                          \
		.name = what, .type = qp_type, .srq = with_srq, .op = SH_PKT_SEND, .spoil = how,   \
		.heard = answer, .room = size, .bad_lkey = bad, .fails = syndrome                  \
	}
#define ANY_OP(spoil, heard)                                                                       \
	RULE(#spoil ", SEND", SH_QPT_RC, false, SH_PKT_SEND, 0, spoil, heard),                     \
		RULE(#spoil ", WRITE", SH_QPT_RC, false, SH_PKT_WRITE, 0, spoil, heard),           \
		RULE(#spoil ", READ", SH_QPT_RC, false, SH_PKT_READ, 0, spoil, heard),             \
		RULE(#spoil ", XRC SEND", SH_QPT_XRC, true, SH_PKT_SEND, 0, spoil, heard)
#define LOSSY(spoil)                                                                               \
	RULE(#spoil ", UC SEND", SH_QPT_UC, false, SH_PKT_SEND, 0, spoil, 0),                      \
		RULE(#spoil ", UD SEND", SH_QPT_UD, false, SH_PKT_SEND, 0, spoil, 0)
#define RDMA(spoil, heard)                                                                         \
	RULE(#spoil ", WRITE", SH_QPT_RC, false, SH_PKT_WRITE, 0, spoil, heard),                   \
		RULE(#spoil ", WRITE with immediate", SH_QPT_RC, false, SH_PKT_WRITE, SH_PKT_IMM,  \
		     spoil, heard),                                                                \
		RULE(#spoil ", READ", SH_QPT_RC, false, SH_PKT_READ, 0, spoil, heard)
#define XRC(spoil, heard)                                                                          \
	RULE(#spoil ", XRC SEND", SH_QPT_XRC, true, SH_PKT_SEND, 0, spoil, heard),                 \
		RULE(#spoil ", XRC WRITE", SH_QPT_XRC, true, SH_PKT_WRITE, 0, spoil, heard),       \
		RULE(#spoil ", XRC READ", SH_QPT_XRC, true, SH_PKT_READ, 0, spoil, heard)
#define RECEIVE(spoil, heard)                                                                      \
	RULE(#spoil ", SEND", SH_QPT_RC, false, SH_PKT_SEND, 0, spoil, heard),                     \
		RULE(#spoil ", WRITE with immediate", SH_QPT_RC, false, SH_PKT_WRITE, SH_PKT_IMM,  \
		     spoil, heard),                                                                \
		RULE(#spoil ", SRQ", SH_QPT_RC, true, SH_PKT_SEND, 0, spoil, heard),               \
		RULE(#spoil ", XRC SEND", SH_QPT_XRC, true, SH_PKT_SEND, 0, spoil, heard)

static const struct rule rules[] = {
	ANY_OP(other_qp, 0),
	ANY_OP(silent, 0),
	ANY_OP(service, 0),
	ANY_OP(owner_gone, 0),
	ANY_OP(in_init, 0),
	ANY_OP(in_err, 0),
	ANY_OP(other_sender, 0),
	ANY_OP(other_port, 0),
	ANY_OP(other_pkey, 0),
	ANY_OP(no_pkey, 0),
	ANY_OP(both_limited, 0),
	ANY_OP(ahead, SH_AETH_NAK_SEQ),
	RULE("behind, SEND", SH_QPT_RC, false, SH_PKT_SEND, 0, behind, SH_AETH_ACK),
	RULE("behind, WRITE", SH_QPT_RC, false, SH_PKT_WRITE, 0, behind, SH_AETH_ACK),
	ANY_OP(in_progress, SH_AETH_NAK_REQ),
	ANY_OP(writing, SH_AETH_NAK_REQ),
	RULE("too_long, SEND", SH_QPT_RC, false, SH_PKT_SEND, 0, too_long, SH_AETH_NAK_REQ),
	RULE("too_long, WRITE", SH_QPT_RC, false, SH_PKT_WRITE, 0, too_long, SH_AETH_NAK_REQ),
	RULE("too_short, SEND", SH_QPT_RC, false, SH_PKT_SEND, 0, too_short, SH_AETH_NAK_REQ),
	RULE("too_short, WRITE", SH_QPT_RC, false, SH_PKT_WRITE, 0, too_short, SH_AETH_NAK_REQ),
	RDMA(no_access, SH_AETH_NAK_REQ),
	RULE("no_reads", SH_QPT_RC, false, SH_PKT_READ, 0, no_reads, SH_AETH_NAK_REQ),
	RULE("too_large", SH_QPT_RC, false, SH_PKT_READ, 0, too_large, SH_AETH_NAK_REQ),
	RDMA(other_key, SH_AETH_NAK_ACCESS),
	RDMA(other_pd, SH_AETH_NAK_ACCESS),
	RDMA(below, SH_AETH_NAK_ACCESS),
	RDMA(beyond, SH_AETH_NAK_ACCESS),
	RDMA(key_access, SH_AETH_NAK_ACCESS),
	XRC(names_no_srq, SH_AETH_NAK_REQ),
	XRC(names_other_srq, SH_AETH_NAK_REQ),
	XRC(other_number, SH_AETH_NAK_REQ),
	XRC(other_domain, SH_AETH_NAK_REQ),
	XRC(no_cq, SH_AETH_NAK_REQ),
	XRC(ended, SH_AETH_NAK_REQ),
	RULE("bad_link", SH_QPT_RC, true, SH_PKT_SEND, 0, bad_link, SH_AETH_NAK_OP),
	RULE("bad_link, XRC", SH_QPT_XRC, true, SH_PKT_SEND, 0, bad_link, SH_AETH_NAK_OP),
	RULE("bad_head", SH_QPT_RC, true, SH_PKT_SEND, 0, bad_head, SH_AETH_NAK_OP),
	RECEIVE(no_receive, SH_AETH_RNR),
	RULE("nonsense", SH_QPT_RC, false, SH_PKT_SEND, 0, nonsense, SH_AETH_NAK_OP),
	RECEIVE(overrun, SH_AETH_NAK_OP),
	RECEIVE(full, SH_AETH_NAK_OP),
	FAILS("no room", SH_QPT_RC, false, NULL, SH_AETH_NAK_REQ, LEN - 1, false,
	      MLX4_SYNDROME_LOC_LEN),
	FAILS("no room, SRQ", SH_QPT_RC, true, NULL, SH_AETH_NAK_REQ, LEN - 1, false,
	      MLX4_SYNDROME_LOC_LEN),
	FAILS("no room, XRC", SH_QPT_XRC, true, NULL, SH_AETH_NAK_REQ, LEN - 1, false,
	      MLX4_SYNDROME_LOC_LEN),
	FAILS("bad lkey", SH_QPT_RC, false, NULL, SH_AETH_NAK_OP, 0, true, MLX4_SYNDROME_LOC_PROT),
	FAILS("bad lkey, XRC", SH_QPT_XRC, true, NULL, SH_AETH_NAK_OP, 0, true,
	      MLX4_SYNDROME_LOC_PROT),
	FAILS("read_only", SH_QPT_RC, false, read_only, SH_AETH_NAK_OP, 0, false,
	      MLX4_SYNDROME_LOC_PROT),
	FAILS("read_only, XRC", SH_QPT_XRC, true, read_only, SH_AETH_NAK_OP, 0, false,
	      MLX4_SYNDROME_LOC_PROT),
	LOSSY(other_qp),
	LOSSY(silent),
	LOSSY(service),
	LOSSY(owner_gone),
	LOSSY(in_init),
	LOSSY(in_err),
	LOSSY(other_port),
	LOSSY(other_pkey),
	LOSSY(no_pkey),
	LOSSY(both_limited),
	LOSSY(no_receive),
	LOSSY(nonsense),
	RULE("other_sender, UC", SH_QPT_UC, false, SH_PKT_SEND, 0, other_sender, 0),
	RULE("not first, UC", SH_QPT_UC, false, SH_PKT_SEND, 0, not_first, 0),
	RULE("no_access, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, no_access, 0),
	RULE("other_key, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, other_key, 0),
	RULE("other_pd, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, other_pd, 0),
	RULE("below, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, below, 0),
	RULE("beyond, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, beyond, 0),
	RULE("key_access, UC", SH_QPT_UC, false, SH_PKT_WRITE, 0, key_access, 0),
	RULE("other_qkey", SH_QPT_UD, false, SH_PKT_SEND, 0, other_qkey, 0),
	RULE("other_qkey, SRQ", SH_QPT_UD, true, SH_PKT_SEND, 0, other_qkey, 0),
	FAILS("no room, UD", SH_QPT_UD, false, NULL, 0, LEN + SH_GRH_LEN - 1, false,
	      MLX4_SYNDROME_LOC_LEN),
	FAILS("no room, UD, SRQ", SH_QPT_UD, true, NULL, 0, LEN + SH_GRH_LEN - 1, false,
	      MLX4_SYNDROME_LOC_LEN),
	FAILS("bad lkey, UD", SH_QPT_UD, false, NULL, 0, 0, true, MLX4_SYNDROME_LOC_PROT),
	FAILS("read_only, UD", SH_QPT_UD, false, read_only, 0, 0, false, MLX4_SYNDROME_LOC_PROT),
	FAILS("other_pd", SH_QPT_RC, false, other_pd, SH_AETH_NAK_OP, 0, false,
	      MLX4_SYNDROME_LOC_PROT),
};

/* State that a request which is not executed must not change. */
struct left {
	uint32_t e_psn, msn, messages, consumed, srq_head, srq_consumed, producer, cur_op, state;
	uint8_t mem[8192];
};

static void look(struct left *l, const struct rule *r)
{
	memset(l, 0, sizeof(*l));
	l->e_psn = qp()->e_psn;
	l->msn = qp()->msn;
	l->messages = qp()->messages_received;
	l->consumed = qp()->rq_consumed;
	l->cur_op = qp()->cur_op;
	l->state = qp()->state;
	l->producer = cq()->producer;
	if (srq()) {
		l->srq_head = srq()->head;
		l->srq_consumed = srq()->consumed;
	}
	/* If only its completion finds no room, the data may have been stored. */
	if (r->spoil != overrun && r->spoil != full)
		memcpy(l->mem, p.bmem, sizeof(l->mem));
}

static void prepare(const struct rule *r)
{
	begin(r->type, r->srq, r->op);
	req.flags |= r->flags;
	post(r->room ? r->room : 4096, r->bad_lkey ? p.bkey + 0x100 : p.bkey);
	post(4096, p.bkey);
	if (r->spoil)
		r->spoil();
}

static void test_quick_leaves(void **state)
{
	unsigned int wrong = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		static struct left before, after;
		bool done;

		prepare(&rules[i]);
		look(&before, &rules[i]);
		done = deliver(true);
		look(&after, &rules[i]);
		if (done || memcmp(&before, &after, sizeof(before))) {
			print_error("%s: %s\n", rules[i].name,
				    done ? "executed" : "not executed, but it changed something");
			wrong++;
		}
		end();
	}
	assert_int_equal(wrong, 0);
}

static void test_ordinary_refuses(void **state)
{
	unsigned int wrong = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];
		static struct left before, after;
		struct mlx4_cqe cqe = {.owner_sr_opcode = 0};
		uint8_t heard;

		prepare(r);
		look(&before, &rules[i]);
		deliver(false);
		look(&after, &rules[i]);
		heard = resp.op == SH_PKT_NONE ? 0
			: resp.syndrome & SH_AETH_KIND && resp.syndrome < SH_AETH_NAK_SEQ
				? SH_AETH_RNR
				: resp.syndrome;
		/* UC expects what follows any packet that it has looked at. */
		if (r->type == SH_QPT_UC)
			before.e_psn = after.e_psn;
		if (heard != r->heard || before.e_psn != after.e_psn || before.msn != after.msn ||
		    before.messages != after.messages) {
			print_error("%s: the answer was %02x, or the QP counted the request\n",
				    r->name, heard);
			wrong++;
		}
		if (memcmp(before.mem, after.mem, sizeof(before.mem))) {
			print_error("%s: data was stored\n", r->name);
			wrong++;
		}
		if (r->fails &&
		    (!tcq_poll(&p.bcq[1], &cqe) || (cqe.owner_sr_opcode & 0x1f) != MLX4_CQE_ERROR ||
		     cqe.syndrome != r->fails)) {
			print_error("%s: the receive failed with syndrome %02x, or not at all\n",
				    r->name, cqe.syndrome);
			wrong++;
		}
		end();
	}
	assert_int_equal(wrong, 0);
}

/*
 * The ordinary responder takes the receive that reaches the limit of an SRQ, and raises the event.
 */
static void test_watermark(void **state)
{
	(void)state;
	for (unsigned int limit = 0; limit < 3; limit++) {
		static struct left before, after;

		begin(SH_QPT_XRC, true, SH_PKT_SEND);
		for (unsigned int i = 0; i < 2; i++)
			post(4096, p.bkey);
		srq()->limit = limit;
		look(&before, &rules[0]);
		assert_int_equal(deliver(true), limit < 2);
		look(&after, &rules[0]);
		if (limit == 2) {
			assert_memory_equal(&before, &after, sizeof(before));
			deliver(false);
			assert_int_equal(tasync(p.m, p.b.ctx, 15), 1);
			assert_int_equal(srq()->limit, 0);
		}
		assert_int_equal(srq()->head, 1);
		assert_int_equal(qp()->e_psn, TPSN + 1);
		assert_int_equal(tasync(p.m, p.b.ctx, 15), limit == 2);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick_leaves),
		cmocka_unit_test(test_ordinary_refuses),
		cmocka_unit_test(test_watermark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
