// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For wire_groups.sh: a UD QP that does what standard input says, a line each, and answers each
 * with a line:
 *
 *	attach MGID		"attached", or the error
 *	detach MGID		"detached", or the error
 *	send MGID TEXT [QKEY]	"sent": to the group
 *	by LID MGID TEXT	the same, with another LID than that of the group
 *	tell LID QPN TEXT	"sent": to that QP
 *	gone MGID TEXT PID	"gone": sends TEXT to the group five times while process PID is stopped, and ends the QP without
 *				looking for completions, before PID goes on
 *	end
 *	next			waits for a datagram: its text; of one to a group also where from and to, as its GRH says
 *
 * The first line that it writes has its LID, QPN and process number. The QP is at the port that the
 * environment variable PORT names, or at the first; DEVICE names the device, and GID_INDEX the GID
 * that it sends from, if these are not the first ones, either.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SLOTS 64
#define ROOM  256
#define GRH   40
#define MLID  0xc123
#define QKEY  0x11111111

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *sends, *receives;
static struct ibv_qp *qp;
static uint8_t port_num = 1, gid_index;
static struct ibv_ah *ah;
static char buf[SLOTS + 1][ROOM]; /* the last one is for sending */

static void need(int good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static void post(uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)buf[slot], ROOM, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(qp, &wr, &bad), "post_recv");
}

static struct ibv_device *device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *name = getenv("DEVICE");

	need(list && list[0], "a device");
	while (name && *list && strcmp(ibv_get_device_name(*list), name))
		list++;
	need(*list != NULL, "the device");
	return *list;
}

static void make(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port_num, .qkey = QKEY};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 8,
						.max_recv_wr = SLOTS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	ctx = ibv_open_device(device());
	need(ctx != NULL, "open");
	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
	init.send_cq = sends = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	init.recv_cq = receives = ibv_create_cq(ctx, SLOTS, NULL, NULL, 0);
	need(mr && sends && receives, "objects");
	qp = ibv_create_qp(pd, &init);
	need(qp != NULL, "a QP");
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT");
	for (uint64_t i = 0; i < SLOTS; i++)
		post(i);
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

static void wait_for(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)))
		usleep(100);
	need(n == 1 && wc->status == IBV_WC_SUCCESS, "a completion");
}

static void post_text(struct ibv_ah_attr *to, uint32_t qpn, uint32_t qkey, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)buf[SLOTS], (uint32_t)strlen(text) + 1, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (ah)
		ibv_destroy_ah(ah);
	to->port_num = port_num;
	wr.wr.ud.ah = ah = ibv_create_ah(pd, to);
	need(ah != NULL, "an address handle");
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	snprintf(buf[SLOTS], ROOM, "%s", text);
	need(!ibv_post_send(qp, &wr, &bad), "post_send");
}

static void send_text(struct ibv_ah_attr *to, uint32_t qpn, uint32_t qkey, const char *text)
{
	struct ibv_wc wc;

	post_text(to, qpn, qkey, text);
	wait_for(sends, &wc);
	puts("sent");
}

/* ---- a QP that ends early ---- */

static pid_t ender; /* the thread's number; 0: it has not begun; -1: it is done */

static void *ends(void *unused)
{
	(void)unused;
	__atomic_store_n(&ender, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	need(!ibv_destroy_qp(qp), "destroy_qp");
	__atomic_store_n(&ender, -1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The state of a process or thread, as in /proc. */
static char state_of(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	need(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1, path);
	fclose(f);
	return state;
}

/* Until it waits for the daemon, or is done. */
static void wait_for_ender(void)
{
	pid_t tid;

	while ((tid = __atomic_load_n(&ender, __ATOMIC_SEQ_CST)) >= 0)
		if (tid && state_of(tid) == 'S')
			return;
}

static void gone(struct ibv_ah_attr *to, const char *text, pid_t engine)
{
	pthread_t thread;

	need(!kill(engine, SIGSTOP), "stop the process");
	while (state_of(engine) != 'T')
		usleep(100);
	for (int i = 0; i < 5; i++)
		post_text(to, 0xffffff, QKEY, text);
	need(!pthread_create(&thread, NULL, ends, NULL), "a thread");
	wait_for_ender();
	need(!kill(engine, SIGCONT), "continue the process");
	pthread_join(thread, NULL);
	puts("gone");
}

/* ---- what standard input says ---- */

/* Fills in the group; mlid: the LID that the address handle has. */
static void to_group(struct ibv_ah_attr *to, const char *group, uint16_t mlid)
{
	*to = (struct ibv_ah_attr){.dlid = mlid, .is_global = 1};
	need(inet_pton(AF_INET6, group, &to->grh.dgid) == 1, "an MGID");
	to->grh.hop_limit = 1;
	to->grh.sgid_index = gid_index;
}

static void next(void)
{
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
	struct ibv_wc wc;
	char *got;

	wait_for(receives, &wc);
	got = buf[wc.wr_id];
	printf("%s", got + GRH);
	if (wc.wc_flags & IBV_WC_GRH) {
		inet_ntop(AF_INET6, got + 8, from, sizeof(from));
		inet_ntop(AF_INET6, got + 24, to, sizeof(to));
		printf(" %s %s", from, to);
	}
	puts("");
	post(wc.wr_id);
}

int main(void)
{
	char line[200], text[100], group[100];
	struct ibv_ah_attr to;
	struct ibv_port_attr port;
	union ibv_gid gid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("PORT"))
		port_num = (uint8_t)atoi(getenv("PORT"));
	if (getenv("GID_INDEX"))
		gid_index = (uint8_t)atoi(getenv("GID_INDEX"));
	make();
	need(!ibv_query_port(ctx, port_num, &port), "query_port");
	printf("%u %u %d\n", port.lid, qp->qp_num, (int)getpid());
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int lid, qpn, qkey = QKEY;
		int pid;
		int err;

		if (sscanf(line, "tell %u %u %99s", &lid, &qpn, text) == 3) {
			to = (struct ibv_ah_attr){.dlid = (uint16_t)lid};
			send_text(&to, qpn, QKEY, text);
		} else if (sscanf(line, "send %99s %99s %x", group, text, &qkey) >= 2) {
			to_group(&to, group, MLID);
			send_text(&to, 0xffffff, qkey, text);
		} else if (sscanf(line, "by %x %99s %99s", &lid, group, text) == 3) {
			to_group(&to, group, (uint16_t)lid);
			send_text(&to, 0xffffff, qkey, text);
		} else if (sscanf(line, "gone %99s %99s %d", group, text, &pid) == 3) {
			to_group(&to, group, MLID);
			gone(&to, text, pid);
		} else if (sscanf(line, "%99s %99s", text, group) == 2) {
			need(inet_pton(AF_INET6, group, &gid) == 1, "an MGID");
			err = strcmp(text, "attach") ? ibv_detach_mcast(qp, &gid, MLID)
						     : ibv_attach_mcast(qp, &gid, MLID);
			printf("%s\n", err			? strerror(err)
				       : strcmp(text, "attach") ? "detached"
								: "attached");
		} else if (!strncmp(line, "end", 3)) {
			break;
		} else {
			next();
		}
	}
	return 0;
}
