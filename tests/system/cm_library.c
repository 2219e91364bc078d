// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a program finds with librdmacm, whichever it is, on a host of two HCAs: cm_library WHAT.
 * Exits 1 and names what is not so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "pass_fd.h"

static struct rdma_event_channel *channel;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in at(const char *address, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, address, &in.sin_addr);
	return in;
}

static struct rdma_cm_id *make_id(void)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

static struct rdma_cm_id *bound(const char *address)
{
	struct sockaddr_in in = at(address, 0);
	struct rdma_cm_id *id = make_id();

	must(!rdma_bind_addr(id, (struct sockaddr *)&in), "rdma_bind_addr");
	return id;
}

static void resolve(struct rdma_cm_id *id, int port)
{
	struct sockaddr_in in = at("127.0.0.1", port);

	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000), "rdma_resolve_addr");
}

static struct rdma_cm_event *next(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event == type)
		return event;
	printf("%s, not %s\n", rdma_event_str(event->event), rdma_event_str(type));
	exit(1);
}

static void take(enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next(type));
}

/* Up to the route. */
static struct rdma_cm_id *routed(int port)
{
	struct rdma_cm_id *id = make_id();

	resolve(id, port);
	take(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	take(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* ---- devices ---- */

static void devices(void)
{
	struct ibv_context **list, **again;
	struct rdma_cm_id *id[2];
	struct rdma_cm_id *any;
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int n = 0, m = 0;

	list = rdma_get_devices(&n);
	must(list && n == 2 && list[0] && list[1] && !list[2], "two devices");
	must(list[0] != list[1], "different ones");
	/* The addresses of the first and of the second HCA. */
	id[0] = bound("127.128.0.1");
	id[1] = bound("127.128.0.2");
	for (int i = 0; i < 2; i++) {
		char name[8];

		snprintf(name, sizeof(name), "mlx4_%d", i);
		must(id[i]->verbs && !strcmp(ibv_get_device_name(id[i]->verbs->device), name),
		     name);
		must(id[i]->port_num == 1, "port");
		must(!ibv_query_gid(id[i]->verbs, 1, 0, &gid) &&
			     !memcmp(&gid, &id[i]->route.addr.addr.ibaddr.sgid, sizeof(gid)),
		     "GID");
		must(id[i]->verbs == list[0] || id[i]->verbs == list[1], "opened once");
	}
	must(id[0]->verbs != id[1]->verbs, "each its own");
	any = bound("127.0.0.1");
	must(!any->verbs && rdma_get_src_port(any), "a port of no device");
	rdma_destroy_id(any);
	rdma_free_devices(list);
	must(!ibv_query_device(id[1]->verbs, &attr), "still open");
	again = rdma_get_devices(&m);
	must(again && m == 2, "again");
	must(again[0] == id[0]->verbs || again[1] == id[0]->verbs, "the same contexts");
	rdma_free_devices(again);
	rdma_destroy_id(id[0]);
	rdma_destroy_id(id[1]);
}

/* ---- waiting ---- */

static void *one_event(void *arg)
{
	take(RDMA_CM_EVENT_ADDR_RESOLVED);
	return arg;
}

static void threads(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_id *id[2] = {make_id(), make_id()};
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		must(!pthread_create(&thread[i], NULL, one_event, NULL), "pthread_create");
	usleep(50000); /* as a rule both sleep by now */
	for (int i = 0; i < 2; i++)
		resolve(id[i], 7471);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	must(poll(&p, 1, 0) == 0, "nothing is left");
	for (int i = 0; i < 2; i++)
		rdma_destroy_id(id[i]);
}

static int resolved; /* atomic */

/* Takes what comes to the channel until it is cancelled. */
static void *resolves(void *unused)
{
	for (;;) {
		struct rdma_cm_event *event;

		must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		must(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && !event->status,
		     "the address is resolved");
		must(event->id->verbs != NULL, "it belongs to a device");
		rdma_ack_cm_event(event);
		__atomic_add_fetch(&resolved, 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

/*
 * Ids move to another channel while a thread waits at the one that they leave: the event comes at one
 * of the two, and is the same.
 */
static void moves(void)
{
	struct rdma_event_channel *there = rdma_create_event_channel();
	struct pollfd p = {.fd = there->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	pthread_t thread;

	must(!pthread_create(&thread, NULL, resolves, NULL), "pthread_create");
	for (int i = 0; i < 400; i++) {
		struct rdma_cm_id *id = make_id();
		int before = __atomic_load_n(&resolved, __ATOMIC_SEQ_CST);

		resolve(id, 7471);
		usleep((unsigned int)(i % 8 * 50));
		must(!rdma_migrate_id(id, there), "rdma_migrate_id");
		must(id->channel == there, "it has moved");
		while (__atomic_load_n(&resolved, __ATOMIC_SEQ_CST) == before) {
			if (poll(&p, 1, 1) != 1)
				continue;
			must(!rdma_get_cm_event(there, &event), "rdma_get_cm_event");
			must(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && !event->status,
			     "the address is resolved there");
			rdma_ack_cm_event(event);
			break;
		}
		must(id->verbs != NULL, "it belongs to a device, there too");
		must(!rdma_destroy_id(id), "rdma_destroy_id");
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(there);
}

static void edges(void)
{
	struct epoll_event wanted = {.events = EPOLLIN | EPOLLET}, got;
	struct rdma_cm_id *id[3];
	int fd = epoll_create1(0);

	must(!epoll_ctl(fd, EPOLL_CTL_ADD, channel->fd, &wanted), "epoll_ctl");
	must(epoll_wait(fd, &got, 1, 0) == 0, "quiet");
	/* None of the events is read meanwhile. */
	for (int i = 0; i < 3; i++) {
		id[i] = make_id();
		resolve(id[i], 7471);
		must(epoll_wait(fd, &got, 1, 20000) == 1 && got.events == EPOLLIN,
		     "an edge for each event");
		must(epoll_wait(fd, &got, 1, 0) == 0, "one edge");
	}
	for (int i = 0; i < 3; i++)
		take(RDMA_CM_EVENT_ADDR_RESOLVED);
	for (int i = 0; i < 3; i++)
		rdma_destroy_id(id[i]);
	close(fd);
}

static int selected(int s)
{
	struct timeval limit = {.tv_sec = s};
	fd_set in, out, other;
	int n;

	FD_ZERO(&in);
	FD_SET(channel->fd, &in);
	out = other = in;
	n = select(channel->fd + 1, &in, &out, &other, &limit);
	must(n == 0 || n == 1, "select");
	must(!FD_ISSET(channel->fd, &out) && !FD_ISSET(channel->fd, &other), "only to be read");
	must(FD_ISSET(channel->fd, &in) ? n : !n, "what select() returns");
	return n;
}

static void selects(void)
{
	struct rdma_cm_id *id = make_id();

	must(!selected(0), "quiet");
	resolve(id, 7471);
	must(selected(20) && selected(0), "readable until it is read");
	take(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!selected(0), "quiet again");
	rdma_destroy_id(id);
}

/* ---- processes ---- */

/* Answers one request with a rejection. */
static void reject_one(void)
{
	struct rdma_cm_event *event = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	must(!rdma_reject(id, "no", 2), "rdma_reject");
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

/* Asks at that port, and learns who answers: 28: a listener; 8: there is none. */
static void ask(int port, int status)
{
	struct rdma_event_channel *listens = channel;
	struct rdma_conn_param param = {.qp_num = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	channel = rdma_create_event_channel();
	id = routed(port);
	must(!rdma_connect(id, &param), "rdma_connect");
	event = next(RDMA_CM_EVENT_REJECTED);
	if (event->status != status) {
		printf("rejected by %d, not %d\n", event->status, status);
		exit(1);
	}
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	channel = listens;
}

static void ended(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid && !status, "child");
}

static void processes(void)
{
	struct rdma_cm_id *id;
	int port[2], done[2];
	uint16_t number;
	pid_t pid;
	char byte;

	/* The child closes its copy and ends: the listener stays. */
	id = bound("0.0.0.0");
	must(!rdma_listen(id, 1), "rdma_listen");
	number = ntohs(rdma_get_src_port(id));
	pid = fork();
	if (!pid) {
		close(channel->fd);
		_exit(0);
	}
	ended(pid);
	pid = fork();
	if (!pid) {
		ask(number, 28);
		_exit(0);
	}
	reject_one();
	ended(pid);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);

	/*
	 * The maker ends: its child goes on with channel and id, and takes them away with its own
	 * end.
	 */
	must(!pipe(port) && !pipe(done), "pipe");
	pid = fork();
	if (!pid) {
		channel = rdma_create_event_channel();
		id = bound("0.0.0.0");
		must(!rdma_listen(id, 1), "rdma_listen");
		number = ntohs(rdma_get_src_port(id));
		if (fork())
			_exit(0);
		close(done[0]);
		must(write(port[1], &number, sizeof(number)) == sizeof(number), "write");
		reject_one();
		must(write(done[1], "r", 1) == 1, "write");
		_exit(0);
	}
	ended(pid);
	close(done[1]);
	must(read(port[0], &number, sizeof(number)) == sizeof(number), "read");
	channel = NULL;
	ask(number, 28);
	/* An end that rejects by itself, as a dead listener, does not say so. */
	must(read(done[0], &byte, 1) == 1, "its rejection");
	must(read(done[0], &byte, 1) == 0, "its end");
	/*
	 * The daemon learns of the last close from the kernel, soon. A listener that is ending
	 * still rejects.
	 */
	for (int i = 0; i < 500; i++) {
		struct rdma_conn_param param = {.qp_num = 1};
		struct rdma_cm_event *event;
		int status;

		channel = rdma_create_event_channel();
		id = routed(number);
		must(!rdma_connect(id, &param), "rdma_connect");
		event = next(RDMA_CM_EVENT_REJECTED);
		status = event->status;
		rdma_ack_cm_event(event);
		rdma_destroy_id(id);
		rdma_destroy_event_channel(channel);
		if (status == 8)
			break;
		must(i < 499, "the listener goes with its last process");
		usleep(10000);
	}
	channel = rdma_create_event_channel();
}

/* ---- data before the last message of the handshake is read ---- */

/* A process gets a channel from another one, which closes it. */
static void passed_on(void)
{
	struct rdma_event_channel *own;
	struct rdma_cm_id *id;
	uint16_t number;
	int pair[2];
	pid_t pid;

	rdma_destroy_event_channel(channel);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	pid = fork();
	if (!pid) {
		close(pair[0]);
		channel = malloc(sizeof(*channel));
		must(channel != NULL, "malloc");
		channel->fd = take_fd(pair[1]);
		must(channel->fd >= 0, "recvmsg");
		must(read(pair[1], &number, 1) == 1, "the maker has closed it");
		id = bound("0.0.0.0");
		must(!rdma_listen(id, 1), "rdma_listen");
		number = ntohs(rdma_get_src_port(id));
		must(write(pair[1], &number, sizeof(number)) == sizeof(number), "write");
		reject_one();
		must(!rdma_destroy_id(id), "rdma_destroy_id");
		rdma_destroy_event_channel(channel);
		_exit(0);
	}
	close(pair[1]);
	own = rdma_create_event_channel();
	must(own != NULL, "rdma_create_event_channel");
	must(!pass_fd(pair[0], own->fd), "sendmsg");
	rdma_destroy_event_channel(own);
	must(write(pair[0], "c", 1) == 1, "write");
	must(read(pair[0], &number, sizeof(number)) == sizeof(number), "read");
	ask(number, 28);
	ended(pid);
	close(pair[0]);
	channel = rdma_create_event_channel();
	must(channel != NULL, "rdma_create_event_channel");
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge =
		attr.cap.max_recv_sge = 1;
	must(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void completes(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	must(n == 1 && wc.status == status, ibv_wc_status_str(wc.status));
}

static void at_once(void)
{
	struct rdma_cm_id *listener = make_id(), *active, *passive;
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *event;
	static char buf[2][8];
	struct ibv_mr *mr;
	struct ibv_sge sge = {.length = sizeof(buf[0])};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	/* It is not bound: listening does that. */
	must(!rdma_listen(listener, 1) && rdma_get_src_port(listener), "rdma_listen");
	active = routed(ntohs(rdma_get_src_port(listener)));
	create_qp(active);
	must(!rdma_connect(active, &param), "rdma_connect");
	event = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	must(event->listen_id == listener && passive->channel == channel && passive->verbs &&
		     passive->pd,
	     "the new id");
	must(rdma_get_src_port(passive) == rdma_get_dst_port(active) &&
		     rdma_get_dst_port(passive) == rdma_get_src_port(active) &&
		     rdma_get_src_port(active),
	     "each other's ports");
	must(!memcmp(rdma_get_local_addr(passive), rdma_get_peer_addr(active),
		     sizeof(struct sockaddr_in)) &&
		     !memcmp(rdma_get_peer_addr(passive), rdma_get_local_addr(active),
			     sizeof(struct sockaddr_in)),
	     "each other's addresses");
	rdma_ack_cm_event(event);
	create_qp(passive);
	mr = ibv_reg_mr(passive->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	must(mr != NULL, "ibv_reg_mr");
	sge.lkey = mr->lkey;
	sge.addr = (uintptr_t)buf[0];
	must(!ibv_post_recv(passive->qp, &recv, &bad_recv), "ibv_post_recv");
	must(!rdma_accept(passive, &param), "rdma_accept");
	event = next(RDMA_CM_EVENT_ESTABLISHED);
	must(event->id == active, "the active side is first");
	rdma_ack_cm_event(event);
	strcpy(buf[1], "early");
	sge.addr = (uintptr_t)buf[1];
	must(!ibv_post_send(active->qp, &send, &bad_send), "ibv_post_send");
	completes(active->send_cq, IBV_WC_SUCCESS);
	completes(passive->recv_cq, IBV_WC_SUCCESS);
	must(!strcmp(buf[0], "early"), "the message");
	event = next(RDMA_CM_EVENT_ESTABLISHED);
	must(event->id == passive, "then the passive side");
	rdma_ack_cm_event(event);
	/* The end of the connection flushes what is posted. */
	sge.addr = (uintptr_t)buf[0];
	must(!ibv_post_recv(passive->qp, &recv, &bad_recv), "ibv_post_recv");
	must(!rdma_disconnect(active) && !rdma_disconnect(passive), "rdma_disconnect");
	must(!rdma_disconnect(active), "once more");
	completes(passive->recv_cq, IBV_WC_WR_FLUSH_ERR);
	take(RDMA_CM_EVENT_DISCONNECTED);
	take(RDMA_CM_EVENT_DISCONNECTED);
	ibv_dereg_mr(mr);
	rdma_destroy_qp(active);
	rdma_destroy_qp(passive);
	rdma_destroy_id(active);
	rdma_destroy_id(passive);
	rdma_destroy_id(listener);
}

/* ---- Rights ---- */

/* Has this thread the right to privileged ports from now on? False: it had none. */
static bool keep_right(bool on)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	const uint32_t bit = 1U << CAP_NET_BIND_SERVICE;

	must(!syscall(SYS_capget, &header, caps), "capget");
	if (!(caps[0].permitted & bit))
		return false;
	caps[0].effective = on ? caps[0].effective | bit : caps[0].effective & ~bit;
	must(!syscall(SYS_capset, &header, caps), "capset");
	return true;
}

/* 0 or errno of a bind to this port. The id lives on if there is one. */
static int bind_port(int port)
{
	struct sockaddr_in in = at("0.0.0.0", port);
	struct rdma_cm_id *id = make_id();
	int error = rdma_bind_addr(id, (struct sockaddr *)&in) ? errno : 0;

	if (error) {
		/* The refusal has left it as it was. */
		in.sin_port = 0;
		must(!rdma_bind_addr(id, (struct sockaddr *)&in), "rdma_bind_addr");
	}
	rdma_destroy_id(id);
	return error;
}

static void *bind_in_thread(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)bind_port(1023);
}

/*
 * The right is that of the thread that binds, when it binds, not that of the process when it opened
 * the channel: this one opened it with all rights that it has.
 */
static void rights(void)
{
	pthread_t thread;
	void *error;

	/* A user, or root of a user namespace */
	if (bind_port(1023) == EACCES) {
		must(!bind_port(1024), "port 1024");
		return;
	}
	must(keep_right(false), "a privileged port without the right");
	must(bind_port(1023) == EACCES, "the right has gone");
	must(!bind_port(1024), "port 1024");
	/* A new thread has the rights of the one that makes it. */
	must(!pthread_create(&thread, NULL, bind_in_thread, NULL), "pthread_create");
	must(!pthread_join(thread, &error), "pthread_join");
	must((intptr_t)error == EACCES, "the other thread has none either");
	keep_right(true);
	must(!bind_port(1023), "the right is back");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"devices", devices},	  {"threads", threads},	    {"edges", edges},
		{"processes", processes}, {"at_once", at_once},	    {"rights", rights},
		{"selects", selects},	  {"passed_on", passed_on}, {"moves", moves},
	};

	alarm(50);
	channel = rdma_create_event_channel();
	must(channel != NULL, "rdma_create_event_channel");
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		rdma_destroy_event_channel(channel);
		return 0;
	}
	return 2;
}
