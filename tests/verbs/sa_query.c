// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: queries of the subnet administrator from a UD QP, as MPI libraries ask for service
 * levels: paths to every port by LID and by GID, ClassPortInfo, groups joined and left; and what
 * gets no answer.
 *
 * Options: --hosts 3
 */
#include <arpa/inet.h>
#include <signal.h>

#include "verbs_test.h"

#define GRH	 40
#define MAD	 256
#define WELL_KEY 0x80010000u
#define HOSTS	 3

enum { GET = 1, SET = 2, DELETE = 0x15, GET_RESP = 0x81, DELETE_RESP = 0x95 };
enum { SA = 3, PERF = 4 };
enum { CLASS_PORT_INFO = 1, PATH_RECORD = 0x35, GROUP_RECORD = 0x38 };
/* Components of a PathRecord, and of an MCMemberRecord. */
enum { DGID = 1 << 2, SGID = 1 << 3, DLID = 1 << 4, SLID = 1 << 5, NUMB_PATH = 1 << 12 };
enum { MGID = 1 << 0, PORT_GID = 1 << 1, QKEY = 1 << 2, PKEY = 1 << 7, JOIN_STATE = 1 << 16 };
#define MAKE (QKEY | PKEY | 1 << 6 | 1 << 12 | 1 << 13)

static struct side s;
static struct ibv_qp *qp;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint32_t tid;

static uint8_t *out(void)
{
	return s.buf;
}

static const uint8_t *in(int i)
{
	return s.buf + 4096 + i * 512 + GRH;
}

static void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v);
}

static void up(uint32_t qkey)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	side_open(&s, 65536, 64, 0);
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	CHECK_EQ(ibv_query_gid(s.context, 1, 0, &gid), 0);
	qp = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
	CHECK_EQ(
		ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	a.qp_state = IBV_QPS_RTR;
	CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* The record of the request. Class SA. */
static uint8_t *request(uint8_t method, uint16_t attribute, uint64_t mask)
{
	uint8_t *m = out();

	memset(m, 0, MAD);
	m[0] = 1;
	m[1] = SA;
	m[2] = 2;
	m[3] = method;
	put32(m + 8, 0x11223344);
	put32(m + 12, ++tid);
	put16(m + 16, attribute);
	put32(m + 48, (uint32_t)(mask >> 32));
	put32(m + 52, (uint32_t)mask);
	return m + 56;
}

static void send_to(uint16_t lid, uint32_t qkey, const union ibv_gid *dgid, uint32_t len)
{
	struct ibv_ah_attr attr = {.dlid = lid, .port_num = 1, .sl = port.sm_sl};
	struct ibv_sge sge = {.addr = (uintptr_t)out(), .length = len, .lkey = s.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 99,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (dgid) {
		attr.is_global = 1;
		attr.grh.dgid = *dgid;
		attr.grh.hop_limit = 1;
	}
	wr.wr.ud.ah = ibv_create_ah(s.pd, &attr);
	CHECK(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = 1;
	wr.wr.ud.remote_qkey = qkey;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 99, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
}

/* Asks, and returns the answer, whose status must be this one. */
static const uint8_t *ask_at(uint16_t lid, uint32_t status)
{
	uint8_t method = out()[3];
	struct ibv_wc wc;

	CHECK_EQ(post_recv1(qp, &s, 1, 4096, GRH + MAD), 0);
	send_to(lid, WELL_KEY, NULL, MAD);
	wc = expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, GRH + MAD);
	CHECK_EQ(wc.src_qp, 1);
	CHECK_EQ(wc.slid, lid);
	CHECK_EQ(wc.sl, port.sm_sl);
	CHECK_EQ(wc.wc_flags & IBV_WC_GRH, 0);
	CHECK_EQ(wc.pkey_index, 0);
	CHECK_EQ(in(0)[3], method == SET ? GET_RESP : method | 0x80);
	CHECK_EQ(get16(in(0) + 4), status);
	CHECK_EQ(memcmp(in(0) + 8, out() + 8, 8), 0);
	CHECK_EQ(memcmp(in(0) + 16, out() + 16, 2), 0);
	return in(0) + (in(0)[1] == SA ? 56 : 64);
}

static const uint8_t *ask(uint32_t status)
{
	return ask_at(port.sm_lid, status);
}

/* Nothing comes: the answer to what is asked after it comes first. */
static void no_answer(void)
{
	request(GET, CLASS_PORT_INFO, 0);
	ask(0);
	expect_silence(s.rcq, 0);
}

static void check_path(const uint8_t *r, uint32_t host)
{
	CHECK_EQ(get16(r + 40), host + 1);
	CHECK_EQ(get16(r + 42), port.lid);
	CHECK_EQ(memcmp(r + 24, &gid, 16), 0);
	CHECK_EQ(get16(r + 50), 0xffff);
	CHECK_EQ(get16(r + 52) & 15, 0); /* the service level */
	CHECK_EQ(r[54] & 0x3f, 5);
	CHECK_EQ(get16(in(0) + 44), 8);
}

static void paths(void)
{
	for (uint32_t host = 0; host < HOSTS; host++) {
		union ibv_gid found;
		uint8_t *r = request(GET, PATH_RECORD, DLID | SLID);

		put16(r + 40, host + 1);
		put16(r + 42, port.lid);
		memcpy(&found, ask(0) + 8, 16);
		check_path(in(0) + 56, host);
		r = request(GET, PATH_RECORD, DGID | SGID | NUMB_PATH);
		memcpy(r + 8, &found, 16);
		memcpy(r + 24, &gid, 16);
		r[49] = 1;
		check_path(ask(0), host);
		/* From whoever asks. */
		r = request(GET, PATH_RECORD, DLID);
		put16(r + 40, host + 1);
		check_path(ask(0), host);
	}
	put16(request(GET, PATH_RECORD, DLID) + 40, 77);
	ask(0x0300);
	request(GET, PATH_RECORD, DGID)[8] = 0xfe;
	ask(0x0500);
	/* A table that does not fit into one datagram. */
	request(0x12, PATH_RECORD, 0);
	ask(0x0400);
}

static void others(void)
{
	struct ibv_wc wc;
	const uint8_t *r;

	request(GET, CLASS_PORT_INFO, 0);
	r = ask(0);
	CHECK_EQ(r[0], 1);
	CHECK_EQ(r[1], 2);
	/* QP 1 of a port that has no subnet manager has an agent for counters alone. */
	request(GET, CLASS_PORT_INFO, 0);
	ask_at(2, 0x0c);
	request(GET, CLASS_PORT_INFO, 0);
	out()[1] = PERF;
	out()[2] = 1;
	r = ask_at(2, 0);
	CHECK_EQ(get16(r + 2) & 0x0200, 0x0200);
	request(GET, 0x12, 0);
	out()[1] = PERF;
	out()[2] = 1;
	out()[65] = 1;
	r = ask_at(1023, 0);
	CHECK_EQ(r[1], 1);
	/* With a GRH the answer has one. */
	request(GET, CLASS_PORT_INFO, 0);
	CHECK_EQ(post_recv1(qp, &s, 2, 4096, GRH + MAD), 0);
	send_to(port.sm_lid, WELL_KEY, &gid, MAD);
	wc = expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
	CHECK_EQ(memcmp(in(0) - 16, &gid, 16), 0);
}

static void lost(void)
{
	uint64_t qkeys = hca_counter("drops_qkey"), none = hca_counter("drops_no_wqe"),
		 short_ones = hca_counter("drops_memory"), no_qp = hca_counter("drops_no_qp"), now;

	request(GET, CLASS_PORT_INFO, 0);
	send_to(port.sm_lid, 0x11111111, NULL, MAD);
	no_answer();
	CHECK_EQ(hca_counter("drops_qkey"), qkeys + 1);
	request(GET, CLASS_PORT_INFO, 0);
	send_to(port.sm_lid, WELL_KEY, NULL, MAD - 1);
	no_answer();
	CHECK_EQ(hca_counter("drops_memory"), short_ones + 1);
	/* Nothing answers a response, or another version of all. */
	request(GET_RESP, CLASS_PORT_INFO, 0);
	send_to(port.sm_lid, WELL_KEY, NULL, MAD);
	no_answer();
	request(GET, CLASS_PORT_INFO, 0);
	out()[0] = 2;
	send_to(port.sm_lid, WELL_KEY, NULL, MAD);
	no_answer();
	CHECK_EQ(hca_counter("drops_no_qp"), no_qp);
	/* No receive is posted. */
	request(GET, CLASS_PORT_INFO, 0);
	send_to(port.sm_lid, WELL_KEY, NULL, MAD);
	do
		now = hca_counter("drops_no_wqe");
	while (now == none);
	CHECK_EQ(now, none + 1);
	no_answer();
}

/* A member's record of the group that test uses. */
static uint8_t *group(uint8_t method, uint64_t mask)
{
	uint8_t *r = request(method, GROUP_RECORD, mask);

	r[0] = 0xff;
	r[1] = 0x12;
	r[2] = 0xa0;
	r[3] = 0x1c;
	r[15] = 9;
	memcpy(r + 16, &gid, 16);
	put32(r + 32, 0x12345);
	put16(r + 40, 0xffff);
	r[48] = 1;
	return r;
}

static void groups(void)
{
	const uint64_t join = MGID | PORT_GID | JOIN_STATE;
	const uint8_t *r;
	uint32_t mlid;

	group(GET, MGID);
	ask(0x0300);
	/* A group that is to be made needs more. */
	group(SET, join);
	ask(0x0600);
	group(SET, join | MAKE);
	r = ask(0);
	mlid = get16(r + 36);
	CHECK(mlid >= 0xc000);
	CHECK_EQ(memcmp(r + 16, &gid, 16), 0);
	CHECK_EQ(r[48] & 15, 1);
	CHECK_EQ(get16(in(0) + 44), 7);
	/* Again, and with another Q_Key. */
	group(SET, join);
	CHECK_EQ(get16(ask(0) + 36), mlid);
	put32(group(SET, join | QKEY) + 32, 0x54321);
	ask(0x0200);
	group(SET, join)[16 + 15] ^= 0x40;
	ask(0x0500);
	group(GET, MGID);
	CHECK_EQ(get16(ask(0) + 36), mlid);
	group(DELETE, join);
	ask(0);
	group(GET, MGID);
	ask(0x0300);
	group(DELETE, join);
	ask(0x0200);
}

static void asks_and_dies(int arg)
{
	(void)arg;
	up(WELL_KEY);
	request(GET, CLASS_PORT_INFO, 0);
	for (int i = 0;; i++) {
		if (i < 16)
			CHECK_EQ(post_recv1(qp, &s, 1, 4096, GRH + MAD), 0);
		send_to(port.sm_lid, WELL_KEY, NULL, MAD);
		post(0, 1);
	}
}

static void down(void)
{
	uint64_t drops;

	port_change("down");
	drops = hca_counter("drops_port");
	request(GET, CLASS_PORT_INFO, 0);
	send_to(port.sm_lid, WELL_KEY, NULL, MAD);
	CHECK_EQ(hca_counter("drops_port"), drops + 1);
	port_change("up");
	no_answer();
}

/* A path to the port with that GID; it leads to that LID. */
static void path_leads(const union ibv_gid *to, uint32_t lid)
{
	uint8_t *r = request(GET, PATH_RECORD, DGID | SGID | NUMB_PATH);

	memcpy(r + 8, to, 16);
	memcpy(r + 24, &gid, 16);
	r[49] = 1;
	ask(0);
	CHECK_EQ(get16(in(0) + 56 + 40), lid);
	CHECK_EQ(get16(in(0) + 56 + 42), port.lid);
}

/*
 * Ports get other LIDs and another SM LID, as by `softhca port`. This is the port where the manager
 * is.
 */
static void moved(void)
{
	uint64_t drops = hca_counter("drops_lid");
	union ibv_gid other;

	put16(request(GET, PATH_RECORD, DLID) + 40, 2);
	memcpy(&other, ask(0) + 8, 16);
	/* One port names another manager: it finds it, and the others still have theirs. */
	port_change("sm 2");
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	CHECK_EQ(port.sm_lid, 2);
	path_leads(&other, 2);
	request(GET, CLASS_PORT_INFO, 0);
	ask_at(1, 0);
	port_change("sm 1");
	/* Until ports are told where the manager has gone, nobody is where they look for it. */
	port_change("lid 50");
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	request(GET, CLASS_PORT_INFO, 0);
	send_to(1, WELL_KEY, NULL, MAD);
	CHECK_EQ(hca_counter("drops_lid"), drops + 1);
	port_change("sm 50");
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	CHECK_EQ(port.lid, 50);
	path_leads(&other, 2);
	path_leads(&gid, 50);
	put16(request(GET, PATH_RECORD, DLID) + 40, 1);
	ask(0x0300);
	port_change("lid 1");
	port_change("sm 1");
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	path_leads(&gid, 1);
}

int main(void)
{
	pid_t pid;

	test_begin();
	pid = spawn(asks_and_dies, 0);
	await(0, 1);
	kill(pid, SIGKILL);
	join_killed(pid, SIGKILL);
	up(WELL_KEY);
	paths();
	others();
	lost();
	groups();
	down();
	moved();
	return 0;
}
