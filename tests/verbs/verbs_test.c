// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See verbs_test.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "softhca/protocol.h"
#include "verbs_test.h"

struct board *board;
static unsigned int seed;
static bool seeded;

static void say_seed(void)
{
	if (seeded)
		fprintf(stderr, "to repeat it: SEED=%u\n", seed);
}

void check_failed(const char *file, int line, const char *what, int err)
{
	fprintf(stderr, "%s:%d: process %d: not so: %s (errno %d, %s)\n", file, line, (int)getpid(),
		what, err, strerror(err));
	say_seed();
	exit(1);
}

void check_equal(const char *file, int line, const char *a, const char *b, long long va,
		 long long vb)
{
	if (va == vb)
		return;
	fprintf(stderr, "%s:%d: process %d: %s is %lld, %s is %lld\n", file, line, (int)getpid(), a,
		va, b, vb);
	say_seed();
	exit(1);
}

/* ---- processes ---- */

unsigned int test_seconds(void)
{
	const char *wanted = getenv("TEST_SECONDS");
	int seconds = wanted ? atoi(wanted) : 0;

	return seconds > 0 ? seconds : 150;
}

void test_begin(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(board != MAP_FAILED);
	alarm(test_seconds());
}

void test_seed(void)
{
	const char *wanted = getenv("SEED");

	seed = wanted ? (unsigned int)strtoul(wanted, NULL, 10) : (unsigned int)getpid();
	seeded = true;
	srandom(seed);
	/* A test that is ended by its alarm prints nothing more. */
	printf("# SEED=%u\n", seed);
	fflush(stdout);
}

pid_t spawn(void (*fn)(int arg), int arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	alarm(test_seconds());
	fn(arg);
	exit(0);
}

void join(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "process %d was ended by signal %d (%s)\n", (int)pid,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void join_killed(pid_t pid, int signal)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

void on_one_processor(void)
{
	cpu_set_t all, one;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

void meet(uint32_t n)
{
	uint32_t generation = __atomic_load_n(&board->generation, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_ACQ_REL) == n) {
		__atomic_store_n(&board->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&board->generation, generation + 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&board->generation, __ATOMIC_ACQUIRE) == generation)
		sleep_ms(1);
}

void post(unsigned int word, uint64_t value)
{
	__atomic_store_n(&board->word[word], value, __ATOMIC_RELEASE);
}

void await(unsigned int word, uint64_t value)
{
	while (__atomic_load_n(&board->word[word], __ATOMIC_ACQUIRE) < value)
		sleep_ms(1);
}

/* ---- the emulator ---- */

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fprintf(stderr, "%s is not in the environment: run this with run-matrix\n", name);
	CHECK(value);
	return value;
}

void port_change(const char *fmt, ...)
{
	char change[64], command[4096];
	const char *host = getenv("SOFTHCA_HOST");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(change, sizeof(change), fmt, ap);
	va_end(ap);
	snprintf(command, sizeof(command), "'%s' port '%s' --host %s mlx4_0:1 %s",
		 environment("SOFTHCA"), environment("SOFTHCA_INSTANCE"), host ? host : "0",
		 change);
	CHECK_EQ(system(command), 0);
}

void fabric_fault(const char *what)
{
	char command[4096];

	snprintf(command, sizeof(command), "'%s' fault '%s' %s", environment("SOFTHCA"),
		 environment("SOFTHCA_INSTANCE"), what);
	CHECK_EQ(system(command), 0);
}

/*
 * Sends a request. The reply has len bytes, and may have a descriptor, which is returned; else -1.
 */
static int asked(int control, const void *request, size_t request_len, void *reply, size_t len)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} with;
	struct iovec iov = {.iov_base = reply, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = with.space,
			     .msg_controllen = sizeof(with.space)};
	struct cmsghdr *c;
	ssize_t got;
	int fd = -1;

	CHECK_EQ(send(control, request, request_len, MSG_NOSIGNAL), request_len);
	do
		got = recvmsg(control, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	CHECK_EQ(got, len);
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/*
 * What `softhca show --json` prints. Tests ask hundreds of times, and each time a shell and the
 * command would begin, with the shim in both: that takes most of such a test's time.
 */
static FILE *show(void)
{
	const struct sh_hello hello = {
		.type = SH_MSG_HELLO, .version = SH_WIRE_VERSION, .pid = (uint32_t)getpid()};
	const struct sh_show request = {.type = SH_MSG_SHOW};
	struct sh_hello_reply greeted = {.error = -1};
	struct sh_status status = {.error = -1};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int dir = open(environment("SOFTHCA_INSTANCE"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), text;
	FILE *f;

	CHECK(dir >= 0 && control >= 0);
	/* A path in it may be longer than an address of a socket. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/thread-self/fd/%d/control", dir);
	CHECK_EQ(connect(control, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK_EQ(asked(control, &hello, sizeof(hello), &greeted, sizeof(greeted)), -1);
	CHECK_EQ(greeted.error, 0);
	text = asked(control, &request, sizeof(request), &status, sizeof(status));
	CHECK_EQ(status.error, 0);
	CHECK(text >= 0);
	close(control);
	close(dir);
	f = fdopen(text, "r");
	CHECK(f);
	return f;
}

/*
 * The first value of `name` behind a line that has one of the words, and before one that has the
 * other.
 */
static uint64_t shown(const char *name, const char *from, const char *or_from, const char *until)
{
	char line[4096], key[64];
	uint64_t value = UINT64_MAX;
	bool counters = false;
	FILE *f = show();

	snprintf(key, sizeof(key), "\"%s\":", name);
	while (fgets(line, sizeof(line), f)) {
		char *at = strstr(line, key);

		if (strstr(line, from) || strstr(line, or_from))
			counters = true;
		else if (strstr(line, until))
			counters = false;
		if (at && counters && value == UINT64_MAX)
			value = strtoull(at + strlen(key), NULL, 10);
	}
	fclose(f);
	CHECK(value != UINT64_MAX);
	return value;
}

uint64_t hca_counter(const char *name)
{
	/* The daemon's and the HCA's. Ports and QPs between them have some of the names, too. */
	return shown(name, "\"daemon\":", "\"counters\":", "\"processes\":");
}

uint64_t qp_counter(uint32_t qpn, const char *name)
{
	char from[40];

	snprintf(from, sizeof(from), "\"qpn\": %" PRIu32 ",", qpn);
	return shown(name, from, from, "}");
}

/* ---- verbs ---- */

struct ibv_context *open_device(unsigned int number)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *context;

	CHECK(list);
	CHECK((int)number < n);
	context = ibv_open_device(list[number]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

void side_open(struct side *s, size_t size, int cqe, int flags)
{
	struct ibv_port_attr port;

	memset(s, 0, sizeof(*s));
	s->context = open_device(0);
	CHECK_EQ(ibv_query_port(s->context, 1, &port), 0);
	s->lid = port.lid;
	s->pd = ibv_alloc_pd(s->context);
	CHECK(s->pd);
	if (flags & SIDE_CHANNEL) {
		s->channel = ibv_create_comp_channel(s->context);
		CHECK(s->channel);
	}
	s->rcq = ibv_create_cq(s->context, cqe, s, s->channel, 0);
	CHECK(s->rcq);
	s->scq = flags & SIDE_ONE_CQ ? s->rcq : ibv_create_cq(s->context, cqe, s, NULL, 0);
	CHECK(s->scq);
	s->size = (size + 4095) & ~4095UL;
	s->buf = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->buf != MAP_FAILED);
	s->mr = ibv_reg_mr(s->pd, s->buf, s->size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(s->mr);
}

void side_close(struct side *s)
{
	CHECK_EQ(ibv_dereg_mr(s->mr), 0);
	if (s->scq != s->rcq)
		CHECK_EQ(ibv_destroy_cq(s->scq), 0);
	CHECK_EQ(ibv_destroy_cq(s->rcq), 0);
	if (s->channel)
		CHECK_EQ(ibv_destroy_comp_channel(s->channel), 0);
	CHECK_EQ(ibv_dealloc_pd(s->pd), 0);
	CHECK_EQ(ibv_close_device(s->context), 0);
	munmap(s->buf, s->size);
}

struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, struct ibv_srq *srq,
		       struct ibv_xrc_domain *domain, const struct ibv_qp_cap *cap)
{
	static const struct ibv_qp_cap usual = {
		.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4};
	struct ibv_qp_init_attr attr = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.srq = srq,
		.qp_type = type,
		.xrc_domain = domain,
		.cap = cap ? *cap : usual,
	};
	struct ibv_qp *qp;

	if (srq || type == IBV_QPT_XRC)
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	qp = ibv_create_qp(s->pd, &attr);
	CHECK(qp);
	return qp;
}

void link_defaults(struct link *l, uint16_t dlid, uint32_t dest_qpn)
{
	*l = (struct link){
		.dlid = dlid,
		.dest_qpn = dest_qpn,
		.psn_mine = 0x123456,
		.psn_theirs = 0x123456,
		.mtu = IBV_MTU_1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.rd_atomic = 4,
		.dest_rd_atomic = 4,
		.port = 1,
		.access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
}

int to_init(struct ibv_qp *qp, const struct link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = l->port,
		.qp_access_flags = l->access,
		.qkey = 0x11111111,
	};

	return ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int to_rtr(struct ibv_qp *qp, const struct link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = l->mtu,
		.dest_qp_num = l->dest_qpn,
		.rq_psn = l->psn_theirs,
		.max_dest_rd_atomic = l->dest_rd_atomic,
		.min_rnr_timer = l->min_rnr_timer,
		.ah_attr = {.dlid = l->dlid, .port_num = l->port},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_UD)
		mask = IBV_QP_STATE;
	else if (qp->qp_type != IBV_QPT_UC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int to_rts(struct ibv_qp *qp, const struct link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = l->timeout,
		.retry_cnt = l->retry_cnt,
		.rnr_retry = l->rnr_retry,
		.sq_psn = l->psn_mine,
		.max_rd_atomic = l->rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_UC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

void connect_qp(struct ibv_qp *qp, const struct link *l)
{
	CHECK_EQ(to_init(qp, l), 0);
	CHECK_EQ(to_rtr(qp, l), 0);
	CHECK_EQ(to_rts(qp, l), 0);
}

int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state real_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void connect_pair_as(struct side *s, struct ibv_qp *a, struct ibv_qp *b, const struct link *like)
{
	struct link l = *like;

	l.dlid = s->lid;
	l.dest_qpn = b->qp_num;
	if (a == b) {
		connect_qp(a, &l);
		return;
	}
	CHECK_EQ(to_init(a, &l), 0);
	CHECK_EQ(to_rtr(a, &l), 0);
	l.dest_qpn = a->qp_num;
	connect_qp(b, &l);
	CHECK_EQ(to_rts(a, &l), 0);
}

void connect_pair(struct side *s, struct ibv_qp *a, struct ibv_qp *b)
{
	struct link l;

	link_defaults(&l, 0, 0);
	connect_pair_as(s, a, b, &l);
}

static struct ibv_sge sge_of(struct side *s, size_t off, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)s->buf + off, .length = len, .lkey = s->mr->lkey};
}

int post_recv1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

int post_srq1(struct ibv_srq *srq, struct side *s, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

int post_send1(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len,
	       int flags)
{
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_send_wr wr =
				   {
					   .wr_id = wr_id,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = flags,
				   },
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

int post_rdma1(struct ibv_qp *qp, struct side *s, enum ibv_wr_opcode opcode, uint64_t wr_id,
	       size_t off, uint32_t len, uint64_t raddr, uint32_t rkey, int flags)
{
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_send_wr wr =
				   {
					   .wr_id = wr_id,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = flags,
					   .wr.rdma = {.remote_addr = raddr, .rkey = rkey},
				   },
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

struct ibv_wc next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
	} while (!n);
	return wc;
}

struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	if (wc.status != status)
		fprintf(stderr, "wr_id %#llx completed with \"%s\" (vendor %#x)\n",
			(unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err);
	CHECK_EQ(wc.status, status);
	CHECK_EQ(wc.wr_id, wr_id);
	return wc;
}

void expect_silence(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i <= ms; i++) {
		CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
		sleep_ms(1);
	}
}

bool event_pending(struct ibv_context *context)
{
	struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static bool is_established(const struct ibv_async_event *event)
{
	return ((unsigned int)event->event_type & ~IBV_XRC_QP_EVENT_FLAG) == IBV_EVENT_COMM_EST;
}

void skip_established(struct ibv_context *context)
{
	struct ibv_async_event event;

	CHECK(event_pending(context));
	CHECK_EQ(ibv_get_async_event(context, &event), 0);
	ibv_ack_async_event(&event);
	CHECK(is_established(&event));
}

struct ibv_async_event expect_event(struct ibv_context *context, int type)
{
	struct ibv_async_event event;

	do {
		CHECK_EQ(ibv_get_async_event(context, &event), 0);
		ibv_ack_async_event(&event);
	} while ((int)event.event_type != type && is_established(&event));
	CHECK_EQ((unsigned int)event.event_type, (unsigned int)type);
	return event;
}

/* Byte i of the pattern of a seed: cheap, and different for all messages of a test. */
static uint8_t pattern(size_t i, uint64_t seed)
{
	uint64_t x = (seed * UINT64_C(0x9e3779b97f4a7c15)) ^ (i >> 3);

	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 32;
	return (uint8_t)(x >> (i % 4 * 8));
}

void fill(void *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = pattern(i, seed);
}

long differs(const void *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)buf)[i] != pattern(i, seed))
			return (long)i;
	return -1;
}

uint64_t address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long n = 0;

	CHECK(f);
	CHECK_EQ(fscanf(f, "%lu", &n), 1);
	fclose(f);
	return n * (uint64_t)sysconf(_SC_PAGESIZE);
}

void send_with_event(struct side *s, struct ibv_qp *from, struct ibv_qp *to, uint64_t id)
{
	struct ibv_cq *cq;
	void *cookie;

	CHECK_EQ(ibv_req_notify_cq(s->rcq, 0), 0);
	fill(s->buf, 4096, id);
	CHECK_EQ(post_recv1(to, s, id, 4096, 4096), 0);
	CHECK_EQ(post_send1(from, s, id, 0, 4096, IBV_SEND_SIGNALED), 0);
	expect_wc(s->scq, id, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_get_cq_event(s->channel, &cq, &cookie), 0);
	ibv_ack_cq_events(cq, 1);
	expect_wc(s->rcq, id, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s->buf + 4096, 4096, id), -1);
}
