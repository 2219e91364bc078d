// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See engine.h. The engine has two threads. The helper thread runs requesters when a program or a
 * timer asks for it. The main thread waits for packets, executes them, and lets requesters go on.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/transport/doorbell.h"
#include "softhca/device/transport/wire.h"
#include "softhca/host/client.h"
#include "softhca/host/memory.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/host/witness.h"
#include "address.h"
#include "engine.h"
#include "outgoing.h"
#include "outlive.h"
#include "roce.h"

#define BATCH	 16
#define DATAGRAM 65535
#define PATIENCE 8192 /* bytes that are executed before the answers to those before leave */
/*
 * Packets may wait in the socket for peers that have been heard within this time. Linux takes 5 s
 * to doubt that a neighbour is there, and asks for 3 s before it keeps packets for it (arp(7)).
 */
#define HEARD_NS UINT64_C(4000000000)

static struct {
	struct sh_dev dev;
	struct sh_wire_config wire;
	int fd[SH_WIRE_MOST];
	int link; /* to the daemon */
	struct group {
		struct sh_wire_slot is;
		int fd; /* -1: the slot is empty */
	} group[SH_WIRE_GROUPS];
	uint32_t groups;	      /* the slots of larger numbers are empty */
	uint8_t credits[SH_MAX_LIDS]; /* of the peers, for sh_roce_judge() */
	bool softhca[SH_MAX_LIDS];    /* the peers that are instances */
	struct sh_wire_pace pace[SH_MAX_LIDS];
	uint64_t heard[SH_MAX_LIDS]; /* when the peers were; 0: never */
	bool merges; /* this kernel takes datagrams apart; false for good when it refused one */
} engine;

/* ---- sending ---- */

/* A group's packets need no neighbour that answers. */
static bool is_heard(struct sh_dev *dev, uint16_t dlid)
{
	uint64_t at;

	if (dlid >= SH_LID_GROUPS)
		return true;
	at = dlid < SH_MAX_LIDS ? __atomic_load_n(&engine.heard[dlid], __ATOMIC_RELAXED) : 0;
	return at && dev->ops->now(dev->host) - at < HEARD_NS;
}

/* False: it cannot leave, and does not count. */
static bool find_way(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		     struct sh_outgoing_way *way)
{
	uint32_t hca, port, number;

	if (!sh_lid_lookup(dev, p->slid, &hca, &port))
		return false;
	number = hca * dev->ports + port - 1;
	if (number >= engine.wire.n)
		return false;
	*way = (struct sh_outgoing_way){
		.ip = {.from = engine.wire.address[number],
		       .to = dlid < SH_LID_GROUPS ? sh_wire_address(&engine.wire, dlid)
						  : sh_wire_group(engine.wire.network, p->grh.dgid),
		       .sport = SH_ROCE_PORT},
		.fd = engine.fd[number],
		.merge = __atomic_load_n(&engine.merges, __ATOMIC_RELAXED) && dlid < SH_MAX_LIDS &&
			 __atomic_load_n(&engine.softhca[dlid], __ATOMIC_RELAXED),
		.heard = is_heard(dev, dlid),
	};
	return way->ip.to.hi || way->ip.to.lo;
}

/*
 * A packet that was not sent counts as lost, as on any network: the requester sends it again, or
 * gives up.
 */
static void count(struct sh_dev *dev, struct sh_outgoing_done done)
{
	if (done.sent)
		SH_COUNT_WIRE(dev, sent, done.sent);
	if (done.unsent)
		SH_COUNT_WIRE(dev, unsent, done.unsent);
	if (done.refused)
		__atomic_store_n(&engine.merges, false, __ATOMIC_RELAXED);
}

static void send_packet(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
			const unsigned char *payload, enum sh_wire_fate fate)
{
	struct sh_outgoing_way way;

	if (find_way(dev, p, dlid, &way))
		count(dev, sh_outgoing_send(&way, p, payload, fate == SH_WIRE_CORRUPT));
}

static void begin(struct sh_dev *dev)
{
	(void)dev;
	sh_outgoing_begin();
}

static void gather(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload)
{
	struct sh_outgoing_way way;

	if (find_way(dev, p, dlid, &way))
		count(dev, sh_outgoing_gather(&way, p, payload));
}

static unsigned char *room(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid)
{
	struct sh_outgoing_way way;

	return find_way(dev, p, dlid, &way) ? sh_outgoing_room(&way, p) : NULL;
}

static void flush(struct sh_dev *dev)
{
	count(dev, sh_outgoing_flush());
}

static struct sh_wire_turn *turn_of(struct sh_dev *dev)
{
	static __thread struct sh_wire_turn turn;

	(void)dev;
	return &turn;
}

static struct sh_wire_pace *pace_of(struct sh_dev *dev, uint16_t dlid)
{
	(void)dev;
	return dlid < SH_MAX_LIDS ? &engine.pace[dlid] : NULL;
}

/*
 * Hands a management datagram to the daemon. While that is busy, some hundreds wait; more are lost,
 * as on any network.
 */
static bool hand_over(struct sh_dev *dev, const struct sh_wire_mad *m)
{
	(void)dev;
	return send(engine.link, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m);
}

static const struct sh_wire_ops ops = {.send = send_packet,
				       .begin = begin,
				       .gather = gather,
				       .flush = flush,
				       .room = room,
				       .turn = turn_of,
				       .pace = pace_of,
				       .mad = hand_over};

/* ---- receiving ---- */

static bool is_own(struct sh_ip address)
{
	for (uint32_t i = 0; i < engine.wire.n; i++)
		if (sh_ip_same(engine.wire.address[i], address))
			return true;
	return false;
}

/*
 * The contents of a packet with a wrong ICRC cannot be trusted: its port counts a packet, and no
 * data.
 */
static void damaged(struct sh_dev *dev, struct sh_hca *hca, uint32_t port)
{
	SH_COUNT_WIRE(dev, bad_icrc, 1);
	if (!hca)
		return;
	SH_DROPPED(hca, icrc, 1);
	if (!sh_port_active(hca, port))
		return;
	SH_COUNT_PORT(hca, port, rcv_packets, 1);
	SH_COUNT_PORT(hca, port, rcv_errors, 1);
}

/* A group's datagram, with the GRH that each has on a subnet, as far as the wire tells. */
static void execute_group(struct sh_dev *dev, const struct group *g, struct sh_ip from,
			  struct sh_packet *p)
{
	/* Nothing but a datagram to a group goes to a group, whatever it says about QPs. */
	if (p->service != SH_SVC_UD || p->op != SH_PKT_SEND || p->dqpn != MLX4_MULTICAST_QPN) {
		SH_COUNT_WIRE(dev, malformed, 1);
		return;
	}
	p->dlid = SH_LID_GROUPS;
	p->flags |= SH_PKT_GRH;
	p->grh = (struct sh_grh){.hop_limit = 1};
	sh_ip_put(from, p->grh.sgid);
	memcpy(p->grh.dgid, g->is.mgid, 16);
	sh_wire_arrive_group(dev, g->is.ports, p);
}

/*
 * g: the group that it has come to, or NULL. id: the identification that it has if it is of a
 * merged datagram.
 */
static void execute(struct sh_dev *dev, uint32_t number, const struct group *g,
		    unsigned char *bytes, size_t n, const union sh_wire_at *from, uint32_t id)
{
	struct sh_roce_way way = {.to = g ? sh_wire_group(engine.wire.network, g->is.mgid)
					  : engine.wire.address[number],
				  .id = (uint16_t)id};
	uint32_t hca = number / dev->ports, port = number % dev->ports + 1;
	struct sh_packet p;
	struct sh_seg seg;
	enum sh_roce is = SH_ROCE_MALFORMED;
	uint32_t lid;

	way.from = sh_wire_from(from, &way.sport);
	/* Its own members have got what this instance sends to a group. */
	if (g && is_own(way.from))
		return;
	lid = sh_wire_lid(&engine.wire, way.from);
	SH_COUNT_WIRE(dev, received, 1);
	/* A packet from an address of this instance comes from a program that is not softhca's. */
	if (lid && lid < SH_MAX_LIDS && !is_own(way.from))
		is = sh_roce_judge(sh_roce_decode(bytes, n, &way, &p, &seg), way.sport,
				   &engine.credits[lid]);
	switch (is) {
	case SH_ROCE_MALFORMED:
		SH_COUNT_WIRE(dev, malformed, 1);
		return;
	case SH_ROCE_BAD_ICRC:
		damaged(dev, sh_hca(dev, hca), port);
		return;
	case SH_ROCE_NOTICE:
		return;
	case SH_ROCE_GUESSED:
	case SH_ROCE_OK:
		break;
	}
	/* Others choose their ports by the QP, and cards from 49152 on. */
	__atomic_store_n(&engine.softhca[lid], way.sport == SH_ROCE_PORT, __ATOMIC_RELAXED);
	__atomic_store_n(&engine.heard[lid], dev->ops->now(dev->host), __ATOMIC_RELAXED);
	p.slid = (uint16_t)lid;
	if (g) {
		execute_group(dev, g, way.from, &p);
		return;
	}
	p.dlid = (uint16_t)sh_wire_lid(&engine.wire, way.to);
	sh_wire_arrive(dev, hca, port, &p);
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* How long each packet of a datagram is, but for the last one, which may be shorter. */
static size_t packet_of(struct msghdr *m, size_t n)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int size = 0;

	if (c && c->cmsg_level == IPPROTO_UDP && c->cmsg_type == SH_UDP_GRO)
		memcpy(&size, CMSG_DATA(c), sizeof(size));
	return size > 0 ? (size_t)size : n;
}

/*
 * Executes what has come to a socket. g: the group whose socket it is, or NULL: it is that of the
 * address with that number. A packet is decoded behind room for its headers, which takes the end of
 * the one before it.
 */
static void receive(struct sh_dev *dev, uint32_t number, const struct group *g)
{
	static unsigned char bytes[BATCH][SH_ROCE_HEAD6 + DATAGRAM];
	const size_t head = sh_roce_head(engine.wire.address[number]);
	union control control[BATCH];
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	union sh_wire_at from[BATCH];
	size_t waited = 0;
	int n;

	memset(msg, 0, sizeof(msg));
	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){bytes[i] + head, DATAGRAM};
		msg[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
						 .msg_namelen = sizeof(from[i]),
						 .msg_iov = &iov[i],
						 .msg_iovlen = 1,
						 .msg_control = &control[i],
						 .msg_controllen = sizeof(control[i])};
	}
	n = recvmmsg(g ? g->fd : engine.fd[number], msg, BATCH, MSG_DONTWAIT, NULL);
	if (n <= 0 || !sh_enter(dev))
		return;
	sh_wire_begin_turn(dev);
	for (int i = 0; i < n; i++) {
		size_t len = msg[i].msg_len, size = packet_of(&msg[i].msg_hdr, len), at = 0;
		uint32_t id = 0;

		/* The sender waits for the answers to what took long. */
		if (waited > PATIENCE) {
			sh_wire_end_turn(dev);
			sh_wire_begin_turn(dev);
			waited = 0;
		}
		waited += len;
		/* One without a byte is malformed, too. */
		do {
			execute(dev, number, g, bytes[i] + at, len - at < size ? len - at : size,
				&from[i], id++);
			at += size;
		} while (at < len);
	}
	sh_wire_end_turn(dev);
	sh_leave(dev);
}

/* Answers what is left of long READs, a portion for each look at the sockets. False: nothing is. */
static bool go_on(struct sh_dev *dev)
{
	bool more = false;

	if (sh_enter(dev)) {
		more = sh_wire_go_on(dev);
		sh_leave(dev);
	}
	return more;
}

static void take_slot(const struct sh_wire_slot *s, int fd)
{
	struct group *g = &engine.group[s->slot % SH_WIRE_GROUPS];

	if (g->fd >= 0)
		close(g->fd);
	*g = (struct group){*s, fd};
	engine.groups = 0;
	for (uint32_t i = 0; i < SH_WIRE_GROUPS; i++)
		if (engine.group[i].fd >= 0)
			engine.groups = i + 1;
}

/* The descriptor in a message, or -1. */
static int descriptor_of(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/*
 * Sends management datagrams of the daemon's, and takes its sockets. False: the daemon has ended.
 */
static bool relay(struct sh_dev *dev)
{
	union {
		struct sh_wire_mad mad;
		struct sh_wire_slot slot;
	} m;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	ssize_t n = 0;

	_Static_assert(sizeof(m.mad) != sizeof(m.slot), "their lengths tell them apart");
	for (int i = 0; i < BATCH; i++) {
		struct iovec iov = {&m, sizeof(m)};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = room.bytes,
				     .msg_controllen = sizeof(room.bytes)};

		n = recvmsg(engine.link, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n <= 0)
			break;
		if (n == (ssize_t)sizeof(m.slot))
			take_slot(&m.slot, descriptor_of(&msg));
		if (n == (ssize_t)sizeof(m.mad) && sh_enter(dev)) {
			sh_gsi_leave(dev, &m.mad);
			sh_leave(dev);
		}
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/*
 * Programs have posted something meanwhile, perhaps because of what this thread has just executed.
 * They have woken the helper thread for it, but this thread is awake already, and need not wait for
 * a processor.
 */
static void look_around(struct sh_dev *dev)
{
	static uint32_t seen;
	const struct sh_proc *p = sh_proc(dev, dev->proc);
	uint32_t now = p ? __atomic_load_n(&p->attention, __ATOMIC_SEQ_CST) : seen;

	if (now == seen || !sh_enter(dev))
		return;
	seen = now;
	sh_attention_ahead(dev);
	sh_leave(dev);
}

/* Until the daemon has ended, and the programs with it. */
static void serve(void)
{
	struct pollfd polled[SH_WIRE_MOST + 1 + SH_WIRE_GROUPS];
	struct pollfd *groups;
	uint32_t i, n = engine.wire.n, ngroups;
	bool more = false;

	for (i = 0; i < n; i++)
		polled[i] = (struct pollfd){.fd = engine.fd[i], .events = POLLIN};
	polled[n] = (struct pollfd){.fd = engine.link, .events = POLLIN};
	groups = &polled[n + 1];
	for (;;) {
		ngroups = engine.groups;
		for (i = 0; i < ngroups; i++)
			groups[i] = (struct pollfd){.fd = engine.group[i].fd, .events = POLLIN};
		if (poll(polled, n + 1 + ngroups, more ? 0 : -1) < 0 && errno != EINTR)
			return;
		/* First: the daemon may put others into their slots. */
		for (i = 0; i < ngroups; i++)
			if (groups[i].revents)
				receive(&engine.dev,
					(uint32_t)__builtin_ctzll(engine.group[i].is.ports),
					&engine.group[i]);
		if (polled[n].revents && !relay(&engine.dev)) {
			if (sh_wire_outlive(&engine.dev))
				return;
			polled[n].fd = -1;
		}
		for (i = 0; i < n; i++)
			if (polled[i].revents)
				receive(&engine.dev, i, NULL);
		more = go_on(&engine.dev);
		look_around(&engine.dev);
	}
}

/* ---- becoming a process of the instance ---- */

static int map(int memfd, const struct sh_hello_reply *hello)
{
	struct sh_instance *inst;
	int err;

	inst = sh_memory_map(memfd, hello->size, SH_CTX_OFF, &err);
	if (!inst)
		return err;
	engine.dev.proc = hello->proc;
	err = sh_dev_attach(&engine.dev, inst, hello->size);
	if (err) {
		sh_memory_drop(inst);
		return err;
	}
	return sh_memory_begin(&engine.dev, memfd);
}

/* The connection stays open as long as this process lives. */
static int join(const char *dir)
{
	struct sh_hello_reply hello;
	int control = sh_client_connect(dir), memfd = -1, err;

	if (control < 0)
		return control;
	err = sh_client_hello(control, 0, 0, &hello, &memfd);
	if (!err)
		err = map(memfd, &hello);
	if (err)
		return err;
	__atomic_store_n(&sh_proc(&engine.dev, engine.dev.proc)->base, (uintptr_t)engine.dev.inst,
			 __ATOMIC_RELEASE);
	engine.dev.witness = sh_witness(&err);
	engine.dev.wire = &ops;
	return sh_process_init(&engine.dev, dir) ?: sh_process_helper();
}

/*
 * Has the sockets deliver datagrams as their sender has sent them, or as the network card has put
 * them together. Does the kernel also take them apart? A kernel that does not know the option would
 * ignore it in a message.
 */
static bool merge_packets(void)
{
	int value = 1;
	socklen_t len = sizeof(value);

	for (uint32_t i = 0; i < engine.wire.n; i++)
		(void)setsockopt(engine.fd[i], IPPROTO_UDP, SH_UDP_GRO, &value, sizeof(value));
	return engine.wire.n &&
	       getsockopt(engine.fd[0], IPPROTO_UDP, SH_UDP_SEGMENT, &value, &len) == 0;
}

static __attribute__((noreturn)) void run(const char *dir, int link)
{
	char byte;

	prctl(PR_SET_NAME, "softhca-wire", 0, 0, 0);
	if (sh_sys(syscall(SYS_faccessat, AT_FDCWD, "/proc/sys/kernel/yama", F_OK)) == 0)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	engine.link = link;
	if (read(link, &byte, 1) != 1 || byte != SH_WIRE_GO)
		_exit(0);
	if (join(dir))
		_exit(1);
	if (!sh_enter(&engine.dev))
		_exit(1);
	sh_wire_begin(&engine.dev);
	sh_leave(&engine.dev);
	byte = SH_WIRE_READY;
	if (write(link, &byte, 1) == 1)
		serve();
	_exit(0);
}

pid_t sh_wire_fork(const struct sh_wire_config *wire, const int fd[SH_WIRE_MOST], const char *dir,
		   int unwanted, int *link)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		if (unwanted >= 0)
			close(unwanted);
		engine.wire = *wire;
		for (int i = 0; i < SH_WIRE_GROUPS; i++)
			engine.group[i].fd = -1;
		memcpy(engine.fd, fd, sizeof(engine.fd));
		engine.merges = merge_packets();
		run(dir, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		int err = -errno;

		close(ends[0]);
		return err;
	}
	*link = ends[0];
	return pid;
}
