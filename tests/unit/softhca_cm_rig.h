/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's room for connections by address, two hosts with a channel each, and its commands as
 * functions: for the tests of that room. Include after cmocka.h.
 */
#ifndef SOFTHCA_CM_RIG_H
#define SOFTHCA_CM_RIG_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "softhca/host/address.h"
#include "softhca/kernel/rdmacm/channel.h"
#include "softhca/kernel/rdmacm/command.h"
#include "softhca/kernel/rdmacm/id.h"
#include "softhca/kernel/rdmacm/message.h"
#include "softhca/kernel/rdmacm/rdmacm.h"
#include "softhca/kernel/rdmacm/timer.h"
#include "softhca/host/process.h"
#include "softhca_kernel.h"

#define PORT 7471

struct rig {
	struct kt *t;
	struct kproc *proc[2]; /* of each host */
	struct cm_channel *ch[2];
	int fd[2];
	struct cm_event_resp ev;
};

static inline struct cm_channel *channel(struct rig *r, uint32_t host, int *fd)
{
	struct kproc p = {.host = host, .pid = getpid()};
	struct cm_channel *ch;

	assert_int_equal(cm_channel_open(r->t->k.rdmacm, &p, O_RDWR, &ch, fd), 0);
	return ch;
}

static inline void begin(struct rig *r, enum sh_face face)
{
	memset(r, 0, sizeof(*r));
	r->t = kt_start(face, 2, 2);
	for (uint32_t i = 0; i < 2; i++)
		r->ch[i] = channel(r, i, &r->fd[i]);
}

static inline void end(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		if (r->ch[i])
			cm_channel_free(r->ch[i]);
		close(r->fd[i]);
	}
	cm_timer_ready(r->t->k.rdmacm);
	assert_int_equal(r->t->k.rdmacm->channels.used, 0);
	for (int i = 0; i < 2; i++) {
		const struct cm_host *h = &r->t->k.rdmacm->hosts[i];

		assert_int_equal(h->ids.used, 0);
		assert_int_equal(h->members.used, 0);
		for (int s = 0; s < CM_SPACES; s++)
			assert_null(h->ports[s]);
	}
	assert_null(r->t->k.rdmacm->groups);
	assert_null(r->t->k.rdmacm->ids);
	kt_stop(r->t);
}

/* One write(). 0 or a positive errno value. */
static inline int cmd_on(struct rig *r, struct cm_channel *ch, uint32_t number, const void *body,
			 uint16_t len, uint16_t out)
{
	struct cm_call c = {.cm = r->t->k.rdmacm, .proc = r->t->proc, .tid = getpid(), .ch = ch};
	struct {
		struct cm_hdr hdr;
		uint8_t body[512];
	} buf = {.hdr = {.number = number, .in = len, .out = out}};

	memcpy(buf.body, body, len);
	return -cm_command(&c, (uintptr_t)&buf, sizeof(buf.hdr) + len);
}

static inline int cmd(struct rig *r, int host, uint32_t number, const void *body, uint16_t len,
		      uint16_t out)
{
	return cmd_on(r, r->ch[host], number, body, len, out);
}

static inline uint32_t create(struct rig *r, int host, uint16_t ps)
{
	struct cm_number_resp resp = {.value = 99};
	struct cm_create_id c = {
		.uid = 0x1000, .response = (uintptr_t)&resp, .ps = ps, .qp_type = CM_QPT_RC};

	assert_int_equal(cmd(r, host, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

static inline uint32_t destroy(struct rig *r, int host, uint32_t id)
{
	struct cm_number_resp resp = {.value = 99};
	struct cm_of_id c = {.response = (uintptr_t)&resp, .id = id};

	assert_int_equal(cmd(r, host, CM_DESTROY_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

static inline int bind_to(struct rig *r, int host, uint32_t id, const char *address, uint16_t port)
{
	struct cm_bind_ip c = {.id = id};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(&c.addr, &in, sizeof(in));
	return cmd(r, host, CM_BIND_IP, &c, sizeof(c), 0);
}

static inline int two(struct rig *r, int host, uint32_t number, uint32_t id, uint32_t value)
{
	struct cm_two c = {.id = id, .value = value};

	return cmd(r, host, number, &c, sizeof(c), 0);
}

static inline int resolve(struct rig *r, int host, uint32_t id, const char *address,
			  uint32_t timeout_ms)
{
	struct cm_resolve_ip c = {.id = id, .timeout_ms = timeout_ms};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(&c.dst, &in, sizeof(in));
	return cmd(r, host, CM_RESOLVE_IP, &c, sizeof(c), 0);
}

/* The number of the next event, or -1; what it says is in r->ev. */
static inline int event(struct rig *r, int host)
{
	uint64_t response = (uintptr_t)&r->ev;
	int err;

	for (int i = 0; i < 8; i++)
		cm_timer_ready(r->t->k.rdmacm);
	memset(&r->ev, 0xee, sizeof(r->ev));
	err = cmd(r, host, CM_GET_EVENT, &response, sizeof(response), sizeof(r->ev));
	if (err == EAGAIN)
		return -1;
	assert_int_equal(err, 0);
	return (int)r->ev.event;
}

static inline bool readable(struct rig *r, int host)
{
	struct pollfd p = {.fd = r->fd[host], .events = POLLIN | POLLOUT};

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static inline uint32_t listener(struct rig *r, int host, uint16_t ps, const char *address,
				uint32_t backlog)
{
	uint32_t id = create(r, host, ps);

	assert_int_equal(bind_to(r, host, id, address, PORT), 0);
	assert_int_equal(two(r, host, CM_LISTEN, id, backlog), 0);
	return id;
}

static inline uint32_t routed(struct rig *r, int host, uint16_t ps, const char *address)
{
	uint32_t id = create(r, host, ps);

	assert_int_equal(resolve(r, host, id, address, 1000), 0);
	assert_int_equal(event(r, host), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(r, host, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(r, host), CM_EV_ROUTE_RESOLVED);
	return id;
}

static inline int connect_len(struct rig *r, int host, uint32_t id, uint8_t len)
{
	struct cm_connect c = {.id = id,
			       .param = {.qp_num = 0x123,
					 .len = len,
					 .responder_resources = 3,
					 .initiator_depth = 1,
					 .retry_count = 5,
					 .rnr_retry_count = 6,
					 .valid = 1}};

	memset(c.param.data, 0x5a, len);
	return cmd(r, host, CM_CONNECT, &c, sizeof(c), 0);
}

static inline int accept_len(struct rig *r, int host, uint32_t id, uint8_t len, uint8_t valid)
{
	struct cm_accept c = {.uid = 0x2000,
			      .id = id,
			      .param = {.qp_num = 0x456,
					.len = len,
					.responder_resources = 1,
					.initiator_depth = 2,
					.rnr_retry_count = 4,
					.valid = valid}};

	memset(c.param.data, 0xa5, len);
	return cmd(r, host, CM_ACCEPT, &c, sizeof(c), 0);
}

static inline int reject_for(struct rig *r, int host, uint32_t id, uint8_t len, uint8_t reason)
{
	struct cm_reject c = {.id = id, .len = len, .reason = reason};

	memset(c.data, 0x77, len);
	return cmd(r, host, CM_REJECT, &c, sizeof(c), 0);
}

static inline int reject(struct rig *r, int host, uint32_t id, uint8_t len)
{
	return reject_for(r, host, id, len, 0);
}

static inline int attr(struct rig *r, int host, uint32_t id, uint32_t state, struct cm_qp_attr *a)
{
	struct cm_of_id c = {.response = (uintptr_t)a, .id = id, .value = state};

	return cmd(r, host, CM_INIT_QP_ATTR, &c, sizeof(c), sizeof(*a));
}

/* Host 1 asks a listener of host 0. Returns the active id; *passive: that of the request. */
static inline uint32_t ask(struct rig *r, uint32_t *passive)
{
	uint32_t id = routed(r, 1, CM_PS_TCP, "127.128.0.1");

	assert_int_equal(connect_len(r, 1, id, 3), 0);
	assert_int_equal(event(r, 0), CM_EV_CONNECT_REQUEST);
	*passive = r->ev.id;
	return id;
}

static inline uint32_t establish(struct rig *r, uint32_t *passive)
{
	uint32_t id = ask(r, passive);

	assert_int_equal(accept_len(r, 0, *passive, 5, 1), 0);
	assert_int_equal(event(r, 1), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(event(r, 0), -1);
	assert_int_equal(accept_len(r, 1, id, 0, 0), 0);
	assert_int_equal(event(r, 0), CM_EV_ESTABLISHED);
	return id;
}

#endif
