// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: ranks that know of each other only LID and number of a UD QP ask for connections by
 * datagrams, when the first message needs one, while others are in use, and from both sides at
 * once. Datagrams get lost (some are never sent, some find no receive), others come twice;
 * questions are repeated until they are answered. However often one comes, it makes one receive QP
 * and one registration.
 */
#include "xrc_peers.h"

#define ROUNDS 16
#define DEPTH  4 /* receives for datagrams: a burst finds none */
#define SENDS  16
#define GRH    40
#define QKEY   0x11111111

static struct ibv_cq *ud_scq, *ud_rcq;
static struct ibv_qp *ud;
static struct ibv_ah *handles[MAX_RANKS];
static struct ibv_mr *ud_mr;
static struct datagram {
	uint8_t grh[GRH];
	struct note note;
} box[DEPTH + SENDS], *const inbox = box, *const outbox = box + DEPTH;
static unsigned int sending, told;

enum { LID = 0, UD_QPN = MAX_RANKS, LOST = 2 * MAX_RANKS, TWICE, COUNT = 3 * MAX_RANKS };

static void post_inbox(unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&inbox[slot], .length = sizeof(*inbox), .lkey = ud_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK_EQ(ibv_post_recv(ud, &wr, &bad), 0);
}

static void datagram(int to, const struct note *note)
{
	struct datagram *d = &outbox[sending++ % SENDS];
	struct ibv_sge sge = {.addr = (uintptr_t)&d->note, .length = sizeof(d->note)};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_ah_attr attr = {.dlid = (uint16_t)look(LID + (unsigned int)to), .port_num = 1};
	unsigned int times = 0;
	struct ibv_wc wc;
	int n;

	if (!handles[to])
		handles[to] = ibv_create_ah(hca.pd, &attr);
	CHECK(handles[to]);
	d->note = *note;
	sge.lkey = ud_mr->lkey;
	wr.wr.ud.ah = handles[to];
	wr.wr.ud.remote_qpn = (uint32_t)look(UD_QPN + (unsigned int)to);
	wr.wr.ud.remote_qkey = QKEY;
	CHECK_EQ(ibv_post_send(ud, &wr, &bad), 0);
	while ((n = ibv_poll_cq(ud_scq, 1, &wc)) == 0)
		idle(times++);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void tell(int to, const struct note *note)
{
	unsigned int fate = (told++ * 5 + (unsigned int)me) % 4;

	/* Here the program itself loses or repeats datagrams, as a fabric would. */
	if (fate == 0) {
		add(LOST, 1);
		return;
	}
	datagram(to, note);
	if (fate == 1) {
		add(TWICE, 1);
		datagram(to, note);
	}
}

static bool hear(struct note *note)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(ud_rcq, 1, &wc);

	CHECK(n >= 0);
	if (!n)
		return false;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, sizeof(struct datagram));
	*note = inbox[wc.wr_id].note;
	CHECK(note->from < (uint32_t)total);
	CHECK_EQ(wc.src_qp, look(UD_QPN + note->from));
	CHECK_EQ(wc.slid, look(LID + note->from));
	post_inbox((unsigned int)wc.wr_id);
	return true;
}

static void open_ud(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = SENDS,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	ud_mr = ibv_reg_mr(hca.pd, box, sizeof(box), IBV_ACCESS_LOCAL_WRITE);
	CHECK(ud_mr);
	init.send_cq = ud_scq = ibv_create_cq(hca.context, SENDS, NULL, NULL, 0);
	init.recv_cq = ud_rcq = ibv_create_cq(hca.context, DEPTH, NULL, NULL, 0);
	CHECK(ud_scq && ud_rcq);
	ud = ibv_create_qp(hca.pd, &init);
	CHECK(ud);
	CHECK_EQ(ibv_modify_qp(ud, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_EQ(ibv_modify_qp(ud, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_EQ(ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	for (unsigned int i = 0; i < DEPTH; i++)
		post_inbox(i);
	post(LID + (unsigned int)me, hca.lid);
	post(UD_QPN + (unsigned int)me, ud->qp_num);
}

static void close_ud(void)
{
	CHECK_EQ(ibv_destroy_qp(ud), 0);
	for (int i = 0; i < total; i++)
		if (handles[i])
			CHECK_EQ(ibv_destroy_ah(handles[i]), 0);
	CHECK_EQ(ibv_destroy_cq(ud_scq), 0);
	CHECK_EQ(ibv_destroy_cq(ud_rcq), 0);
	CHECK_EQ(ibv_dereg_mr(ud_mr), 0);
}

static const struct peers_config config = {
	.queues = 2,
	.size = {256, 4096},
	.slots = {32, 8},
	.window = 4,
	.retry_ms = 15,
	.tell = tell,
	.hear = hear,
};

/*
 * In each round a rank sends to one more peer. It begins with its neighbour, which sends to it at
 * the same time.
 */
static void run(void)
{
	int first = (me ^ 1) < total ? me ^ 1 : 0;

	peers_open(&config);
	open_ud();
	meet((uint32_t)total, NULL);
	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < total - 1 && i <= n; i++) {
			int to = (first + i) % total;

			if (to == me)
				to = (first + total - 1) % total;
			peers_send(to, 0, 0, sizeof(struct message) + (uint32_t)(n * 211 + i * 31));
		}
	}
	peers_flush();
	for (int i = 0; i < total; i++)
		post(COUNT + (unsigned int)(me * MAX_RANKS + i), peer[i].sent);
	meet((uint32_t)total, peers_work);
	for (int i = 0; i < total; i++)
		peers_await(i, (uint32_t)look(COUNT + (unsigned int)(i * MAX_RANKS + me)));
	CHECK(look(LOST) > 0 && look(TWICE) > 0);
	show((uint32_t)total, peers_work);
	close_ud();
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
