// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: many queue pairs alive in one process. A parent single-steps the process and counts
 * the instructions of each operation, with few and with many queue pairs alive. All of them work,
 * and they use few of the mappings that a process can have. Arguments: the kind, and how many.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define FEW    20
#define ROUNDS 3 /* of measurements; the least of them counts */
#define SLACK                                                                                      \
	1500 /* instructions that another path may cost, of malloc() for example; 743 was seen */

enum { MARK_BEGIN = SIGUSR1, MARK_END = SIGUSR2 };

static bool receivers; /* XRC receive QPs, which are numbers */
static enum ibv_qp_type type = IBV_QPT_RC;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_xrc_domain *domain;
static uint16_t lid;
static char memory[4096] __attribute__((aligned(4096)));
static struct {
	struct ibv_qp *qp;
	uint32_t qpn;
} * all;
static unsigned int alive;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	errno = err > 0 ? err : errno;
	die("%s", what);
}

/* ---- the operations ---- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!ctx)
		die("no device");
	must(ibv_query_port(ctx, 1, &port), "query port");
	lid = port.lid;
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 100, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: NULL;
	if (!cq || !mr)
		die("objects");
	if (type == IBV_QPT_XRC) {
		domain = ibv_open_xrc_domain(ctx, -1, O_CREAT);
		if (!domain)
			die("XRC domain");
	}
}

static void create(unsigned int i)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.xrc_domain = domain,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (receivers) {
		must(ibv_create_xrc_rcv_qp(&attr, &all[i].qpn), "create a receive QP");
		return;
	}
	all[i].qp = ibv_create_qp(pd, &attr);
	if (!all[i].qp)
		die("create QP %u", i);
	all[i].qpn = all[i].qp->qp_num;
}

static void destroy(unsigned int i)
{
	must(receivers ? ibv_unreg_xrc_rcv_qp(domain, all[i].qpn) : ibv_destroy_qp(all[i].qp),
	     "destroy");
}

static void modify(unsigned int i, struct ibv_qp_attr *attr, int mask)
{
	must(receivers ? ibv_modify_xrc_rcv_qp(domain, all[i].qpn, attr, mask)
		       : ibv_modify_qp(all[i].qp, attr, mask),
	     "modify");
}

static void connect_qp(unsigned int i)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = all[i].qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = lid, .port_num = 1},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	modify(i, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(i, &rtr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!receivers)
		modify(i, &rts,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void query(unsigned int i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(receivers ? ibv_query_xrc_rcv_qp(domain, all[i].qpn, &attr, IBV_QP_STATE, &init)
		       : ibv_query_qp(all[i].qp, &attr, IBV_QP_STATE, &init),
	     "query");
	errno = EPROTO;
	if (attr.qp_state != (receivers ? IBV_QPS_RTR : IBV_QPS_RTS))
		die("QP %u is in state %d", i, attr.qp_state);
}

/* Eight bytes to itself: the doorbell, the packet and the completion name the QP by its number. */
static void work(unsigned int i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = i,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = (uintptr_t)memory + 64,
						       .rkey = mr->rkey},
				   },
			   *bad;
	struct ibv_wc wc;
	int n;

	if (type != IBV_QPT_RC)
		return;
	must(ibv_post_send(all[i].qp, &wr, &bad), "post");
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	errno = EIO;
	if (n < 0 || wc.status || wc.qp_num != all[i].qpn || wc.wr_id != i)
		die("completion of QP %u", i);
}

static void grow(unsigned int to)
{
	for (; alive < to; alive++) {
		create(alive);
		connect_qp(alive);
	}
}

/* ---- the child ---- */

#define STEPS 6
static const char *const step_name[STEPS] = {"query",  "work",		 "destroy",
					     "create", "create another", "connect"};

#define COUNTED(x)                                                                                 \
	do {                                                                                       \
		raise(MARK_BEGIN);                                                                 \
		x;                                                                                 \
		raise(MARK_END);                                                                   \
	} while (0)

/*
 * Takes an old queue pair, a different one each time, and creates one more when its place has been
 * filled again: that is the worst case for a search from either end.
 */
static void sample(unsigned int round)
{
	unsigned int some = alive / 4 + 3 * round;

	COUNTED(query(some));
	COUNTED(work(some));
	COUNTED(destroy(some));
	COUNTED(create(some));
	COUNTED(create(alive));
	COUNTED(connect_qp(some));
	destroy(alive);
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	if (!f)
		die("/proc/self/maps");
	while ((c = getc_unlocked(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* The mappings that many queue pairs add are those of their queues. */
static void few_mappings(unsigned int before, unsigned int many)
{
	unsigned int now = mappings();

	printf("# %u mappings with %d alive, %u with %u\n", before, FEW, now, many);
	errno = E2BIG;
	if (now > before + 20 + many / 25)
		die("%u mappings", now);
}

static void child(unsigned int many, bool pause)
{
	unsigned int i, before, step = many > 4000 ? many / 2000 : 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	all = calloc(many + 1, sizeof(*all));
	if (!all)
		die("memory");
	open_device();
	grow(FEW);
	before = mappings();
	for (i = 0; i < ROUNDS; i++)
		sample(i);
	grow(many);
	few_mappings(before, many);
	for (i = 0; i < ROUNDS; i++)
		sample(i);
	for (i = 0; i < many; i += step)
		work(i);
	if (pause) {
		printf("alive\n");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	/* Destroys every second one first, so that gaps come to exist. */
	for (i = 0; i < many; i += 2)
		destroy(i);
	for (i = 1; i < many; i += 2)
		destroy(i);
	exit(0);
}

/* ---- the parent ---- */

static int next_stop(pid_t pid, int request, int signal)
{
	int status;

	if (ptrace(request, pid, NULL, (void *)(intptr_t)signal) < 0 ||
	    waitpid(pid, &status, 0) != pid)
		die("trace");
	return status;
}

/* The signal to deliver to the child: its own ones, but not SIGTRAP and the marks. */
static int to_deliver(int status)
{
	int signal = WSTOPSIG(status);

	return signal == SIGTRAP || signal == SIGSTOP || signal == MARK_BEGIN || signal == MARK_END
		       ? 0
		       : signal;
}

static long count_one(pid_t pid, int *status)
{
	long steps = 0;
	int signal = 0;

	do {
		*status = next_stop(pid, PTRACE_CONT, signal);
		signal = to_deliver(*status);
	} while (WIFSTOPPED(*status) && WSTOPSIG(*status) != MARK_BEGIN);
	for (signal = 0; WIFSTOPPED(*status); steps++) {
		*status = next_stop(pid, PTRACE_SINGLESTEP, signal);
		signal = to_deliver(*status);
		if (WIFSTOPPED(*status) && WSTOPSIG(*status) == MARK_END)
			return steps;
	}
	return -1;
}

static int compare(pid_t pid, unsigned int many)
{
	long least[2][STEPS], n;
	int status, round, i, step, bad = 0;

	memset(least, 0x7f, sizeof(least));
	if (waitpid(pid, &status, 0) != pid ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL) < 0)
		die("trace");
	for (round = 0; round < 2; round++)
		for (i = 0; i < ROUNDS; i++)
			for (step = 0; step < STEPS; step++) {
				n = count_one(pid, &status);
				if (n < 0)
					goto ended;
				if (n < least[round][step])
					least[round][step] = n;
			}
	for (step = 0; step < STEPS; step++) {
		printf("# %s: %ld instructions with %d alive, %ld with %u\n", step_name[step],
		       least[0][step], FEW, least[1][step], many);
		if (least[1][step] > least[0][step] + SLACK)
			bad = 1;
	}
	fflush(stdout);
	i = 0;
	do {
		status = next_stop(pid, PTRACE_CONT, i);
		i = to_deliver(status);
	} while (WIFSTOPPED(status));
ended:
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "it ended with status 0x%x\n", status);
		bad = 1;
	}
	return bad;
}

int main(int argc, char **argv)
{
	unsigned int many = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	pid_t pid;

	if (many <= FEW) {
		fprintf(stderr, "usage: scale rc|xrc|receive NUMBER [hold]\n");
		return 2;
	}
	if (strcmp(argv[1], "rc"))
		type = IBV_QPT_XRC;
	receivers = !strcmp(argv[1], "receive");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		child(many, argc > 3);
	return compare(pid, many);
}
