// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Many client processes on one instance, which are killed at random and replaced, or stopped for a
 * while. It runs inside `softhca run` and starts the clients itself, in groups that talk to each
 * other:
 *
 *	pair	two processes, RC, one with an SRQ, contents and order verified
 *	events	the same, sleeping in completion events
 *	xrc	four processes that share a domain: one sends, three receive through one receive QP into SRQs of their own
 *
 * When the parent kills a process of a group, the others lose their peer. Then the parent kills the
 * rest of the group and starts a new one. The groups that the parent leaves alone ("survivors", one
 * of each kind) must get every message until the end. A group with a process that is stopped and
 * continued must lose nothing either.
 *
 * soak [--kill | --stop | --none] --seconds N --processes N --seed N [--progress FILE]: the exit
 * status is 0 if all processes that were not killed succeeded. Progress goes to the file of
 * --progress; without it to standard error, if that is a terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MEMBERS 4 /* most processes of a group */
#define GROUPS	64
#define SLOTS	16
#define SIZE	512
#define MISSING 100 /* exit status: the peer is gone, which is no failure */

enum kind { PAIR, EVENTS, XRC, KINDS };
static const int members[KINDS] = {2, 2, 4};

/*
 * Shared with the processes of a group: numbers that a real program would exchange over a socket.
 */
struct card {
	volatile uint32_t qpn, srqn, rcv_qpn, lid;
	volatile int ready;	    /* 1: numbers are there; 2: connected */
	volatile uint64_t messages; /* received and right */
};
struct group {
	struct card card[MEMBERS];
	volatile int stop;		 /* finish what is under way and end */
	volatile int ended;		 /* how many have sent and received all */
	volatile uint64_t sent[MEMBERS]; /* to that member */
};
struct slot {
	enum kind kind;
	pid_t pid[MEMBERS];
	bool survivor;
	int generation;
};

static struct group *groups;
static struct slot slots[GROUPS];
static int ngroups, failures;

/* ---- a client ---- */

static struct group *group;
static struct card *self;
static enum kind kind;
static int me, domain_fd;

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_xrc_domain *domain;
static struct ibv_mr *mr;
static uint32_t *buf; /* SLOTS to receive, then one to send */
static uint64_t expected;
static bool sending;

static void __attribute__((format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "soak: member %d of a group of kind %d: ", me, kind);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

static void check(int err, const char *what)
{
	if (err)
		die("%s: %s", what, strerror(err > 0 ? err : errno));
}

static void *there(void *object, const char *what)
{
	if (!object)
		die("%s: %s", what, strerror(errno));
	return object;
}

static void post(int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(buf + slot * (SIZE / 4)), .length = SIZE, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	check(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad),
	      "post receive");
}

static uint32_t word(uint64_t number, int i)
{
	return (uint32_t)(number * 2654435761u + i * 40503u);
}

static void completion(const struct ibv_wc *wc)
{
	const uint32_t *data = buf + wc->wr_id * (SIZE / 4);

	/*
	 * The peer was killed: the retries are used up, or its SRQ or memory was gone before its
	 * QP.
	 */
	if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR ||
	    wc->status == IBV_WC_REM_OP_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR)
		_exit(MISSING);
	if (wc->status != IBV_WC_SUCCESS)
		die("completion: %s", ibv_wc_status_str(wc->status));
	if (!(wc->opcode & IBV_WC_RECV)) {
		sending = false;
		return;
	}
	if (wc->byte_len != SIZE)
		die("a message of %u bytes", wc->byte_len);
	for (int i = 0; i < SIZE / 4; i++)
		if (data[i] != word(expected, i))
			die("message %llu is not the next one or damaged at word %d",
			    (unsigned long long)expected, i);
	self->messages = ++expected;
	post((int)wc->wr_id);
}

static void progress(void)
{
	struct ibv_wc wc[4];
	struct ibv_cq *got;
	void *arg;
	int n;

	if (channel) {
		struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

		check(ibv_req_notify_cq(cq, 0), "arm");
		n = ibv_poll_cq(cq, 4, wc);
		if (!n && poll(&fd, 1, 20) == 1) {
			check(ibv_get_cq_event(channel, &got, &arg), "completion event");
			ibv_ack_cq_events(got, 1);
		}
	} else {
		n = ibv_poll_cq(cq, 4, wc);
		if (!n)
			sched_yield();
	}
	if (n < 0)
		die("poll CQ");
	for (int i = 0; i < n; i++)
		completion(&wc[i]);
}

static void await(volatile int *word_of, int value)
{
	static const struct timespec tick = {.tv_nsec = 1000000};

	while (*word_of < value)
		nanosleep(&tick, NULL);
}

static void fill_rtr(struct ibv_qp_attr *attr, const struct card *peer, uint32_t qpn)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 10,
		.ah_attr = {.dlid = (uint16_t)peer->lid, .port_num = 1},
	};
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static void ready_to_send(const struct card *peer, uint32_t qpn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	check(ibv_modify_qp(qp, &attr, INIT_MASK), "to INIT");
	fill_rtr(&attr, peer, qpn);
	check(ibv_modify_qp(qp, &attr, RTR_MASK), "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 12,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	check(ibv_modify_qp(qp, &attr, RTS_MASK), "to RTS");
}

static void open_all(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = SLOTS, .max_sge = 1}};
	struct ibv_device **list = there(ibv_get_device_list(NULL), "device list");
	struct ibv_port_attr port;

	context = there(ibv_open_device(there(list[0], "device")), "open device");
	ibv_free_device_list(list);
	check(ibv_query_port(context, 1, &port), "query port");
	self->lid = port.lid;
	pd = there(ibv_alloc_pd(context), "PD");
	if (kind == EVENTS)
		channel = there(ibv_create_comp_channel(context), "channel");
	cq = there(ibv_create_cq(context, 2 * SLOTS, NULL, channel, 0), "CQ");
	buf = there(aligned_alloc(4096, (SLOTS + 8) * SIZE), "memory");
	mr = there(ibv_reg_mr(pd, buf, (SLOTS + 1) * SIZE, IBV_ACCESS_LOCAL_WRITE), "MR");
	if (kind == XRC) {
		domain = there(ibv_open_xrc_domain(context, domain_fd, O_CREAT), "XRC domain");
		srq = there(ibv_create_xrc_srq(pd, domain, cq, &attr), "XRC SRQ");
		self->srqn = srq->xrc_srq_num;
	} else if (me == 1) {
		srq = there(ibv_create_srq(pd, &attr), "SRQ");
	}
}

static void connect_all(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = domain ? NULL : srq,
		.xrc_domain = domain,
		.qp_type = domain ? IBV_QPT_XRC : IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_send_sge = 1,
			.max_recv_wr = domain || srq ? 0 : SLOTS,
			.max_recv_sge = domain || srq ? 0 : 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct card *card = group->card;

	if (kind != XRC) {
		qp = there(ibv_create_qp(pd, &init), "QP");
		self->qpn = qp->qp_num;
		self->ready = 1;
		await(&card[!me].ready, 1);
		ready_to_send(&card[!me], card[!me].qpn);
		for (int i = 0; i < SLOTS; i++)
			post(i);
		self->ready = 2;
		await(&card[!me].ready, 2);
		return;
	}
	for (int i = 0; i < SLOTS; i++)
		post(i);
	if (me == 0) { /* the one that sends */
		qp = there(ibv_create_qp(pd, &init), "send QP");
		self->qpn = qp->qp_num;
		self->ready = 1;
		await(&card[1].ready, 2);
		ready_to_send(&card[1], card[1].rcv_qpn);
		for (int i = 1; i < MEMBERS; i++)
			await(&card[i].ready, 3);
		return;
	}
	if (me == 1) { /* creates the receive QP of all three */
		struct ibv_qp_init_attr rcv = {.xrc_domain = domain};
		uint32_t number;

		await(&card[0].ready, 1);
		check(ibv_create_xrc_rcv_qp(&rcv, &number), "receive QP");
		check(ibv_modify_xrc_rcv_qp(domain, number, &attr, INIT_MASK),
		      "receive QP to INIT");
		fill_rtr(&attr, &card[0], card[0].qpn);
		check(ibv_modify_xrc_rcv_qp(domain, number, &attr, RTR_MASK), "receive QP to RTR");
		self->rcv_qpn = number;
		self->ready = 2;
	} else {
		int err;

		await(&card[1].ready, 2);
		/* The process that created the QP may have been killed by now. */
		err = ibv_reg_xrc_rcv_qp(domain, card[1].rcv_qpn);
		if (err == EINVAL)
			_exit(MISSING);
		check(err, "register");
	}
	self->ready = 3;
}

static void send_one(int to)
{
	uint32_t *data = buf + SLOTS * (SIZE / 4);
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = SIZE, .lkey = mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .xrc_remote_srq_num = group->card[to].srqn,
				   },
			   *bad;
	uint64_t number = group->sent[to];

	for (int i = 0; i < SIZE / 4; i++)
		data[i] = word(number, i);
	sending = true;
	check(ibv_post_send(qp, &wr, &bad), "post send");
	while (sending)
		progress();
	group->sent[to] = number + 1;
}

static void run_client(int g, int index, enum kind of, pid_t parent)
{
	int first, last;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* the parent has ended before */
	group = &groups[g];
	kind = of;
	me = index;
	self = &group->card[me];
	open_all();
	connect_all();
	first = kind == XRC ? 1 : !me;
	last = kind == XRC ? (me ? 0 : MEMBERS - 1) : !me;
	while (!group->stop) {
		for (int to = first; to <= last; to++)
			send_one(to);
		progress();
	}
	__atomic_add_fetch(&group->ended, 1, __ATOMIC_SEQ_CST);
	while (group->ended < members[kind] || expected < group->sent[me])
		progress();
	/*
	 * Half of the groups leave the release of everything to the kernel, as a program that exits
	 * does.
	 */
	if (g & 1)
		_exit(0);
	if (qp)
		check(ibv_destroy_qp(qp), "destroy QP");
	if (kind == XRC && me)
		check(ibv_unreg_xrc_rcv_qp(domain, group->card[1].rcv_qpn), "unregister");
	if (srq)
		check(ibv_destroy_srq(srq), "destroy SRQ");
	if (domain)
		check(ibv_close_xrc_domain(domain), "close domain");
	check(ibv_destroy_cq(cq), "destroy CQ");
	if (channel)
		check(ibv_destroy_comp_channel(channel), "destroy channel");
	check(ibv_dereg_mr(mr), "deregister");
	check(ibv_dealloc_pd(pd), "deallocate PD");
	check(ibv_close_device(context), "close device");
	_exit(0);
}

/* ---- the parent, which starts and kills clients ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds,
			     .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void start_group(int g)
{
	struct slot *slot = &slots[g];
	const pid_t parent = getpid();
	char name[64];

	memset((void *)&groups[g], 0, sizeof(groups[g]));
	snprintf(name, sizeof(name), "soak-domain-%d-%d", g, slot->generation++);
	domain_fd = memfd_create(name, MFD_CLOEXEC);
	for (int i = 0; i < members[slot->kind]; i++) {
		slot->pid[i] = fork();
		if (slot->pid[i] < 0) {
			perror("soak: fork");
			exit(1);
		}
		if (!slot->pid[i])
			run_client(g, i, slot->kind, parent);
	}
	close(domain_fd);
}

static void reap(int g, int i, bool killed)
{
	struct slot *slot = &slots[g];
	int status = 0;

	if (!slot->pid[i])
		return;
	waitpid(slot->pid[i], &status, 0);
	slot->pid[i] = 0;
	if (killed && ((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
		       (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)))
		return;
	if (!status)
		return;
	fprintf(stderr, "soak: group %d (kind %d, %s), member %d ended with status 0x%x\n", g,
		slot->kind, killed ? "killed" : "not killed", i, status);
	failures++;
}

static void replace(int g)
{
	struct slot *slot = &slots[g];
	int n = members[slot->kind], victim = rand() % n;

	kill(slot->pid[victim], SIGKILL);
	reap(g, victim, true);
	/* The others go on for a moment with a peer that is gone. */
	nap((rand() % 20) / 1000.0);
	for (int i = 0; i < n; i++)
		if (slot->pid[i])
			kill(slot->pid[i], SIGKILL);
	for (int i = 0; i < n; i++)
		reap(g, i, true);
	start_group(g);
}

static void pause_one(int g)
{
	pid_t pid = slots[g].pid[rand() % members[slots[g].kind]];

	kill(pid, SIGSTOP);
	nap((5 + rand() % 300) / 1000.0);
	kill(pid, SIGCONT);
}

static uint64_t received(bool survivors_only)
{
	uint64_t all = 0;

	for (int g = 0; g < ngroups; g++)
		for (int i = 0; i < members[slots[g].kind]; i++)
			if (!survivors_only || slots[g].survivor)
				all += groups[g].card[i].messages;
	return all;
}

/*
 * Groups that the parent left alone must end by themselves. The wait is bounded, in case one hangs.
 */
static void finish_all(void)
{
	double limit = now() + 60;

	for (int g = 0; g < ngroups; g++)
		groups[g].stop = 1;
	for (int g = 0; g < ngroups; g++) {
		for (int i = 0; i < members[slots[g].kind]; i++) {
			siginfo_t info = {0};

			while (slots[g].pid[i] && !info.si_pid && now() < limit) {
				waitid(P_PID, (id_t)slots[g].pid[i], &info,
				       WEXITED | WNOHANG | WNOWAIT);
				if (!info.si_pid)
					nap(0.005);
			}
			if (!info.si_pid) {
				fprintf(stderr,
					"soak: group %d (kind %d), member %d does not end: %llu "
					"messages, %llu sent to it, "
					"ready %d, %d ended\n",
					g, slots[g].kind, i,
					(unsigned long long)groups[g].card[i].messages,
					(unsigned long long)groups[g].sent[i],
					groups[g].card[i].ready, groups[g].ended);
				failures++;
				kill(slots[g].pid[i], SIGKILL);
				reap(g, i, true);
				continue;
			}
			reap(g, i, false);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"kill", no_argument, NULL, 'k'},
		{"stop", no_argument, NULL, 't'},
		{"none", no_argument, NULL, 'n'},
		{"progress", required_argument, NULL, 'o'},
		{"seconds", required_argument, NULL, 's'},
		{"processes", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	double seconds = 5, start, shown = 0;
	int processes = 16, kills = 0, stops = 0, started = 0;
	bool killing = false, stopping = false;
	FILE *progress_file = NULL;
	unsigned int seed = 1;
	uint64_t survivors;

	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		switch (c) {
		case 'k':
			killing = true;
			break;
		case 't':
			stopping = true;
			break;
		case 'n':
			break;
		case 'o':
			progress_file = fopen(optarg, "we");
			break;
		case 's':
			seconds = atof(optarg);
			break;
		case 'p':
			processes = atoi(optarg);
			break;
		case 'r':
			seed = (unsigned int)atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	if (!progress_file && isatty(STDERR_FILENO))
		progress_file = stderr;
	srand(seed);
	groups = mmap(NULL, sizeof(*groups) * GROUPS, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (groups == MAP_FAILED)
		return 1;
	for (int g = 0; g < GROUPS && started < processes; g++) {
		slots[g].kind = g % KINDS;
		slots[g].survivor = g < KINDS;
		started += members[slots[g].kind];
		ngroups++;
		start_group(g);
	}
	start = now();
	while (now() < start + seconds) {
		int g = rand() % ngroups;

		if (killing && !slots[g].survivor) {
			replace(g);
			kills++;
		} else if (stopping) {
			pause_one(g);
			stops++;
		}
		nap(killing ? 0.02 : 0.005);
		if (progress_file && now() - shown > 0.5) {
			shown = now();
			fprintf(progress_file,
				"\r%3.0f of %.0f s: %d processes, %d killed, %d stopped, %llu "
				"messages ",
				shown - start, seconds, started, kills, stops,
				(unsigned long long)received(false));
			fflush(progress_file);
		}
	}
	survivors = received(true);
	finish_all();
	if (progress_file) {
		fputc('\n', progress_file);
		fflush(progress_file);
	}
	if (!survivors) {
		fputs("soak: who was not killed got no message\n", stderr);
		failures++;
	}
	printf("%d processes for %.0f seconds: %d killed, %d stopped; %llu messages verified by "
	       "survivors; %d failures\n",
	       started, seconds, kills, stops, (unsigned long long)survivors, failures);
	return failures != 0;
}
