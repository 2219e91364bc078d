// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a queue pair costs when many exist: times each operation while that many exist, in this
 * process or spread over others. And how long each command takes while many processes make some. Uses only plain verbs. Prints a line per measurement, in
 * tab-separated fields. With --hold it waits for a line on standard input at each point where a
 * user may want to inspect the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MAX_POINTS 16
#define SAMPLES	   101

enum kind { KIND_RC, KIND_XRC_SEND, KIND_XRC_RECV };
enum op { OP_CREATE, OP_CONNECT, OP_QUERY, OP_WORK, OP_DESTROY, OPS };

struct side { /* shared by all queue pairs */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrc_domain *domain;
	uint16_t lid;
	enum kind kind;
	char *memory;
};

struct one {
	struct ibv_qp *qp;
	uint32_t qpn;
};

static bool hold;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "qp_scale: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, ": %s\n", strerror(err));
	va_end(ap);
	exit(1);
}

static double now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

static void wait_for_line(void)
{
	int c;

	fflush(stdout);
	if (!hold)
		return;
	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

/* The number of mappings of this process, which vm.max_map_count limits. */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	if (!f)
		return 0;
	while ((c = getc_unlocked(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void open_side(struct side *s, enum kind kind)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	s->kind = kind;
	if (!list || !list[0])
		die("no device");
	s->ctx = ibv_open_device(list[0]);
	if (!s->ctx)
		die("cannot open the device");
	ibv_free_device_list(list);
	if (ibv_query_port(s->ctx, 1, &port))
		die("cannot query the port");
	s->lid = port.lid;
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 255, NULL, NULL, 0);
	s->memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->mr = s->pd && s->memory != MAP_FAILED
			? ibv_reg_mr(s->pd, s->memory, 4096,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
			: NULL;
	if (!s->cq || !s->mr)
		die("cannot make the objects that all share");
	if (kind != KIND_RC) {
		s->domain = ibv_open_xrc_domain(s->ctx, -1, O_CREAT);
		if (!s->domain)
			die("cannot open an XRC domain");
	}
}

static void create(struct side *s, struct one *q)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = s->kind == KIND_RC ? IBV_QPT_RC : IBV_QPT_XRC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.xrc_domain = s->domain,
	};

	q->qp = NULL;
	if (s->kind == KIND_XRC_RECV) {
		int err = ibv_create_xrc_rcv_qp(&attr, &q->qpn);

		if (err) {
			errno = err;
			die("cannot create an XRC receive QP");
		}
		return;
	}
	q->qp = ibv_create_qp(s->pd, &attr);
	if (!q->qp)
		die("cannot create a QP");
	q->qpn = q->qp->qp_num;
}

static void destroy(struct side *s, struct one *q)
{
	int err = q->qp ? ibv_destroy_qp(q->qp) : ibv_unreg_xrc_rcv_qp(s->domain, q->qpn);

	if (err) {
		errno = err;
		die("cannot destroy a QP");
	}
}

static void modify(struct side *s, struct one *q, struct ibv_qp_attr *attr, int mask)
{
	int err = q->qp ? ibv_modify_qp(q->qp, attr, mask)
			: ibv_modify_xrc_rcv_qp(s->domain, q->qpn, attr, mask);

	if (err) {
		errno = err;
		die("cannot modify a QP to state %d", attr->qp_state);
	}
}

/*
 * One of the steps that connect the QP to itself. For what is measured, any other QP would be the
 * same.
 */
static void connect_step(struct side *s, struct one *q, int step)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = q->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = s->lid, .port_num = 1},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (step == 0)
		modify(s, q, &init,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	else if (step == 1)
		modify(s, q, &rtr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	else
		modify(s, q, &rts,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect_qp(struct side *s, struct one *q)
{
	int steps = s->kind == KIND_XRC_RECV ? 2 : 3;

	for (int step = 0; step < steps; step++)
		connect_step(s, q, step);
}

static void query(struct side *s, struct one *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = q->qp ? ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init)
			: ibv_query_xrc_rcv_qp(s->domain, q->qpn, &attr, IBV_QP_STATE, &init);

	if (err || attr.qp_state != (s->kind == KIND_XRC_RECV ? IBV_QPS_RTR : IBV_QPS_RTS)) {
		errno = err;
		die("cannot query a QP, or it is in state %d", attr.qp_state);
	}
}

/* Sends eight bytes from the QP to itself. The device looks the QP up for the doorbell, the packet
 * and the acknowledgement, the library for the completion. */
static void work(struct side *s, struct one *q)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->memory, .length = 8, .lkey = s->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = (uintptr_t)s->memory + 64,
						       .rkey = s->mr->rkey},
				   },
			   *bad;
	struct ibv_wc wc;
	int n;

	if (s->kind != KIND_RC)
		return;
	if (ibv_post_send(q->qp, &wr, &bad))
		die("cannot post");
	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status || wc.qp_num != q->qpn) {
		errno = EIO;
		die("a completion with status %d of QP 0x%x", wc.status, wc.qp_num);
	}
}

static void grow(struct side *s, struct one *q, unsigned int from, unsigned int to)
{
	for (; from < to; from++) {
		create(s, &q[from]);
		connect_qp(s, &q[from]);
	}
}

/* Destroys one of the QPs and creates another, SAMPLES times. Returns the times of each operation
 * and the CPU time of all. */
static void sample(struct side *s, struct one *q, unsigned int alive, double out[OPS], double *cpu)
{
	static double took[OPS][SAMPLES];
	double t[OPS + 1], began = now_us(CLOCK_PROCESS_CPUTIME_ID);
	int i, op;

	for (i = 0; i < SAMPLES; i++) {
		struct one *victim = &q[(unsigned int)rand() % alive];

		t[0] = now_us(CLOCK_MONOTONIC);
		destroy(s, victim);
		t[1] = now_us(CLOCK_MONOTONIC);
		create(s, victim);
		t[2] = now_us(CLOCK_MONOTONIC);
		connect_qp(s, victim);
		t[3] = now_us(CLOCK_MONOTONIC);
		query(s, victim);
		t[4] = now_us(CLOCK_MONOTONIC);
		work(s, &q[(unsigned int)rand() % alive]);
		t[5] = now_us(CLOCK_MONOTONIC);
		took[OP_DESTROY][i] = t[1] - t[0];
		took[OP_CREATE][i] = t[2] - t[1];
		took[OP_CONNECT][i] = t[3] - t[2];
		took[OP_QUERY][i] = t[4] - t[3];
		took[OP_WORK][i] = t[5] - t[4];
	}
	*cpu = (now_us(CLOCK_PROCESS_CPUTIME_ID) - began) / SAMPLES;
	for (op = 0; op < OPS; op++)
		out[op] = median(took[op], SAMPLES);
}

/* ---- queue pairs of other processes ---- */

struct other {
	int tell, hear;
};

static void __attribute__((noreturn))
other_main(enum kind kind, unsigned int most, int hear, int tell)
{
	struct one *q = calloc(most, sizeof(*q));
	struct side s = {0};
	unsigned int have = 0, want;

	if (!q)
		die("no memory");
	open_side(&s, kind);
	while (read(hear, &want, sizeof(want)) == sizeof(want)) {
		grow(&s, q, have, want);
		have = want;
		if (write(tell, &want, sizeof(want)) != sizeof(want))
			break;
	}
	_exit(0);
}

static struct other *start_others(enum kind kind, unsigned int processes, unsigned int most)
{
	struct other *o = calloc(processes, sizeof(*o));
	unsigned int i;
	int down[2], up[2];

	for (i = 0; o && i < processes; i++) {
		pid_t pid;

		if (pipe(down) < 0 || pipe(up) < 0)
			die("no pipe");
		pid = fork();
		if (pid < 0)
			die("cannot fork");
		if (!pid) {
			unsigned int k;

			close(down[1]);
			close(up[0]);
			for (k = 0; k < i; k++) {
				close(o[k].tell);
				close(o[k].hear);
			}
			other_main(kind, (most + processes - 1) / processes, down[0], up[1]);
		}
		close(down[0]);
		close(up[1]);
		o[i] = (struct other){.tell = down[1], .hear = up[0]};
	}
	return o;
}

static void grow_others(struct other *o, unsigned int processes, unsigned int total)
{
	unsigned int i, share, answer;

	for (i = 0; i < processes; i++) {
		share = total / processes + (i < total % processes);
		if (write(o[i].tell, &share, sizeof(share)) != sizeof(share))
			die("another process is gone");
	}
	for (i = 0; i < processes; i++)
		if (read(o[i].hear, &answer, sizeof(answer)) != sizeof(answer))
			die("another process is gone");
}

/* ---- the measurements ---- */

static void measure(enum kind kind, const unsigned int *point, int points, unsigned int processes)
{
	static const char *const name[] = {"RC", "XRC send", "XRC receive"};
	unsigned int most = point[points - 1], have = 0;
	struct other *others = processes ? start_others(kind, processes, most) : NULL;
	struct one *q = calloc(processes ? 1 : most, sizeof(*q));
	double op[OPS], cpu, began;
	struct side s = {0};
	int i;

	if (!q)
		die("no memory");
	open_side(&s, kind);
	if (processes)
		grow(&s, q, 0, 1);
	for (i = 0; i < points; i++) {
		unsigned int own = processes ? 1 : point[i];

		began = now_us(CLOCK_MONOTONIC);
		if (processes)
			grow_others(others, processes, point[i]);
		else
			grow(&s, q, have, point[i]);
		printf("alive\t%s\t%u\t%u\t%.3f\n", name[kind], processes, point[i],
		       (now_us(CLOCK_MONOTONIC) - began) / 1e6);
		wait_for_line();
		sample(&s, q, own, op, &cpu);
		printf("cost\t%s\t%u\t%u\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%u\t%d\n", name[kind],
		       processes, point[i], op[OP_CREATE], op[OP_CONNECT], op[OP_QUERY],
		       op[OP_WORK], op[OP_DESTROY], cpu, mappings(), SAMPLES);
		wait_for_line();
		have = point[i];
	}
	began = now_us(CLOCK_MONOTONIC);
	if (!processes)
		while (have)
			destroy(&s, &q[--have]);
	printf("end\t%s\t%u\t%u\t%.3f\n", name[kind], processes, most,
	       (now_us(CLOCK_MONOTONIC) - began) / 1e6);
	wait_for_line();
}

/*
 * What the change alone takes, with no care for what the program could notice: memory in use is
 * copied to shared memory, which is mapped over it, and back, and the shared memory is freed.
 * Microseconds.
 */
static void change_by_hand(char *at, size_t size, double *there, double *back)
{
	int fd = memfd_create("plain", 0);
	double t = now_us(CLOCK_MONOTONIC);
	char *shared;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die("no shared memory");
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("no shared memory");
	memcpy(shared, at, size);
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		die("cannot map over memory");
	*there = now_us(CLOCK_MONOTONIC) - t;
	t = now_us(CLOCK_MONOTONIC);
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		die("cannot map over memory");
	memcpy(at, shared, size);
	munmap(shared, size);
	close(fd);
	*back = now_us(CLOCK_MONOTONIC) - t;
}

static void measure_registration(size_t largest)
{
	double first[9], again[9], gone[9], there[9], back[9], t;
	struct side s = {0};
	struct ibv_mr *mr;
	size_t size;
	int i, reps;

	open_side(&s, KIND_RC);
	for (size = 4096; size <= largest; size *= size < (size_t)1 << 28 ? 16 : 4) {
		reps = size > (size_t)1 << 26 ? 3 : 9;
		for (i = 0; i < reps; i++) {
			char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (at == MAP_FAILED)
				die("no memory");
			t = now_us(CLOCK_MONOTONIC);
			mr = ibv_reg_mr(s.pd, at, size, IBV_ACCESS_LOCAL_WRITE);
			first[i] = now_us(CLOCK_MONOTONIC) - t;
			if (!mr || ibv_dereg_mr(mr))
				die("cannot register %zu bytes", size);
			t = now_us(CLOCK_MONOTONIC);
			mr = ibv_reg_mr(s.pd, at, size, IBV_ACCESS_LOCAL_WRITE);
			again[i] = now_us(CLOCK_MONOTONIC) - t;
			if (!mr)
				die("cannot register %zu bytes again", size);
			t = now_us(CLOCK_MONOTONIC);
			if (ibv_dereg_mr(mr))
				die("cannot deregister");
			gone[i] = now_us(CLOCK_MONOTONIC) - t;
			change_by_hand(at, size, &there[i], &back[i]);
			munmap(at, size);
		}
		printf("registered\t%zu\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", size, median(first, reps),
		       median(again, reps), median(gone, reps), median(there, reps),
		       median(back, reps));
		fflush(stdout);
	}
}

/* ---- commands of many clients at once ---- */

#define ROUNDS	    100 /* of each client */
#define REGISTERING ((size_t)64 << 20)

enum command { COMMAND_CREATE, COMMAND_MODIFY, COMMAND_QUERY, COMMAND_DESTROY, COMMANDS };
static const char *const command_name[] = {"create", "modify", "query", "destroy"};

struct crowd { /* shared by all processes */
	unsigned int ready, go, stop, samples[COMMANDS];
	/* Followed by most_samples microseconds for each command. */
};
static unsigned int most_samples;

static void note(struct crowd *c, double *all, enum command what, double since)
{
	unsigned int i = __atomic_fetch_add(&c->samples[what], 1, __ATOMIC_RELAXED);

	if (i < most_samples)
		all[what * most_samples + i] = now_us(CLOCK_MONOTONIC) - since;
}

static void join(struct crowd *c)
{
	__atomic_fetch_add(&c->ready, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&c->go, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* A client: its QPs come and go. */
static void come_and_go(struct crowd *c, double *all)
{
	struct side s = {0};
	struct one keep, q;
	double t;

	open_side(&s, KIND_RC);
	create(&s, &keep);
	join(c);
	for (int i = 0; i < ROUNDS; i++) {
		t = now_us(CLOCK_MONOTONIC);
		create(&s, &q);
		note(c, all, COMMAND_CREATE, t);
		for (int step = 0; step < 3; step++) {
			t = now_us(CLOCK_MONOTONIC);
			connect_step(&s, &q, step);
			note(c, all, COMMAND_MODIFY, t);
		}
		t = now_us(CLOCK_MONOTONIC);
		query(&s, &q);
		note(c, all, COMMAND_QUERY, t);
		t = now_us(CLOCK_MONOTONIC);
		destroy(&s, &q);
		note(c, all, COMMAND_DESTROY, t);
	}
}

/* Beside them: one that has much memory copied, or one that sends without a pause. */
static void register_much(struct crowd *c)
{
	struct side s = {0};
	char *at =
		mmap(NULL, REGISTERING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("no memory");
	memset(at, 1, REGISTERING);
	open_side(&s, KIND_RC);
	join(c);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		struct ibv_mr *mr = ibv_reg_mr(s.pd, at, REGISTERING, IBV_ACCESS_LOCAL_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			die("cannot register %zu bytes", REGISTERING);
	}
}

static void send_much(struct crowd *c)
{
	struct side s = {0};
	struct one q;

	open_side(&s, KIND_RC);
	create(&s, &q);
	connect_qp(&s, &q);
	join(c);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE))
		work(&s, &q);
}

static pid_t begin_one(struct crowd *c, double *all, unsigned int kind)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	if (pid)
		return pid;
	if (kind == 0)
		come_and_go(c, all);
	else if (kind == 1)
		register_much(c);
	else
		send_much(c);
	exit(0);
}

static void end_one(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("a process has failed");
}

static void measure_latency(const unsigned int count[3])
{
	const unsigned int processes = count[0] + count[1] + count[2];
	pid_t *pid = calloc(processes, sizeof(*pid));
	size_t size;
	struct crowd *c;
	unsigned int n = 0;
	double *all;

	most_samples = count[0] * ROUNDS * 3;
	size = sizeof(*c) + COMMANDS * most_samples * sizeof(double);
	c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!pid || c == MAP_FAILED)
		die("no memory");
	all = (double *)(void *)(c + 1);
	fflush(stdout);
	for (unsigned int kind = 0; kind < 3; kind++)
		for (unsigned int i = 0; i < count[kind]; i++)
			pid[n++] = begin_one(c, all, kind);
	while (__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE) < processes) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			die("a process has failed");
		usleep(1000);
	}
	__atomic_store_n(&c->go, 1, __ATOMIC_RELEASE);
	for (n = 0; n < count[0]; n++)
		end_one(pid[n]);
	__atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
	for (; n < processes; n++)
		end_one(pid[n]);
	for (unsigned int what = 0; what < COMMANDS; what++) {
		double *took = all + what * most_samples;
		unsigned int samples = c->samples[what];

		qsort(took, samples, sizeof(*took), by_value);
		printf("latency\t%u\t%u\t%u\t%s\t%.1f\t%.1f\t%.1f\n", count[0], count[1], count[2],
		       command_name[what], took[samples / 2], took[samples * 99 / 100],
		       took[samples - 1]);
	}
	free(pid);
	munmap(c, size);
}

int main(int argc, char **argv)
{
	unsigned int crowd[3] = {0};
	unsigned int point[MAX_POINTS] = {1, 10, 1000}, processes = 0;
	enum kind kind = KIND_RC;
	int i, points = 3;
	char *p;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--hold")) {
			hold = true;
		} else if (!strcmp(argv[i], "--registration") && i++) {
			measure_registration(strtoull(value, NULL, 10));
			return 0;
		} else if (!strcmp(argv[i], "--clients") && i++) {
			crowd[0] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--registering") && i++) {
			crowd[1] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--sending") && i++) {
			crowd[2] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--kind") && i++) {
			kind = !strcmp(value, "xrc-send")   ? KIND_XRC_SEND
			       : !strcmp(value, "xrc-recv") ? KIND_XRC_RECV
							    : KIND_RC;
		} else if (!strcmp(argv[i], "--processes") && i++) {
			processes = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--points") && i++) {
			for (points = 0, p = (char *)(uintptr_t)value; *p && points < MAX_POINTS;
			     p += *p == ',')
				point[points++] = (unsigned int)strtoul(p, &p, 10);
			if (!points || *p || !point[0])
				points = 0;
		} else {
			points = 0;
		}
	}
	for (i = 1; i < points; i++)
		if (point[i] < point[i - 1])
			points = 0;
	if (!points) {
		fprintf(stderr, "usage: qp_scale [--hold] [--kind rc|xrc-send|xrc-recv] [--points "
				"N,N,...]\n"
				"       [--processes P] | --registration LARGEST |\n"
				"       --clients N [--registering N] [--sending N]\n");
		return 2;
	}
	if (crowd[0]) {
		measure_latency(crowd);
		return 0;
	}
	measure(kind, point, points, processes);
	return 0;
}
