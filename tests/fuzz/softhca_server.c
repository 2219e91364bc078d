// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The control socket of softhca's daemon: connections; messages in any order and of any length,
 * with unexpected descriptors; and other events of the daemon in between. The daemon's functions
 * run here, one event after the other. Its loop does not, nor does any thread. After each input all
 * clients are gone, and nothing may be left.
 *
 *	BYTE	OF A RECORD
 *	0	what happens (enum what)
 *	1	bits 0-1 which connection; bit 2 replies stay unread; bit 3 a descriptor is attached, bit 4 another;
 *		bit 5 numbers of contexts are as they stand, not those that there are
 *	2	bytes that follow
 *	3..	what they are: see the functions
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/fault_rule.h"
#include "softhca/kernel/aside.h"
#include "softhca/kernel/faults.h"
#include "softhca/kernel/files.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/objects.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca/kernel/uverbs/uverbs.h"
#include "user.h"

#define CONNS 4
/* contexts, processes: more than an input has records that make one */
#define MOST	1024
#define OUT	(ARENA + 14 * 4096) /* responses */
#define QUEUES	(ARENA + 4096)	    /* seven pages of buffers, and one of doorbell records */
#define RECORDS (ARENA + 8 * 4096)
#define WITNESS (ARENA + 15 * 4096)

enum { UNREAD = 4, ONE_FD = 8, TWO_FDS = 16, AS_IT_IS = 32 };
enum what {
	CONNECT,
	CLOSE,
	HELLO,
	RAW,
	HUGE_ONE,
	TYPED,
	COMMAND,
	CLOSE_FILE,
	TICK,
	EVENT,
	DEAF_CLIENT,
	WHATS
};

static struct kernel kernel;
static struct server *server;
static char base[64];
static int client[CONNS], served[CONNS]; /* the two ends; -1: not connected */
static int lowest_fd;
static uint64_t pool_used, shared_used;

static void fail(const char *what)
{
	fprintf(stderr, "softhca_server: %s\n", what);
	abort();
}

static int lowest(void)
{
	int fd = dup(user_fd[0]);

	close(fd);
	return fd;
}

static void start(void)
{
	static char dir[64];
	struct sh_kernel_config cfg = {
		.device = {.hosts = 2,
			   .hcas_per_host = 1,
			   .ports = 2,
			   .cqe_size = 32,
			   .driver_abi = 3,
			   .face = SH_FACE_OFED,
			   .pool_size = 16 << 20},
		.dir = dir,
	};
	struct itimerspec never = {{0}, {0}};
	const char *tmp = getenv("TMPDIR");
	char text[512] = "";
	int i;

	if (!tmp || !*tmp || strlen(tmp) > 24)
		tmp = "/tmp";
	snprintf(base, sizeof(base), "%s/softhca-fuzz.XXXXXX", tmp);
	if (!mkdtemp(base))
		user_fail("mkdtemp");
	snprintf(dir, sizeof(dir), "%.50s/instance", base);
	server = calloc(1, sizeof(*server));
	if (!server)
		fail("no memory");
	*server = (struct server){.k = &kernel,
				  .listen_fd = -1,
				  .inotify = -1,
				  .signals = -1,
				  .tick = -1,
				  .attention = -1,
				  .again = -1};
	if (kern_init(&kernel, &cfg, text, sizeof(text)) < 0 || server_set_up(server) < 0 ||
	    kern_publish(&kernel, text, sizeof(text)) < 0) {
		fprintf(stderr, "instance: %s\n", text);
		abort();
	}
	kernel.user = &user_bounded;
	timerfd_settime(server->tick, 0, &never, NULL);
	user_arena();
	user_start();
	/*
	 * The array has its full size from the start, so that the first input is like the others.
	 */
	server->conns = calloc(256, sizeof(*server->conns));
	server->nconns = 256;
	for (i = 0; i < CONNS; i++)
		client[i] = served[i] = -1;
	pool_used = kernel.pool.used;
	shared_used = kernel.shared.used;
}

static void stop(void) __attribute__((destructor));
static void stop(void)
{
	if (!server)
		return;
	server_take_down(server);
	kern_exit(&kernel);
	free(server);
	user_stop();
	if (rmdir(base) < 0)
		fail("the instance has left something");
}

/* ---- the client's side ---- */

static void hang_up(unsigned int i)
{
	if (client[i] >= 0)
		close(client[i]);
	client[i] = -1;
	/* The daemon hears of this next. */
	if (served[i] >= 0 && server->conns[served[i]])
		server_serve(server, (uint64_t)SRC_CONN << 32 | (uint32_t)served[i]);
	if (served[i] >= 0 && server->conns[served[i]])
		fail("a connection outlives its client");
	served[i] = -1;
}

static void call(unsigned int i)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, end;

	if (client[i] >= 0)
		return;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/control", kernel.dir_fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		user_fail("connect");
	client[i] = fd;
	end = lowest();
	server_serve(server, (uint64_t)SRC_LISTEN << 32);
	if (end >= server->nconns || !server->conns[end])
		fail("a connection was not accepted");
	served[i] = end;
}

static void take_replies(unsigned int i)
{
	static char reply[SH_MSG_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = reply, .iov_len = sizeof(reply)};
	struct cmsghdr *c;
	struct msghdr msg;
	size_t n, k;
	int fd;

	for (;;) {
		msg = (struct msghdr){.msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.space,
				      .msg_controllen = sizeof(control.space)};
		if (client[i] < 0 || recvmsg(client[i], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
			return;
		for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			for (k = 0; k < n; k++) {
				memcpy(&fd, CMSG_DATA(c) + k * sizeof(int), sizeof(int));
				if (user_fd[2] >= 0)
					close(user_fd[2]);
				user_fd[2] = fd;
			}
		}
	}
}

static void send_message(unsigned int flags, const void *message, size_t len)
{
	unsigned int i = flags % CONNS, nfds = !!(flags & ONE_FD) + !!(flags & TWO_FDS);
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t done;

	if (client[i] < 0)
		return;
	if (nfds) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), user_fd, nfds * sizeof(int));
	}
	done = sendmsg(client[i], &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (done < 0)
		return;
	server_serve(server, (uint64_t)SRC_CONN << 32 | (uint32_t)served[i]);
	if (!(flags & UNREAD))
		take_replies(i);
	if (!server->conns[served[i]]) {
		served[i] = -1;
		hang_up(i);
	}
}

/* ---- messages ---- */

/* Returns the n-th context that exists, or the last. */
static const struct kctx *context(unsigned int n)
{
	const struct kctx *found = NULL;
	uint32_t i;

	for (i = 1; i < MOST; i++)
		if (kernel.uverbs->ctx[i]) {
			found = kernel.uverbs->ctx[i];
			if (!n--)
				break;
		}
	return found;
}

/* Bytes: again; host and client; what is wrong */
static void hello(unsigned int flags, const uint8_t *p, size_t n)
{
	struct sh_hello m = {.type = SH_MSG_HELLO,
			     .version = SH_WIRE_VERSION,
			     .client = 1,
			     .witness = (uintptr_t)WITNESS};

	if (n > 0)
		m.again = p[0] % 8;
	if (n > 1) {
		m.host = p[1] % 4 % 3;
		m.client = !(p[1] & 4);
	}
	if (n > 2)
		m.version += p[2] == 1;
	if (n > 10)
		memcpy(&m.witness, p + 3, sizeof(m.witness));
	send_message(flags, &m, sizeof(m));
}

/*
 * Bytes: the type; whether the message is longer or shorter than it should be; the message behind
 * its type
 */
static void typed(unsigned int flags, const uint8_t *p, size_t n)
{
	static const uint32_t size[] = {
		[SH_MSG_HELLO] = sizeof(struct sh_hello),
		[SH_MSG_OPEN] = sizeof(struct sh_open),
		[SH_MSG_OPENED] = sizeof(struct sh_opened),
		[SH_MSG_KICK] = sizeof(struct sh_kick),
		[SH_MSG_COMMAND] = sizeof(struct sh_command),
		[SH_MSG_MAP_FAILED] = sizeof(struct sh_map_failed),
		[SH_MSG_CHANGED] = sizeof(struct sh_changed_msg),
		[SH_MSG_SHOW] = sizeof(struct sh_show),
		[SH_MSG_PORT] = sizeof(struct sh_port_msg),
		[SH_MSG_FAULT] = sizeof(struct sh_fault_msg),
		[SH_MSG_STOP] = sizeof(struct sh_stop),
	};
	uint32_t m[128] = {0}, type;
	const struct kctx *ctx;
	size_t len;

	if (n < 2)
		return;
	type = p[0] % (SH_MSG_STOP + 2);
	len = type && type <= SH_MSG_STOP ? size[type] : 16;
	memcpy(m + 1, p + 2, n - 2 < sizeof(m) - 4 ? n - 2 : sizeof(m) - 4);
	m[0] = type;
	ctx = context(m[1] & 0xff);
	if (ctx && !(flags & AS_IT_IS)) {
		if (type == SH_MSG_OPENED || type == SH_MSG_KICK || type == SH_MSG_COMMAND ||
		    type == SH_MSG_MAP_FAILED)
			m[1] = ctx->index;
		if (type == SH_MSG_KICK)
			m[2] = ctx->generation;
	}
	/*
	 * A failed device would make all later commands fail, so an honest record does not send
	 * this.
	 */
	if (type == SH_MSG_PORT && m[4] == SH_PORT_FATAL && !(flags & AS_IT_IS))
		m[4] = SH_PORT_DOWN;
	if (p[1] & 1)
		len += 4;
	if (p[1] & 2)
		len -= 4;
	if (p[1] & 4)
		len += sizeof(struct sh_pin_result);
	send_message(flags, m, len);
}

/* The message, as protocol.h lays it out, with the command's bytes or without. */
static void send_command(unsigned int flags, struct sh_command *m, bool pinned, bool here)
{
	char *at = (char *)(m + 1) + (pinned ? sizeof(struct sh_pin_result) : 0);

	if (here) {
		m->here = m->len < SH_COMMAND_MAX ? m->len : SH_COMMAND_MAX;
		memcpy(at, ARENA, m->here);
	}
	send_message(flags, m, (size_t)(at - (char *)m) + m->here);
}

/*
 * Commands that make the objects that messages are about. Bytes: the number of one of these
 * commands; or 0 and a command as a client would write it
 */
static void command(unsigned int flags, const uint8_t *p, size_t n)
{
	static const struct {
		uint32_t command, in, out;
	} known[] = {
		{0, 0, 0},
		{UV_GET_CONTEXT, sizeof(struct uv_plain), 64},
		{UV_ALLOC_PD, sizeof(struct uv_plain), 64},
		{UV_CREATE_COMP_CHANNEL, sizeof(struct uv_plain), 64},
		{UV_CREATE_CQ, sizeof(struct uv_create_cq) + sizeof(struct mlx4_abi_create_cq), 64},
		{UV_REG_MR, sizeof(struct uv_reg_mr), 64},
		{UV_DEREG_MR, sizeof(struct uv_handle), 0},
		{UV_DESTROY_CQ, sizeof(struct uv_object), 64},
	};
	struct {
		struct sh_command cmd;
		struct sh_pin_result pin;
		char text[SH_COMMAND_MAX];
	} m = {.cmd = {.type = SH_MSG_COMMAND,
		       .tid = 1,
		       .addr = (uintptr_t)ARENA,
		       .memlock_limit = 1 << 20}};
	struct uv_hdr *hdr = (void *)ARENA;
	unsigned char *body = (unsigned char *)ARENA;
	const struct kctx *ctx;
	unsigned int which;
	size_t len;

	if (n < 4)
		return;
	which = p[0] % (sizeof(known) / sizeof(known[0]));
	ctx = context(p[1]);
	m.cmd.ctx = ctx && !(flags & AS_IT_IS) ? ctx->index : p[1];
	m.cmd.cap_ipc_lock = p[2] & 1;
	m.pin = (struct sh_pin_result){.done = 1,
				       .share = p[3] % 4,
				       .error = p[3] & 16 ? EFAULT : 0,
				       .have_off = kernel.dev.shared_off + 4096 * (p[3] >> 5)};
	len = n - 4;
	memset(body, 0, 512);
	memcpy(body, p + 4, len);
	if (which) {
		memmove(body + sizeof(*hdr) + 8, body, len);
		len = known[which].in;
		*hdr = (struct uv_hdr){.command = known[which].command,
				       .in_words = len / 4,
				       .out_words = known[which].out / 4};
		if (known[which].out)
			*(uint64_t *)(body + 8) = (uintptr_t)OUT;
		else
			memmove(body + 8, body + 16, 8);
	}
	if (known[which].command == UV_CREATE_CQ) {
		struct uv_create_cq *cq = (void *)ARENA;
		struct mlx4_abi_create_cq *drv = (void *)(cq + 1);

		cq->cqe %= 128;
		if (user_fd[2] < 0)
			cq->comp_channel = -1;
		drv->buf_addr = (uintptr_t)QUEUES + 4096 * (p[2] / 2 % 7);
		drv->db_addr = (uintptr_t)RECORDS + 8 * (p[2] / 16);
	}
	if (known[which].command == UV_REG_MR) {
		struct uv_reg_mr *mr = (void *)ARENA;

		mr->start = mr->hca_va = (uintptr_t)QUEUES + mr->start % (6 * 4096);
		mr->length %= 3 * 4096;
	}
	m.cmd.len = len;
	send_command(flags, &m.cmd, p[3] & 8, p[3] & 4);
}

static void huge(unsigned int flags, const uint8_t *p, size_t n)
{
	static unsigned char big[SH_MSG_MAX + 4096];
	size_t i, len = SH_MSG_MAX;

	if (n < 2)
		return;
	len += p[0] * 16 - 2048;
	for (i = 0; i < len; i++)
		big[i] = p[1 + i % (n - 1)];
	send_message(flags, big, len);
}

/* ---- other events ---- */

/* The last user of a context's file, or of its address space, goes away. */
static void close_file(const uint8_t *p, size_t n)
{
	const struct kctx *ctx = n ? context(p[0] / 2) : NULL;
	char name[64];
	int fd;

	if (!ctx)
		return;
	snprintf(name, sizeof(name), "files/%c%u.%u", p[0] & 1 ? 'l' : 'c', ctx->index,
		 ctx->generation);
	fd = openat(kernel.dir_fd, name, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

static void tick(void)
{
	server_tick(server);
	aside_sweep(&kernel);
}

/*
 * An event in the loop, about an event queue, a process or a connection that may be gone by then.
 */
static void event(const uint8_t *p, size_t n)
{
	static const enum source sources[] = {SRC_ROOM, SRC_PIDFD,     SRC_INOTIFY,
					      SRC_CONN, SRC_ATTENTION, SRC_TICK};

	if (n < 2)
		return;
	server_serve(server, (uint64_t)sources[p[0] % 6] << 32 | p[1]);
	for (unsigned int i = 0; i < CONNS; i++)
		if (served[i] >= 0 && !server->conns[served[i]])
			served[i] = -1;
}

static void record(unsigned int what, unsigned int flags, const uint8_t *p, size_t n)
{
	unsigned int i = flags % CONNS;

	switch (what % WHATS) {
	case CONNECT:
		call(i);
		break;
	case CLOSE:
		hang_up(i);
		break;
	case HELLO:
		hello(flags, p, n);
		break;
	case RAW:
		send_message(flags, p, n);
		break;
	case HUGE_ONE:
		huge(flags, p, n);
		break;
	case TYPED:
		typed(flags, p, n);
		break;
	case COMMAND:
		command(flags, p, n);
		break;
	case CLOSE_FILE:
		close_file(p, n);
		break;
	case TICK:
		tick();
		break;
	case EVENT:
		event(p, n);
		break;
	case DEAF_CLIENT:
		if (client[i] >= 0)
			shutdown(client[i], SHUT_RD);
		break;
	}
}

/* ---- between inputs ---- */

/* Undoes what commands of the softhca tool have set. */
static void reset_device(void)
{
	struct sh_fault_msg clear = {.type = SH_MSG_FAULT,
				     .kind = SH_FAULT_OFF,
				     .from = SH_FAULT_ANY,
				     .to = SH_FAULT_ANY,
				     .qpn = SH_FAULT_ANY};
	struct sh_status st;
	uint32_t hca, port;

	fault_set(&kernel, &clear, &st);
	kernel.stop = false;
	for (hca = 0; hca < 2; hca++) {
		if (kernel.hcas[hca].loud)
			fail("a failed HCA is not silent");
		kernel.hcas[hca].fatal = false;
		sh_hca(&kernel.dev, hca)->fatal = 0;
		for (port = 1; port <= 2; port++) {
			struct sh_port_msg up = {.host = hca, .port = port, .what = SH_PORT_UP};

			port_change(&kernel, &up, true, &st);
			up.what = SH_PORT_LID;
			up.a = 0x700 + 2 * hca + port;
			port_change(&kernel, &up, true, &st);
		}
	}
}

static void clean_up(void)
{
	uint32_t i;

	for (i = 0; i < CONNS; i++)
		hang_up(i);
	/* Connections of which the loop has been told once more. */
	for (i = 0; i < (uint32_t)server->nconns; i++)
		if (server->conns[i])
			fail("a connection is left");
	for (i = 1; i < MOST; i++)
		if (kernel.uverbs->ctx[i])
			ctx_release(kernel.uverbs->ctx[i]);
	for (i = 1; i < MOST; i++)
		if (kernel.proc[i])
			proc_dead(&kernel, kernel.proc[i]);
	files_drain(server);
	aside_sweep(&kernel);
	if (user_fd[2] >= 0)
		close(user_fd[2]);
	user_fd[2] = -1;
	files_drain(server);
	reset_device();
	/* The next input gets the same numbers. */
	kernel.uverbs->ctx_next = 1;
	server->ticks = server->idle = 0;
	for (i = 1; i < MOST; i++)
		if (kernel.uverbs->ctx[i] || kernel.proc[i])
			fail("a context or a process is left");
	if (kernel.uverbs->releasing || kernel.uverbs->loud || kernel.loud || kernel.graced ||
	    kernel.locked || kernel.pool.used != pool_used || kernel.shared.used != shared_used)
		fail("something is left");
	if (lowest() > lowest_fd)
		fail("a descriptor is left");
	if (lowest() < lowest_fd)
		fail("a descriptor of somebody else's is closed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;

	if (size > MOST * 3)
		return 0;
	if (!server)
		start();
	user_arena();
	/* A fuzzer opens descriptors of its own between inputs. */
	lowest_fd = lowest();
	for (n = 0; size >= 3; data += 3 + n, size -= 3 + n) {
		n = data[2] < size - 3 ? data[2] : size - 3;
		record(data[0], data[1], data + 3, n);
	}
	clean_up();
	return 0;
}
