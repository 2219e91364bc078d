// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: numbers of ids, port numbers, and paths that a program gives, as a kernel has them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "softhca_cm_rig.h"

#define FIRST 32768
#define LAST  60999

static uint16_t port_of(struct rig *r, int host, uint32_t id)
{
	struct cm_query_route_resp q;
	struct cm_of_id c = {.response = (uintptr_t)&q, .id = id};

	assert_int_equal(cmd(r, host, CM_QUERY_ROUTE, &c, sizeof(c), sizeof(q)), 0);
	return ntohs(q.src.sin6_port); /* where sockaddr_in has it, too */
}

static int bind_any6(struct rig *r, uint32_t id, uint16_t port)
{
	struct cm_bind_ip c = {.id = id,
			       .addr = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};

	return cmd(r, 0, CM_BIND_IP, &c, sizeof(c), 0);
}

static int option(struct rig *r, uint32_t id, uint32_t level, uint32_t name, const void *value,
		  uint32_t len)
{
	struct cm_set_option c = {
		.optval = (uintptr_t)value, .id = id, .level = level, .name = name, .len = len};

	return cmd(r, 0, CM_SET_OPTION, &c, sizeof(c), 0);
}

static int option_of(struct rig *r, int host, uint32_t id, uint32_t name, const void *value,
		     uint32_t len)
{
	struct cm_set_option c = {.optval = (uintptr_t)value,
				  .id = id,
				  .level = CM_LEVEL_ID,
				  .name = name,
				  .len = len};

	return cmd(r, host, CM_SET_OPTION, &c, sizeof(c), 0);
}

static uint32_t create_of(struct rig *r, uint16_t ps, uint8_t qp_type)
{
	struct cm_number_resp resp = {.value = 99};
	struct cm_create_id c = {
		.uid = 0x1000, .response = (uintptr_t)&resp, .ps = ps, .qp_type = qp_type};

	assert_int_equal(cmd(r, 0, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

static uint32_t create_on(struct rig *r, struct cm_channel *ch)
{
	struct cm_number_resp resp = {.value = 99};
	struct cm_create_id c = {
		.uid = 0x1000, .response = (uintptr_t)&resp, .ps = CM_PS_TCP, .qp_type = CM_QPT_RC};

	assert_int_equal(cmd_on(r, ch, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

/* Ids of all files of a host are numbered together, and each belongs to its file. */
static void numbers(void **state)
{
	struct cm_channel *other;
	struct cm_number_resp resp;
	struct cm_of_id d = {.response = (uintptr_t)&resp};
	struct rig r;
	int fd;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	other = channel(&r, 0, &fd);
	assert_int_equal(create(&r, 0, CM_PS_TCP), 0);
	assert_int_equal(create_on(&r, other), 1);
	assert_int_equal(create(&r, 0, CM_PS_UDP), 2);
	d.id = 1;
	assert_int_equal(cmd(&r, 0, CM_DESTROY_ID, &d, sizeof(d), sizeof(resp)), EINVAL);
	assert_int_equal(cmd_on(&r, other, CM_DESTROY_ID, &d, sizeof(d), sizeof(resp)), 0);
	assert_int_equal(cmd_on(&r, other, CM_DESTROY_ID, &d, sizeof(d), sizeof(resp)), ENOENT);
	destroy(&r, 0, 0);
	/* The lowest free one, whichever file it was of. */
	assert_int_equal(create_on(&r, other), 0);
	assert_int_equal(create_on(&r, other), 1);
	assert_int_equal(create(&r, 0, CM_PS_TCP), 3);
	cm_channel_free(other);
	close(fd);
	assert_int_equal(create(&r, 0, CM_PS_TCP), 0);
	end(&r);
}

static int bind_as(struct rig *r, uint32_t id, const char *address, uint16_t port, bool privileged)
{
	struct {
		struct cm_hdr hdr;
		struct cm_bind_ip body;
	} buf = {.hdr = {.number = CM_BIND_IP, .in = sizeof(buf.body)}, .body.id = id};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct cm_call c = {.cm = r->t->k.rdmacm,
			    .proc = r->t->proc,
			    .tid = getpid(),
			    .ch = r->ch[0],
			    .privileged = privileged};

	inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(&buf.body.addr, &in, sizeof(in));
	return -cm_command(&c, (uintptr_t)&buf, sizeof(buf));
}

static void privileged_ports(void **state)
{
	struct rig r;
	uint32_t id, other;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	other = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_as(&r, id, "0.0.0.0", 1, false), EACCES);
	assert_int_equal(bind_as(&r, id, "0.0.0.0", 1023, false), EACCES);
	/* After a failure the id is as before. */
	assert_int_equal(port_of(&r, 0, id), 0);
	assert_int_equal(bind_as(&r, id, "0.0.0.0", 1024, false), 0);
	assert_int_equal(bind_as(&r, other, "0.0.0.0", 80, true), 0);
	destroy(&r, 0, id);
	/* A specific address where "any" is bound, and the same one twice. */
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_as(&r, id, "127.128.0.1", 80, true), EADDRNOTAVAIL);
	assert_int_equal(bind_as(&r, id, "127.128.0.1", 0, false), 0);
	other = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_as(&r, other, "127.128.0.1", port_of(&r, 0, id), false), EADDRINUSE);
	assert_int_equal(bind_as(&r, other, "127.128.0.2", port_of(&r, 0, id), false), 0);
	end(&r);
}

static void any_port(enum sh_face face)
{
	uint16_t ps[] = {CM_PS_TCP, CM_PS_UDP};
	uint32_t tcp, other;
	struct rig r;

	begin(&r, face);
	for (int s = 0; s < 2; s++) {
		uint16_t last = 0, port;
		bool upwards = true;

		for (int i = 0; i < 50; i++) {
			uint32_t id = create(&r, 0, ps[s]);

			assert_int_equal(bind_to(&r, 0, id, "0.0.0.0", 0), 0);
			port = port_of(&r, 0, id);
			assert_in_range(port, FIRST, LAST);
			assert_int_not_equal(port, last);
			if (i && port < last)
				upwards = false;
			/* The next one is another, though this one is free again. */
			destroy(&r, 0, id);
			last = port;
		}
		assert_true(upwards == (face == SH_FACE_OFED));
	}
	/* Port spaces have ports of their own. */
	tcp = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, tcp, "0.0.0.0", 0), 0);
	other = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, other, "0.0.0.0", port_of(&r, 0, tcp)), EADDRNOTAVAIL);
	other = create(&r, 0, CM_PS_UDP);
	assert_int_equal(bind_to(&r, 0, other, "0.0.0.0", port_of(&r, 0, tcp)), 0);
	other = create(&r, 0, CM_PS_IPOIB);
	assert_int_equal(bind_to(&r, 0, other, "0.0.0.0", port_of(&r, 0, tcp)), 0);
	end(&r);
}

static void ports_of_the_kernels_choice(void **state)
{
	(void)state;
	any_port(SH_FACE_MAINLINE);
	any_port(SH_FACE_OFED);
}

/* A socket of the machine has nothing to do with the port of its number. */
static void sockets_of_the_machine(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint32_t id, again;
	struct rig r;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, id, "0.0.0.0", ntohs(in.sin_port)), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, id, 1), 0);
	again = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, again, "0.0.0.0", ntohs(in.sin_port)), EADDRNOTAVAIL);
	end(&r);
	close(fd);
}

static void any_of_both_families(void **state)
{
	uint32_t one = 1, four, six;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	for (int afonly = 0; afonly < 2; afonly++) {
		for (int first = 0; first < 2; first++) {
			four = create(&r, 0, CM_PS_TCP);
			six = create(&r, 0, CM_PS_TCP);
			if (afonly)
				assert_int_equal(option(&r, six, CM_LEVEL_ID, CM_ID_AFONLY, &one,
							sizeof(one)),
						 0);
			assert_int_equal(first ? bind_any6(&r, six, PORT)
					       : bind_to(&r, 0, four, "0.0.0.0", PORT),
					 0);
			assert_int_equal(first ? bind_to(&r, 0, four, "0.0.0.0", PORT)
					       : bind_any6(&r, six, PORT),
					 afonly ? 0 : EADDRNOTAVAIL);
			if (afonly) {
				assert_int_equal(two(&r, 0, CM_LISTEN, four, 1), 0);
				assert_int_equal(two(&r, 0, CM_LISTEN, six, 1), 0);
				assert_int_equal(option(&r, six, CM_LEVEL_ID, CM_ID_AFONLY, &one,
							sizeof(one)),
						 EINVAL);
			}
			destroy(&r, 0, four);
			destroy(&r, 0, six);
		}
	}
	six = create(&r, 0, CM_PS_TCP);
	assert_int_equal(option(&r, six, CM_LEVEL_ID, CM_ID_AFONLY, &one, 1), EINVAL);
	end(&r);
}

static void given_path(enum sh_face face)
{
	struct cm_path_data path[2];
	struct cm_query_route_resp q;
	struct cm_of_id c = {.response = (uintptr_t)&q};
	uint32_t passive;
	struct rig r;
	uint16_t lid;

	memset(path, 0, sizeof(path));
	begin(&r, face);
	lid = sh_hca(&r.t->k.dev, 1)->port[0].lid;
	c.id = create(&r, 0, CM_PS_TCP);
	path[0].flags = CM_PATH_FLAGS;
	path[0].record.dlid = htons(lid);
	path[0].record.mtu = 0x80 | 4;
	path[0].record.pkey = 0xffff;
	path[0].record.reversible_numpath = 0x81;
	/* Before the address is resolved. */
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path[0])), EINVAL);
	assert_int_equal(resolve(&r, 0, c.id, "127.128.1.1", 1000), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	/* As long as there is no path, the GIDs of both ends stand in its place. */
	assert_int_equal(cmd(&r, 0, CM_QUERY_ROUTE, &c, sizeof(c), sizeof(q)), 0);
	assert_int_equal(q.num_paths, 0);
	memcpy(path[0].record.sgid, q.path[0].sgid, 16);
	memcpy(path[0].record.dgid, q.path[0].dgid, 16);
	path[1] = path[0];
	/* No path, and parts of one. */
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, 0), EINVAL);
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path[0]) - 1),
			 EINVAL);
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path[0]) + 8),
			 EINVAL);
	/* None that is for both directions. */
	path[0].flags = 0x28;
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path[0])), EINVAL);
	path[0].flags = CM_PATH_FLAGS | 4;
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path[0])), EINVAL);
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, (void *)8, sizeof(path[0])),
			 EFAULT);
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH + 1, path, sizeof(path[0])),
			 ENOSYS);
	assert_int_equal(event(&r, 0), -1);
	/* The second one is. */
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path)), 0);
	assert_int_equal(event(&r, 0), CM_EV_ROUTE_RESOLVED);
	assert_int_equal(r.ev.status, 0);
	assert_int_equal(cmd(&r, 0, CM_QUERY_ROUTE, &c, sizeof(c), sizeof(q)), 0);
	assert_int_equal(q.num_paths, 1);
	assert_int_equal(q.path[0].dlid, htons(lid));
	assert_int_equal(q.path[0].mtu, 4);
	/* Not a second time; and the connection uses it. */
	assert_int_equal(option(&r, c.id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path)), EINVAL);
	listener(&r, 1, CM_PS_TCP, "0.0.0.0", 1);
	assert_int_equal(connect_len(&r, 0, c.id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_CONNECT_REQUEST);
	passive = r.ev.id;
	assert_int_equal(accept_len(&r, 1, passive, 0, 1), 0);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_RESPONSE);
	for (int i = 0; i < 2; i++) {
		struct cm_qp_attr a;

		assert_int_equal(attr(&r, i, i ? passive : c.id, 2, &a), 0);
		assert_int_equal(a.path_mtu, 4);
	}
	end(&r);
}

static void paths_of_the_program(void **state)
{
	(void)state;
	given_path(SH_FACE_MAINLINE);
	given_path(SH_FACE_OFED);
}

static const struct user_ops *real_user;
static int reads;

static int counted_read(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len)
{
	reads++;
	return real_user->read(arg, user, addr, buf, len);
}

/*
 * As many as a kernel copies hold up the others no longer than one path does: the daemon reads them
 * at once.
 */
static void paths_at_once(void **state)
{
	enum { MANY = 58254 };
	struct cm_path_data *path = calloc(MANY, sizeof(*path));
	struct user_ops user;
	struct rig r;
	uint32_t id;
	int one;

	(void)state;
	assert_non_null(path);
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(resolve(&r, 0, id, "127.128.1.1", 1000), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	real_user = r.t->k.user;
	user = *real_user;
	user.read = counted_read;
	r.t->k.user = &user;
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(*path)), EINVAL);
	one = reads;
	reads = 0;
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, MANY * sizeof(*path)),
			 EINVAL);
	assert_int_equal(reads, one);
	/* What no kernel takes is not read at all: the command is, and nothing else. */
	reads = 0;
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, (MANY + 1) * sizeof(*path)),
			 EINVAL);
	assert_int_equal(reads, one - 1);
	r.t->k.user = real_user;
	end(&r);
	free(path);
}

/*
 * More of them than a page has: the first one for both directions counts, but all are to be there.
 */
static void many_paths(void **state)
{
	struct cm_path_data path[60];
	struct rig r;
	uint32_t id;

	(void)state;
	memset(path, 0, sizeof(path));
	for (int i = 40; i < 60; i++) {
		path[i].flags = CM_PATH_FLAGS;
		path[i].record.pkey = 0xffff;
		path[i].record.mtu = 0x80 | (i == 40 ? 3 : 4);
	}
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(resolve(&r, 0, id, "127.128.1.1", 1000), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	/* More than a kernel copies. */
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, 58255 * sizeof(path[0])),
			 EINVAL);
	/* The last ones are not there. */
	assert_int_equal(
		option(&r, id, CM_LEVEL_IB, CM_IB_PATH, &path[40], 58000 * sizeof(path[0])),
		EFAULT);
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, 40 * sizeof(path[0])),
			 EINVAL);
	assert_int_equal(option(&r, id, CM_LEVEL_IB, CM_IB_PATH, path, sizeof(path)), 0);
	assert_int_equal(event(&r, 0), CM_EV_ROUTE_RESOLVED);
	{
		struct cm_query_route_resp q;
		struct cm_of_id c = {.response = (uintptr_t)&q, .id = id};

		assert_int_equal(cmd(&r, 0, CM_QUERY_ROUTE, &c, sizeof(c), sizeof(q)), 0);
		assert_int_equal(q.path[0].mtu, 3);
	}
	end(&r);
}

/*
 * As long as a QP waits for an acknowledgement: 0 is for ever, and not the same as no word of it.
 */
static void acknowledgements(void **state)
{
	static const uint8_t times[] = {0, 1, 31};
	struct cm_qp_attr a;
	uint32_t id, passive;
	uint8_t unsaid;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	(void)establish(&r, &passive);
	assert_int_equal(attr(&r, 0, passive, 3, &a), 0);
	unsaid = a.timeout;
	assert_in_range(unsaid, 1, 31);
	for (size_t i = 0; i < sizeof(times); i++) {
		id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
		assert_int_equal(option_of(&r, 1, id, CM_ID_ACK_TIMEOUT, &times[i], 4), EINVAL);
		assert_int_equal(option_of(&r, 1, id, CM_ID_ACK_TIMEOUT, (void *)8, 1), EFAULT);
		assert_int_equal(option_of(&r, 1, id, CM_ID_ACK_TIMEOUT, &times[i], 1), 0);
		assert_int_equal(connect_len(&r, 1, id, 0), 0);
		assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
		passive = r.ev.id;
		assert_int_equal(accept_len(&r, 0, passive, 0, 1), 0);
		assert_int_equal(event(&r, 1), CM_EV_CONNECT_RESPONSE);
		assert_int_equal(attr(&r, 1, id, 3, &a), 0);
		assert_int_equal(a.timeout, times[i]);
		/* It is the side's own. */
		assert_int_equal(attr(&r, 0, passive, 3, &a), 0);
		assert_int_equal(a.timeout, unsaid);
	}
	/* Datagrams are not acknowledged. */
	id = create_of(&r, CM_PS_UDP, CM_QPT_UD);
	assert_int_equal(option_of(&r, 0, id, CM_ID_ACK_TIMEOUT, &times[2], 1), EINVAL);
	end(&r);
	begin(&r, SH_FACE_OFED);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(option_of(&r, 0, id, CM_ID_ACK_TIMEOUT, &times[2], 1), ENOSYS);
	end(&r);
}

/*
 * How much of an event fits: kernels of OFED's time want room for all of theirs, and write no more.
 */
static void room_for_an_event(void **state)
{
	static const struct {
		enum sh_face face;
		uint16_t least, all;
	} kernel[] = {{SH_FACE_MAINLINE, 324, 336}, {SH_FACE_OFED, 328, 328}};
	uint8_t bytes[344];
	uint64_t response = (uintptr_t)bytes;
	struct rig r;
	uint32_t id;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(&r, kernel[i].face);
		id = create(&r, 0, CM_PS_TCP);
		assert_int_equal(resolve(&r, 0, id, "127.128.1.1", 1000), 0);
		cm_timer_ready(r.t->k.rdmacm);
		assert_int_equal(
			cmd(&r, 0, CM_GET_EVENT, &response, sizeof(response), kernel[i].least - 1),
			ENOSPC);
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(
			cmd(&r, 0, CM_GET_EVENT, &response, sizeof(response), kernel[i].least), 0);
		assert_int_equal(bytes[kernel[i].least], 0xee);
		assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, id, 1000), 0);
		cm_timer_ready(r.t->k.rdmacm);
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(
			cmd(&r, 0, CM_GET_EVENT, &response, sizeof(response), sizeof(bytes)), 0);
		assert_int_not_equal(bytes[kernel[i].all - 1], 0xee);
		assert_int_equal(bytes[kernel[i].all], 0xee);
		end(&r);
	}
}

/* What a header says is looked at before the command. */
static void short_writes(void **state)
{
	struct {
		struct cm_hdr hdr;
		uint8_t body[64];
	} buf = {.hdr = {.number = CM_LISTEN, .in = 8}};
	struct rig r;
	struct cm_call c = {.tid = getpid()};

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	c.cm = r.t->k.rdmacm;
	c.proc = r.t->proc;
	c.ch = r.ch[0];
	assert_int_equal(cm_command(&c, (uintptr_t)&buf, 0), -EINVAL);
	assert_int_equal(cm_command(&c, (uintptr_t)&buf, 7), -EINVAL);
	assert_int_equal(cm_command(&c, (uintptr_t)&buf, 15), -EINVAL);
	assert_int_equal(cm_command(&c, (uintptr_t)&buf, 16), -ENOENT);
	assert_int_equal(cm_command(&c, 8, 16), -EFAULT);
	end(&r);
}

static void resolve_in_another_family(void **state)
{
	struct rig r;
	uint32_t id;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_any6(&r, id, 0), 0);
	assert_int_equal(resolve(&r, 0, id, "127.128.1.1", 1000), EINVAL);
	assert_int_equal(event(&r, 0), -1);
	end(&r);
}

/*
 * A backlog of 0, a negative one, and one that is too large, is as large as can be: the next
 * request waits.
 */
static void largest_backlog(void **state)
{
	static const uint32_t backlogs[] = {(uint32_t)-1, 0, 1025, 1024};
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	for (unsigned int n = 0; n < sizeof(backlogs) / sizeof(backlogs[0]); n++) {
		uint32_t id = listener(&r, 0, CM_PS_TCP, "0.0.0.0", backlogs[n]);

		for (int i = 0; i < 1025; i++)
			assert_int_equal(
				connect_len(&r, 1, routed(&r, 1, CM_PS_TCP, "127.128.0.1"), 0), 0);
		for (int i = 0; i < 8; i++)
			cm_timer_ready(r.t->k.rdmacm);
		assert_int_equal(r.ch[0]->unread, 1024);
		destroy(&r, 0, id);
		while (event(&r, 1) != -1)
			;
	}
	end(&r);
}

/*
 * A listener at one address refuses at another one of its device; at other devices there is none.
 */
static void listener_elsewhere(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "127.128.0.2", 1);
	assert_int_equal(connect_len(&r, 1, routed(&r, 1, CM_PS_TCP, "127.128.0.1"), 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 28);
	assert_int_equal(connect_len(&r, 1, routed(&r, 1, CM_PS_TCP, "127.128.0.3"), 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 8);
	assert_int_equal(connect_len(&r, 1, routed(&r, 1, CM_PS_TCP, "127.128.0.2"), 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	end(&r);
}

static uint32_t create_for(struct rig *r, int host, uint8_t qp_type)
{
	struct cm_number_resp resp = {.value = 99};
	struct cm_create_id c = {
		.uid = 0x1000, .response = (uintptr_t)&resp, .ps = CM_PS_IB, .qp_type = qp_type};

	assert_int_equal(cmd(r, host, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

/*
 * Asks the listener of host 0 by an id of this type. Returns the event that somebody gets, on
 * *host.
 */
static int ask_by(struct rig *r, uint8_t qp_type, int *host)
{
	uint32_t id = create_for(r, 1, qp_type);

	assert_int_equal(resolve(r, 1, id, "127.128.0.1", 1000), 0);
	assert_int_equal(event(r, 1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(r, 1, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(r, 1), CM_EV_ROUTE_RESOLVED);
	assert_int_equal(connect_len(r, 1, id, 0), 0);
	for (*host = 0; *host < 2; (*host)++) {
		int ev = event(r, *host);

		if (ev >= 0)
			return ev;
	}
	return -1;
}

/* In the port space that has ids of all types: each asks its own, and XRC's sender its receiver. */
static void listener_of_another_type(void **state)
{
	static const uint8_t types[] = {CM_QPT_RC, CM_QPT_XRC_INI, CM_QPT_XRC_TGT};
	struct rig r;
	int host;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	for (unsigned int l = 0; l < 3; l++) {
		uint32_t id = create_for(&r, 0, types[l]);

		assert_int_equal(bind_to(&r, 0, id, "0.0.0.0", PORT), 0);
		assert_int_equal(two(&r, 0, CM_LISTEN, id, 10), 0);
		for (unsigned int a = 0; a < 2; a++) {
			bool fits = types[a] == CM_QPT_RC ? types[l] == CM_QPT_RC
							  : types[l] == CM_QPT_XRC_TGT;
			int ev = ask_by(&r, types[a], &host);

			assert_int_equal(ev, fits ? CM_EV_CONNECT_REQUEST : CM_EV_REJECTED);
			assert_int_equal(host, fits ? 0 : 1);
			if (!fits)
				assert_int_equal(r.ev.status, 28);
		}
		destroy(&r, 0, id);
		while (event(&r, 1) >= 0)
			;
	}
	end(&r);
}

/* ::1 leads to the own host, from itself, and a listener of all addresses gets what comes there. */
static void loopback_of_ipv6(void **state)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(PORT),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct cm_query_route_resp q;
	struct cm_of_id ask = {.response = (uintptr_t)&q};
	struct cm_bind_ip b = {0};
	struct cm_resolve_ip c = {.timeout_ms = 1000};
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	c.id = create(&r, 1, CM_PS_TCP);
	memcpy(&c.dst, &in6, sizeof(in6));
	assert_int_equal(cmd(&r, 1, CM_RESOLVE_IP, &c, sizeof(c), 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_ADDR_RESOLVED);
	ask.id = c.id;
	assert_int_equal(cmd(&r, 1, CM_QUERY_ROUTE, &ask, sizeof(ask), sizeof(q)), 0);
	assert_memory_equal(&((struct sockaddr_in6 *)&q.src)->sin6_addr, &in6.sin6_addr, 16);
	assert_memory_equal(&((struct sockaddr_in6 *)&q.dst)->sin6_addr, &in6.sin6_addr, 16);
	assert_int_equal(q.port, 1);
	assert_memory_equal(q.path[0].sgid, q.path[0].dgid, 16);
	assert_int_equal(two(&r, 1, CM_RESOLVE_ROUTE, c.id, 1000), 0);
	assert_int_equal(event(&r, 1), CM_EV_ROUTE_RESOLVED);
	b.id = create(&r, 1, CM_PS_TCP);
	in6.sin6_addr = in6addr_any;
	memcpy(&b.addr, &in6, sizeof(in6));
	assert_int_equal(cmd(&r, 1, CM_BIND_IP, &b, sizeof(b), 0), 0);
	assert_int_equal(two(&r, 1, CM_LISTEN, b.id, 1), 0);
	assert_int_equal(connect_len(&r, 1, c.id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_CONNECT_REQUEST);
	assert_int_equal(event(&r, 0), -1);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(privileged_ports),
		cmocka_unit_test(ports_of_the_kernels_choice),
		cmocka_unit_test(sockets_of_the_machine),
		cmocka_unit_test(any_of_both_families),
		cmocka_unit_test(paths_of_the_program),
		cmocka_unit_test(many_paths),
		cmocka_unit_test(acknowledgements),
		cmocka_unit_test(room_for_an_event),
		cmocka_unit_test(short_writes),
		cmocka_unit_test(resolve_in_another_family),
		cmocka_unit_test(largest_backlog),
		cmocka_unit_test(paths_at_once),
		cmocka_unit_test(listener_elsewhere),
		cmocka_unit_test(listener_of_another_type),
		cmocka_unit_test(loopback_of_ipv6),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
