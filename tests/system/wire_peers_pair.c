// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The pair of wire_peers: how its processes find each other, make and connect QPs, and post
 * requests.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "wire_peers.h"

struct place mine, theirs;
struct ibv_mr *mr;
struct ibv_cq *cq;
struct ibv_qp *first, *second, *qp;
struct ibv_ah *ah;
unsigned char *buf;
uint32_t first_psn;
unsigned int path_mtu;
bool sleeps;
int tcp;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint8_t gid_index;

void connect_tcp(int port, const char *host)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (host) {
		CHECK(inet_pton(AF_INET, host, &at.sin_addr) == 1);
		CHECK(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
		tcp = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1));
		tcp = accept(fd, NULL, NULL);
		CHECK(tcp >= 0);
	}
	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void say(void)
{
	CHECK(write(tcp, "x", 1) == 1);
}

void hear(void)
{
	char byte;

	CHECK(read(tcp, &byte, 1) == 1);
}

void make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	const char *index = getenv("GID_INDEX"), *name = getenv("DEVICE");

	CHECK(list && list[0]);
	while (name && *list && strcmp(ibv_get_device_name(*list), name))
		list++;
	CHECK(*list);
	ctx = ibv_open_device(*list);
	CHECK(ctx && !posix_memalign((void **)&buf, 4096, 2 * HALF));
	cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(cq && pd);
	mr = ibv_reg_mr(pd, buf, 2 * HALF,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(mr && !ibv_query_port(ctx, 1, &port));
	mine = (struct place){
		.addr = (uintptr_t)buf, .rkey = mr->rkey, .lid = index ? 0 : port.lid};
	if (index) {
		gid_index = (uint8_t)atoi(index);
		CHECK(!ibv_query_gid(ctx, 1, gid_index, &mine.gid));
	}
}

static enum ibv_mtu mtu_of(unsigned int bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (128u << mtu < bytes)
		mtu++;
	return mtu;
}

/* Makes a QP, and connects it to the one that the other process makes. */
void join(enum ibv_qp_type type, int timeout, int retries)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_ATOMIC};

	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	mine.qpn = qp->qp_num;
	CHECK(write(tcp, &mine, sizeof(mine)) == sizeof(mine));
	CHECK(recv(tcp, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(path_mtu),
		.dest_qp_num = theirs.qpn,
		.rq_psn = first_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = theirs.lid,
			    .is_global = !theirs.lid,
			    .grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64},
			    .port_num = 1}};
	CHECK(!ibv_modify_qp(
		qp, &a,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(type == IBV_QPT_UC ? 0
					    : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = (uint8_t)timeout,
				 .retry_cnt = (uint8_t)retries,
				 .rnr_retry = 7,
				 .sq_psn = first_psn,
				 .max_rd_atomic = 4};
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (type == IBV_QPT_UC ? 0
							 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
								   IBV_QP_RNR_RETRY |
								   IBV_QP_MAX_QP_RD_ATOMIC)));
}

/* Makes a QP of UD, and an address for that of the other process. */
void join_ud(void)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_ah_attr to;

	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	mine.qpn = qp->qp_num;
	CHECK(write(tcp, &mine, sizeof(mine)) == sizeof(mine));
	CHECK(recv(tcp, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	to = (struct ibv_ah_attr){
		.dlid = theirs.lid,
		.is_global = !theirs.lid,
		.grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64},
		.port_num = 1};
	ah = ibv_create_ah(pd, &to);
	CHECK(ah);
}

void post(enum ibv_wr_opcode opcode, size_t local, uint32_t len, uint64_t remote, uint32_t rkey,
	  uint64_t add, uint64_t swap)
{
	struct ibv_sge sge = {(uintptr_t)buf + local, len, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .opcode = opcode,
					 .sg_list = &sge,
					 .num_sge = len ? 1 : 0,
					 .imm_data = htonl(len ^ 0x5a5a),
				 };

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = add;
		wr.wr.atomic.swap = swap;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

void post_receive(size_t local, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)buf + local, len, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

struct ibv_wc completion(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (sleeps)
			usleep(500);
	CHECK(n == 1);
	return wc;
}

void done(void)
{
	struct ibv_wc wc = completion();

	if (wc.status)
		fprintf(stderr, "status: %s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static unsigned char pattern(size_t i, uint32_t len)
{
	return (unsigned char)(i * 7 + i / 251 + len);
}

void fill(uint32_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = pattern(i, len);
}

void check_of(size_t place, size_t first, uint32_t have, uint32_t len)
{
	for (size_t i = first; i < have; i++)
		CHECK(buf[place + i] == pattern(i, len));
}

void check_at(size_t place, size_t first, uint32_t len)
{
	check_of(place, first, len, len);
}

void check(uint32_t len)
{
	check_at(HALF, 0, len);
}
