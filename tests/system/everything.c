// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Creates one or more of each object that `softhca show` prints, in each of several processes: QPs
 * of every kind, an XRC domain with a file and one without, an XRC receive QP that all processes
 * register with, SRQs, memory regions with each access flag and with none, a multicast group. When
 * all processes have them, the program prints NAME=VALUE words and waits until standard input ends.
 *
 * everything FILE PROCESSES: FILE is that of the shared XRC domain. The processes use the HCAs of
 * their host in turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static char memory[10000];
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "everything: process %d: %s: %s\n", (int)getpid(), what, strerror(errno));
	exit(1);
}

static void must_be_0(int err, const char *what)
{
	if (err > 0)
		errno = err;
	must(!err, what);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *srq,
			      struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = type,
		.xrc_domain = domain,
		.cap = {.max_send_wr = 100, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1234};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp;

	if (!srq && !domain)
		init.cap.max_recv_wr = 100;
	must(!!(qp = ibv_create_qp(pd, &init)), "QP");
	must_be_0(ibv_modify_qp(qp, &attr,
				mask | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
		  "to INIT");
	return qp;
}

static uint32_t make_receive_qp(struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr init = {.xrc_domain = domain};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	uint32_t qpn;

	must_be_0(ibv_create_xrc_rcv_qp(&init, &qpn), "XRC receive QP");
	must_be_0(ibv_modify_xrc_rcv_qp(domain, qpn, &attr,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS),
		  "XRC receive QP to INIT");
	return qpn;
}

/* The numbers of a QP that can be connected and of the shared receive QP. */
static uint32_t make(const char *file, int index, uint32_t *receive_qpn)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 20, .max_sge = 1}};
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad;
	struct ibv_xrc_domain *shared, *own;
	struct ibv_srq *srq;
	struct ibv_device **list;
	struct ibv_qp *rc, *ud;
	union ibv_gid group = {.raw = {0xff, 0x12, [14] = (uint8_t)(index / 8), [15] = 9}};
	int n, fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	must(fd >= 0, file);
	list = ibv_get_device_list(&n);
	must(list && n > 0, "device");
	must(!!(ctx = ibv_open_device(list[index % n])), "open device");
	must(!!(pd = ibv_alloc_pd(ctx)), "PD");
	must(!!(cq = ibv_create_cq(ctx, 60, NULL, ibv_create_comp_channel(ctx), 0)), "CQ");
	must(!!ibv_create_cq(ctx, 10, NULL, NULL, 0), "CQ without a channel");
	must(!!ibv_reg_mr(pd, memory, sizeof(memory), 0), "MR without rights");
	must(!!ibv_reg_mr(pd, memory, sizeof(memory),
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				  IBV_ACCESS_MW_BIND),
	     "MR with all rights");
	must(!!(srq = ibv_create_srq(pd, &srq_attr)), "SRQ");
	must_be_0(ibv_post_srq_recv(srq, &recv, &bad), "receive");
	must(!!(shared = ibv_open_xrc_domain(ctx, fd, O_CREAT)), "XRC domain");
	must(!!(own = ibv_open_xrc_domain(ctx, -1, O_CREAT)), "XRC domain without a file");
	must(!!ibv_create_xrc_srq(pd, shared, cq, &srq_attr), "XRC SRQ");
	rc = make_qp(IBV_QPT_RC, srq, NULL);
	make_qp(IBV_QPT_UC, NULL, NULL);
	make_qp(IBV_QPT_XRC, NULL, own);
	ud = make_qp(IBV_QPT_UD, NULL, NULL);
	must_be_0(ibv_attach_mcast(ud, &group, 0xc009), "multicast");
	if (!index)
		*receive_qpn = make_receive_qp(shared);
	else if (index % n == 0)
		must_be_0(ibv_reg_xrc_rcv_qp(shared, *receive_qpn), "register with the receive QP");
	else
		make_receive_qp(shared);
	return rc->qp_num;
}

/*
 * A umad file with an agent of performance management, which gets only answers, and an issm file.
 * Both stay open.
 */
static void umad_agent(void)
{
	struct {
		uint32_t id, method_mask[4];
		uint8_t qpn, mgmt_class, version, rest[5];
	} agent = {.qpn = 1, .mgmt_class = 4, .version = 1};
	int fd = open("/dev/infiniband/umad0", O_RDWR | O_CLOEXEC);

	must(fd >= 0 && ioctl(fd, 0xc01c1b01, &agent) == 0, "umad");
	must(open("/dev/infiniband/issm0", O_RDWR | O_CLOEXEC) >= 0, "issm");
}

/* An id of rdma_cm, as rdma_create_id() makes it. Its file stays open. */
static void make_id(void)
{
	struct {
		uint32_t number;
		uint16_t in, out;
		uint64_t uid, response;
		uint16_t ps;
		uint8_t qp_type, reserved[5];
	} create = {.number = 0, .in = 24, .out = 4, .ps = 0x106, .qp_type = 2};
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	uint32_t id;

	create.response = (uintptr_t)&id;
	must(fd >= 0 && write(fd, &create, sizeof(create)) == sizeof(create), "rdma_cm");
}

int main(int argc, char **argv)
{
	int go[2], ready[2], hold[2], n = argc == 3 ? atoi(argv[2]) : 0;
	uint32_t receive_qpn, qpn;
	pid_t last = 0;
	char byte = 0;

	must(n > 0 && !pipe(go) && !pipe(ready) && !pipe(hold), "everything FILE PROCESSES");
	for (int i = 1; i < n; i++) {
		last = fork();
		must(last >= 0, "fork");
		if (last)
			continue;
		close(hold[1]);
		must(read(go[0], &receive_qpn, sizeof(receive_qpn)) == sizeof(receive_qpn),
		     "the first process");
		make(argv[1], i, &receive_qpn);
		must(write(ready[1], &byte, 1) == 1, "ready");
		(void)!read(hold[0], &byte, 1);
		return 0;
	}
	close(ready[1]);
	qpn = make(argv[1], 0, &receive_qpn);
	make_id();
	umad_agent();
	for (int i = 1; i < n; i++)
		must(write(go[1], &receive_qpn, sizeof(receive_qpn)) == sizeof(receive_qpn), "go");
	for (int i = 1; i < n; i++)
		must(read(ready[0], &byte, 1) == 1, "another process");
	printf("pid=%d last=%d qpn=%u receive_qpn=%u\n", (int)getpid(), (int)last, qpn,
	       receive_qpn);
	fflush(stdout);
	while (getchar() != EOF)
		;
	close(hold[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
