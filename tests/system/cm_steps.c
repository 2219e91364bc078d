// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections of which one end is killed, closed or stopped at each step: what the other end hears,
 * and that nothing is left. Each case of the tables runs two processes of this program, on two
 * hosts: A, the active end, and B, the passive one. They do what the case says, step by step. With
 * --steps KIND this is such a process: it reads steps from standard input, and answers each with a
 * line.
 *
 * cm_steps INSTANCE DIRECTORY patient|hasty|brief KIND...: the latter two run those cases in which
 * an end gives up, which is a matter of seconds if the instance's --cm-timeout is short. In the
 * others no end gives up, however slow the machine is. A kind is rc, xrc or ud, with IP addresses,
 * or rc-ib or ud-ib, with GIDs. SOFTHCA is the command.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#define PATIENCE_MS 60000
#define LINE	    64
#define PORT	    7471

/*
 * Words of a case: the end, what it does, and what must come of it (0 where nothing is said).
 *
 *	l listen	r resolve the address	o resolve the route	c connect	a accept	d disconnect
 *	wN.S wait for an event: its number and status		n no event is there
 *	! SIGKILL	- SIGSTOP	+ SIGCONT	?N until the instance has N channels
 *	x ends its ids and its channel, and goes on		v ^ the port of its host goes down, or up
 *
 * A case in which ends are killed, but not stopped, runs a second time, with x in place of !: the
 * other end hears the same.
 */
struct cm_case {
	const char *name, *steps;
};
static const struct cm_case connections[] = {
	/* What else a case is measured by. */
	{"nobody is killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Ad Bw10.0 Bd Aw10.0 Aw15.0 Bw15.0"},
	{"A is killed with an id", "Bl Ar A! ?1 Bn"},
	{"A is killed with a route", "Bl Ar Ao A! ?1 Bn"},
	{"A is killed, its request was not read", "Bl Ar Ao Ac A! ?1 Bw4.0 Ba22 Bn"},
	{"A is killed, its request was read", "Bl Ar Ao Ac Bw4.0 A! ?1 Ba22 Bn"},
	{"A is killed, it was accepted", "Bl Ar Ao Ac Bw4.0 Ba A! Bw8.28 Bn"},
	{"A is killed, it knows that it was accepted",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 A! Bw9.0 Bw10.0 Bd Bw15.0"},
	{"A is killed, the connection is established",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 A! Bw10.0 Bd Bw15.0"},
	{"A is killed after it has disconnected",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Ad A! Bw10.0 Bd Bw15.0"},
	{"A is killed after B has disconnected",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Bd Aw10.0 A! Bw10.0 Bw15.0"},
	{"B is killed, it listened", "Bl Ar Ao B! ?1 Ac Aw8.8"},
	{"B is killed, it has not read the request", "Bl Ar Ao Ac B! Aw8.28 An"},
	{"B is killed, it has read the request", "Bl Ar Ao Ac Bw4.0 B! Aw8.28 An"},
	{"B is killed, A does not know that it has accepted", "Bl Ar Ao Ac Bw4.0 Ba B! ?1 Aw6 An"},
	{"B is killed, A knows that it has accepted",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 B! Aw10.0 Ad Aw15.0"},
	{"B is killed, the connection is established",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 B! Aw10.0 Ad Aw15.0"},
	{"B is killed after it has disconnected",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Bd B! Aw10.0 Ad Aw15.0"},
	{"B is killed after A has disconnected",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Ad Bw10.0 B! Aw10.0 Aw15.0"},
	{"both are killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 A! B! ?0"},
	{"B is stopped and listens", "Bl B- Ar Ao Ac An B+ Bw4.0 Ba Aw9.0 Bw9.0"},
	{"B is stopped and never reads the request", "Bl B- Ar Ao Ac Aw7.-110 B+ Bw4.0 Ba22"},
	{"B is stopped and has read the request", "Bl Ar Ao Ac Bw4.0 B- Aw7.-110 B+ Ba22"},
	{"A is stopped and does not know that it was accepted",
	 "Bl Ar Ao Ac Bw4.0 A- Ba Bw7.-110 A+ Aw6"},
	{"A is stopped for a while",
	 "Bl Ar Ao Ac Bw4.0 A- A+ Ba Aw9.0 A- Bw9.0 Bn A+ Ad Bw10.0 Bd Aw10.0"},
	{"B is stopped and A disconnects",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 B- Ad Aw10.-110 B+ Bw10.0 Bd"},
	{"A is stopped and B disconnects",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 A- Bd Bw10.-110 A+ Aw10.0 Ad"},
	{"A is stopped and killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 A- A! Bw10.0 Bd Bw15.0"},
	{"B is stopped and killed", "Bl Ar Ao Ac B- B! Aw8.28"},
	{"A's port is down, and up again",
	 "Bl Ar Ao Av Ac Aw7.-110 Bn A^ Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0"},
	{"B's port is down, and up again",
	 "Bl Ar Ao Bv Ac Aw7.-110 Bn B^ Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0"},
	{"B's port is down for a while, the connection is established",
	 "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 Bw9.0 Bv An Bn B^ An Bn Ad Bw10.0 Bd Aw10.0"},
	{NULL, NULL},
};

/*
 * Who asks for a UD QP gets an answer, and that is all: neither end hears of what becomes of the
 * other afterwards.
 */
static const struct cm_case questions[] = {
	{"nobody is killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 An Bn"},
	{"A is killed with an id", "Bl Ar A! ?1 Bn"},
	{"A is killed with a route", "Bl Ar Ao A! ?1 Bn"},
	{"A is killed, its question was not read", "Bl Ar Ao Ac A! ?1 Bw4.0 Ba Bn"},
	{"A is killed, its question was read", "Bl Ar Ao Ac Bw4.0 A! ?1 Ba Bn"},
	{"A is killed, its question was answered", "Bl Ar Ao Ac Bw4.0 Ba A! ?1 Bn"},
	{"A is killed, it knows the answer", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 A! ?1 Bn"},
	{"B is killed, it listened", "Bl Ar Ao B! ?1 Ac Aw7.1 An"},
	{"B is killed, it has not read the question", "Bl Ar Ao Ac B! Aw7.2 An"},
	{"B is killed, it has read the question", "Bl Ar Ao Ac Bw4.0 B! Aw7.2 An"},
	{"B is killed, A does not know its answer", "Bl Ar Ao Ac Bw4.0 Ba B! ?1 Aw9.0 An"},
	{"B is killed, A knows its answer", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 B! ?1 An"},
	{"both are killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 A! B! ?0"},
	{"B is stopped and listens", "Bl B- Ar Ao Ac An B+ Bw4.0 Ba Aw9.0 An"},
	{"B is stopped and never reads the question", "Bl B- Ar Ao Ac Aw7.-110 B+ Bw4.0 Ba An"},
	{"B is stopped and has read the question", "Bl Ar Ao Ac Bw4.0 B- Aw7.-110 B+ Ba An"},
	{"A is stopped for a while", "Bl Ar Ao Ac Bw4.0 A- Ba Bn A+ Aw9.0 An"},
	{"A is stopped and killed", "Bl Ar Ao Ac Bw4.0 Ba Aw9.0 A- A! ?1 Bn"},
	{"B is stopped and killed", "Bl Ar Ao Ac B- B! Aw7.2"},
	{"A's port is down, and up again", "Bl Ar Ao Av Ac Aw7.-110 Bn A^ Ar Ao Ac Bw4.0 Ba Aw9.0"},
	{"B's port is down, and up again", "Bl Ar Ao Bv Ac Aw7.-110 Bn B^ Ar Ao Ac Bw4.0 Ba Aw9.0"},
	{NULL, NULL},
};

static const struct kind {
	const char *name;
	const struct cm_case *cases;
	enum rdma_port_space ps;
	int active_type, passive_type; /* of the QP */
	bool gids;
} kinds[] = {
	{"rc", connections, RDMA_PS_TCP, IBV_QPT_RC, IBV_QPT_RC, false},
	{"rc-ib", connections, RDMA_PS_TCP, IBV_QPT_RC, IBV_QPT_RC, true},
	{"xrc", connections, RDMA_PS_IB, RDMA_XRC_SEND, RDMA_XRC_RECV, false},
	{"ud", questions, RDMA_PS_UDP, IBV_QPT_UD, IBV_QPT_UD, false},
	{"ud-ib", questions, RDMA_PS_UDP, IBV_QPT_UD, IBV_QPT_UD, true},
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	exit(2);
}

/* ---- one end ---- */

static const struct kind *kind;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *own, *peer; /* peer: of the connection */

/* The library keeps some events to itself: the channel is readable, and then there is none. */
static int wait_for(int ms, struct rdma_cm_event **e)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	*e = NULL;
	while (poll(&p, 1, ms) == 1) {
		if (!rdma_get_cm_event(channel, e))
			return 0;
		if (errno != EAGAIN)
			return errno;
	}
	return 0;
}

/* Takes the event that a step is to end with. */
static int ended(int failed, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *e;
	int err = failed ? errno : wait_for(PATIENCE_MS, &e);

	if (err || !e)
		return err ? err : ETIMEDOUT;
	err = e->event == wanted ? 0 : 1000 + (int)e->event;
	rdma_ack_cm_event(e);
	return err;
}

static int make_qp(struct rdma_cm_id *id, int type)
{
	bool xrc = type == RDMA_XRC_SEND || type == RDMA_XRC_RECV;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1,
			.max_recv_wr = !xrc,
			.max_send_sge = 1,
			.max_recv_sge = !xrc},
		.qp_type = (enum ibv_qp_type)type,
	};

	return rdma_create_qp(id, NULL, &attr) ? errno : 0;
}

/*
 * An id of XRC comes with an address, by rdma_create_ep(), which resolves it and its route. 0 or
 * errno.
 */
static int make_xrc(const char *node, const char *service, int flags, int type)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags, .ai_qp_type = type, .ai_port_space = RDMA_PS_IB};
	struct rdma_addrinfo *res;
	int err;

	if (rdma_getaddrinfo(node, service, &hints, &res))
		return errno ? errno : EINVAL;
	err = rdma_create_ep(&own, res, NULL, NULL) ? errno : 0;
	/* Kernels of OFED do not have that port space. */
	if (err == EPROTONOSUPPORT) {
		res->ai_port_space = RDMA_PS_TCP;
		err = rdma_create_ep(&own, res, NULL, NULL) ? errno : 0;
	}
	rdma_freeaddrinfo(res);
	return err ? err : rdma_migrate_id(own, channel) ? errno : 0;
}

static const char host0[] = "127.128.0.1";

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_ib ib;
};

/* The GID is a port's of host 0; or 0, which is any. */
static void by_gid(union address *a, const union ibv_gid *gid)
{
	memset(a, 0, sizeof(*a));
	a->ib.sib_family = AF_IB;
	a->ib.sib_pkey = htons(0xffff);
	if (gid)
		memcpy(&a->ib.sib_addr, gid, sizeof(a->ib.sib_addr));
	a->ib.sib_sid = htobe64(((uint64_t)kind->ps << 16) + PORT);
	a->ib.sib_sid_mask = ~0ULL;
}

static int resolve(const union address *a)
{
	int err = rdma_create_id(channel, &own, NULL, kind->ps) ||
		  rdma_resolve_addr(own, NULL, (struct sockaddr *)&a->any, 2000);

	return ended(err, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static int do_listen(void)
{
	union address a = {.in = {.sin_family = AF_INET, .sin_port = htons(PORT)}};
	int err;

	if (kind->passive_type == RDMA_XRC_RECV) {
		err = make_xrc(NULL, "7471", RAI_PASSIVE, kind->passive_type);
		return err ? err : rdma_listen(own, 4) ? errno : 0;
	}
	if (kind->gids)
		by_gid(&a, NULL);
	err = rdma_create_id(channel, &own, NULL, kind->ps) || rdma_bind_addr(own, &a.any) ||
	      rdma_listen(own, 4);
	return err ? errno : 0;
}

static int do_resolve(void)
{
	union address a = {.in = {.sin_family = AF_INET, .sin_port = htons(PORT)}};
	union ibv_gid gid;
	int err;

	inet_pton(AF_INET, host0, &a.in.sin_addr);
	err = kind->active_type == RDMA_XRC_SEND ? make_xrc(host0, "7471", 0, RDMA_XRC_SEND)
						 : resolve(&a);
	if (!err && kind->gids) {
		/* The IP address has led to the GID. */
		gid = own->route.addr.addr.ibaddr.dgid;
		err = rdma_destroy_id(own) ? errno : 0;
		by_gid(&a, &gid);
		if (!err)
			err = resolve(&a);
	}
	peer = own;
	return err;
}

static int do_end(void)
{
	struct rdma_cm_id *ids[] = {own, peer == own ? NULL : peer};
	int err = 0;

	for (int i = 0; i < 2; i++) {
		if (!ids[i])
			continue;
		if (ids[i]->qp)
			rdma_destroy_qp(ids[i]);
		if (rdma_destroy_id(ids[i]))
			err = errno;
	}
	own = peer = NULL;
	rdma_destroy_event_channel(channel);
	channel = NULL;
	return err;
}

static int do_step(char step)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	int err;

	switch (step) {
	case 'l':
		return do_listen();
	case 'r':
		return do_resolve();
	case 'o':
		if (kind->active_type == RDMA_XRC_SEND)
			return 0;
		return ended(rdma_resolve_route(own, 2000), RDMA_CM_EVENT_ROUTE_RESOLVED);
	case 'c':
		err = make_qp(own, kind->active_type);
		return err ? err : rdma_connect(own, &param) ? errno : 0;
	case 'a':
		err = make_qp(peer, kind->passive_type);
		return err ? err : rdma_accept(peer, &param) ? errno : 0;
	case 'd':
		return rdma_disconnect(peer) ? errno : 0;
	case 'x':
		return do_end();
	}
	return ENOSYS;
}

static void tell_event(int ms)
{
	struct rdma_cm_event *e;
	int err = wait_for(ms, &e);

	if (err || !e) {
		printf(err ? "error %d\n" : "none\n", err);
		return;
	}
	printf("%d.%d\n", (int)e->event, e->status);
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		peer = e->id;
	rdma_ack_cm_event(e);
}

/* Ends as a process that is killed ends: the kernel closes what it has open. */
static int one_end(void)
{
	char step;

	channel = rdma_create_event_channel();
	if (channel)
		fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	printf("%d\n", channel ? 0 : errno);
	fflush(stdout);
	while (read(STDIN_FILENO, &step, 1) == 1) {
		if (step == 'w' || step == 'n')
			tell_event(step == 'w' ? PATIENCE_MS : 0);
		else
			printf("%d\n", do_step(step));
		fflush(stdout);
	}
	return 0;
}

/* ---- both ends ---- */

struct end {
	pid_t pid;
	int to;
	FILE *from;
};
static const char *program, *instance;
static bool failed;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	failed = true;
}

static bool answers(struct end *e, const char *word, const char *wanted)
{
	size_t len = strlen(wanted);
	char line[LINE] = "";

	if (!fgets(line, sizeof(line), e->from))
		strcpy(line, "nothing");
	line[strcspn(line, "\n")] = '\0';
	/* A status that is not said is any. */
	if (!strcmp(line, wanted) || (!strncmp(line, wanted, len) && line[len] == '.'))
		return true;
	say("%s: %s instead of %s", word, line, wanted);
	return false;
}

static void begin(struct end *e, const char *host)
{
	int in[2], out[2];

	if (pipe(in) || pipe(out))
		exit(1);
	e->pid = fork();
	if (!e->pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		for (int i = 0; i < 2; i++) {
			close(in[i]);
			close(out[i]);
		}
		setenv("SOFTHCA_HOST", host, 1);
		execl(program, program, "--steps", kind->name, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	e->to = in[1];
	e->from = fdopen(out[0], "r");
	if (e->pid < 0 || !e->from)
		exit(1);
	(void)answers(e, "an end begins", "0");
}

static void end_of(struct end *e)
{
	if (e->pid) {
		kill(e->pid, SIGKILL);
		waitpid(e->pid, NULL, 0);
	}
	e->pid = 0;
}

/* What `softhca show` says, in one line. */
static void show(char *text, size_t room)
{
	char command[4200];
	size_t n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "LD_PRELOAD= '%s' show --json '%s' | tr -d ' \\n'",
		 getenv("SOFTHCA"), instance);
	f = popen(command, "r");
	if (f)
		n = fread(text, 1, room - 1, f);
	text[n] = '\0';
	if (f)
		pclose(f);
}

static char shown[1 << 20];

/* Waits until it says so. */
static bool shows(const char *wanted[], unsigned int n)
{
	unsigned int found = 0;

	for (int ms = 0; ms < PATIENCE_MS && found < n; ms += 20) {
		show(shown, sizeof(shown));
		for (found = 0; found < n && strstr(shown, wanted[found]); found++)
			;
		if (found < n)
			usleep(20000);
	}
	if (found < n)
		say("softhca show never says %s: %.3000s", wanted[found], shown);
	return found == n;
}

/* In what shows() has waited for. */
static bool shows_no(const char *what)
{
	const char *at = strstr(shown, what);

	if (at)
		say("softhca show says %.200s", at);
	return !at;
}

static unsigned int entries(const char *dir, const char *name)
{
	char path[4200];
	unsigned int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static bool change_port(const char *host, const char *how)
{
	char command[4200];

	snprintf(command, sizeof(command), "LD_PRELOAD= '%s' port '%s' --host %s mlx4_0:1 %s",
		 getenv("SOFTHCA"), instance, host, how);
	return !system(command);
}

/* The word has a letter for the end, and one for what it does. */
static bool step(struct end end[2], const char *word)
{
	struct end *e = &end[word[0] == 'B'];
	char count[32];
	const char *wanted[] = {count};

	switch (word[0] == '?' ? '?' : word[1]) {
	case '?':
		snprintf(count, sizeof(count), "\"channels\":%s,", word + 1);
		return shows(wanted, 1);
	case '!':
		end_of(e);
		return true;
	case '-':
		return !kill(e->pid, SIGSTOP);
	case '+':
		return !kill(e->pid, SIGCONT);
	case 'v':
	case '^':
		return change_port(word[0] == 'B' ? "0" : "1", word[1] == 'v' ? "down" : "up");
	}
	if (write(e->to, word + 1, 1) != 1)
		return false;
	return answers(e, word, word[1] == 'n' ? "none" : word[2] ? word + 2 : "0");
}

static bool same_files(const char *dir, const unsigned int files[3])
{
	return entries(dir, "channels") == files[0] && entries(dir, "events") == files[1] &&
	       entries(dir, "files") == files[2];
}

static bool no_objects(void)
{
	return shows_no("\"qps\":[{") && shows_no("\"cqs\":[{") && shows_no("\"xrc_domains\":[{");
}

/*
 * The ends go on without ids: what the ids had went with them, and did not wait for the processes'
 * end. But for the CQs of a library that leaves them, as the distribution's does those of XRC.
 */
static bool nothing_of_ids(void)
{
	return getenv("LEAVES_CQS") ? shows_no("\"qps\":[{") && shows_no("\"xrc_domains\":[{")
				    : no_objects();
}

static bool without_ids(struct end end[2], const char *steps)
{
	static const char *nothing[] = {"\"channels\":0,\"ids\":0,"};

	if (!strstr(steps, "Ax") && !step(end, "Ax"))
		return false;
	if (!strstr(steps, "Bx") && !step(end, "Bx"))
		return false;
	return shows(nothing, 1) && nothing_of_ids();
}

static bool run(const char *dir, const char *steps, unsigned int files[3])
{
	static const char *nothing[] = {"\"channels\":0,\"ids\":0,", "\"connection_channels\":[]",
					"\"pool_pages_used\":0,", "\"processes\":[]"};
	struct end end[2];
	char copy[200], *word, *at = NULL;

	failed = false;
	begin(&end[0], "1");
	begin(&end[1], "0");
	snprintf(copy, sizeof(copy), "%s", steps);
	for (word = strtok_r(copy, " ", &at); word && !failed; word = strtok_r(NULL, " ", &at))
		if (!step(end, word) && !failed)
			say("%s: %s", word, strerror(errno));
	if (!failed && strchr(steps, 'x'))
		(void)without_ids(end, steps);
	for (int i = 0; i < 2; i++) {
		end_of(&end[i]);
		close(end[i].to);
		fclose(end[i].from);
	}
	/* For the next case. */
	if (failed && strchr(steps, 'v') && !(change_port("0", "up") && change_port("1", "up")))
		say("a port stays down");
	if (failed || !shows(nothing, 4) || !no_objects())
		return false;
	for (int ms = 0; ms < PATIENCE_MS && !same_files(dir, files); ms += 20)
		usleep(20000);
	if (!same_files(dir, files))
		say("files are left in %s", dir);
	return !failed;
}

/*
 * Of the instance that the case is for: which peers are waited for until they have not answered for
 * long enough.
 */
static const char *patience(const char *steps)
{
	/* A request that has arrived is waited for 16 times as long as anything else. */
	if (strstr(steps, "Aw7.-110"))
		return "brief";
	return strstr(steps, "-110") ? "hasty" : "patient";
}

/* As one in which the ends that are killed end their ids instead. */
static bool closed(const char *steps, char *copy, size_t room)
{
	if (!strchr(steps, '!') || strchr(steps, '+') || strstr(steps, "- "))
		return false;
	snprintf(copy, room, "%s", steps);
	for (; (copy = strchr(copy, '!')); copy++)
		*copy = 'x';
	return true;
}

static unsigned int run_kind(const char *dir, const char *how, unsigned int files[3])
{
	unsigned int bad = 0;
	char other[200];

	for (const struct cm_case *c = kind->cases; c->name; c++) {
		if (strcmp(how, patience(c->steps)))
			continue;
		if (!run(dir, c->steps, files)) {
			printf("%s: %s: %s\n", kind->name, c->name, c->steps);
			bad++;
		}
		if (closed(c->steps, other, sizeof(other)) && !run(dir, other, files)) {
			printf("%s: %s, but it ends its ids: %s\n", kind->name, c->name, other);
			bad++;
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	unsigned int files[3], bad = 0;

	if (argc == 3 && !strcmp(argv[1], "--steps")) {
		kind = kind_of(argv[2]);
		return one_end();
	}
	if (argc < 5)
		return 2;
	program = argv[0];
	instance = argv[1];
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IONBF, 0);
	files[0] = entries(argv[2], "channels");
	files[1] = entries(argv[2], "events");
	files[2] = entries(argv[2], "files");
	for (int i = 4; i < argc; i++) {
		kind = kind_of(argv[i]);
		bad += run_kind(argv[2], argv[3], files);
	}
	return bad != 0;
}
