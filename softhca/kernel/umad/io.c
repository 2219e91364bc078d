// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sending. Trusts nothing of what a program writes. A MAD with a time limit is kept until its
 * answer comes. Without an answer it is sent again, as often as the program said; in the end the
 * program reads its header with the error. A response with a time limit has no answer, and always
 * ends so, as it does on a kernel. A message that RMPP cuts into segments is also kept until its
 * receiver has acknowledged it, with or without a limit.
 *
 *	shorter than the header and a MAD's with RMPP		EINVAL
 *	shorter than the header and those of the MAD's class	EINVAL
 *	an agent that the file has not				EINVAL
 *	longer than a MAD, and not RMPP				EINVAL
 *	the transaction of a request that waits			EINVAL
 *	the same for a response, to the same place		EINVAL
 *	a directed route that cannot begin at this port		EINVAL
 *	a P_Key or GID that the port's table has no place for	EINVAL
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/process.h"
#include "softhca/kernel/lists.h"
#include "agent.h"
#include "fabric.h"
#include "file.h"
#include "io.h"
#include "notice.h"
#include "room.h"
#include "reassemble.h"
#include "sa_service.h"
#include "segments.h"

#define RMPP_MS 2000

int umad_timer_init(struct umad *u)
{
	u->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return u->timer < 0 ? -errno : 0;
}

void umad_timer_exit(struct umad *u)
{
	if (u->timer >= 0)
		close(u->timer);
}

void umad_timer_at(struct umad *u, uint64_t due)
{
	struct itimerspec t = {0};

	if (u->due && u->due <= due)
		return;
	u->due = due;
	t.it_value.tv_sec = (time_t)(due / 1000000000);
	t.it_value.tv_nsec = (long)(due % 1000000000);
	(void)timerfd_settime(u->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static bool by_rmpp(const struct umad_agent *a, const uint8_t *mad)
{
	return a->rmpp_version && mad_is_rmpp(mad);
}

/* m may have been freed afterwards. */
static void send(struct umad_file *f, const struct umad_msg *m)
{
	const struct umad_hdr *h = &m->hdr;
	const struct sh_port *p = &sh_hca(f->u->dev, f->hca)->port[f->port - 1];
	bool smp = mad_is_smp(m->mad);
	struct mad_way w = {
		.hca = f->hca,
		.port = f->port,
		.slid = (uint16_t)p->lid,
		.dlid = be16toh(h->lid),
		.qpn = !smp,
		.to_qpn = be32toh(h->qpn) & 0xffffff,
		.sl = h->sl & 15,
		.pkey_index = f->pkey ? h->pkey_index : 0,
		.number = m->number,
		.whole = by_rmpp(&f->agent[h->id], m->mad),
		.grh = h->grh_present,
	};

	w.pkey = p->pkey[w.pkey_index];
	if (w.grh) {
		memcpy(w.route.sgid, p->gid[h->gid_index], 16);
		memcpy(w.route.dgid, h->gid, 16);
		w.route.flow_label = be32toh(h->flow_label);
		w.route.traffic_class = h->traffic_class;
		w.route.hop_limit = h->hop_limit;
	}

	fabric_send(f->u, &w, m->mad, m->len);
}

/* RMPP waits for the acknowledgement first, whatever the limit for the answer, or without one. */
static uint32_t limit(const struct umad_file *f, const struct umad_msg *m)
{
	uint32_t ms = m->hdr.timeout_ms;

	return by_rmpp(&f->agent[m->hdr.id], m->mad) && (!ms || ms > RMPP_MS) ? RMPP_MS : ms;
}

static void wait_for(struct umad_file *f, struct umad_msg *m, uint32_t ms)
{
	m->due = sh_now() + (uint64_t)ms * 1000000;
	umad_timer_at(f->u, m->due);
}

void umad_acked(struct umad *u, uint64_t number)
{
	struct umad_file *f;
	struct umad_msg *m = umad_sent(u, number, &f);

	if (!m)
		return;
	if (!m->hdr.timeout_ms) {
		umad_sent_drop(f, m);
		return;
	}
	m->retries = 0;
	wait_for(f, m, m->hdr.timeout_ms);
}

static void give_up(struct umad_file *f, struct umad_msg *m)
{
	struct umad_msg *told = umad_msg_instead(f, m, MAD_HEADER);

	if (told) {
		told->hdr = m->hdr;
		told->hdr.status = ETIMEDOUT;
		memcpy(told->mad, m->mad, MAD_HEADER);
		umad_queue(f, told);
	}
	umad_sent_drop(f, m);
}

static void again(struct umad_file *f, struct umad_msg *m)
{
	if (!m->retries) {
		give_up(f, m);
		return;
	}
	m->retries--;
	wait_for(f, m, limit(f, m));
	send(f, m);
}

void umad_timer_ready(struct umad *u)
{
	uint64_t n, now = sh_now(), next, leases, segments, assemblies;
	struct umad_file *f;
	struct umad_msg *m;

	(void)!read(u->timer, &n, sizeof(n));
	u->due = 0;
	next = notice_due(u, now);
	leases = sa_service_due(u, now);
	segments = segments_due(u, now);
	assemblies = reassemble_due(u, now);
	if (leases && (!next || leases < next))
		next = leases;
	if (segments && (!next || segments < next))
		next = segments;
	if (assemblies && (!next || assemblies < next))
		next = assemblies;
	DL_FOREACH(u->files, f)
	{
		/*
		 * A request that is sent again may end by its answer, and end another request of
		 * the same file.
		 */
		for (m = f->sent; m; m = f->next_sent) {
			f->next_sent = m->next;
			if (m->due <= now)
				again(f, m);
		}
		DL_FOREACH(f->sent, m)
		if (!next || m->due < next)
			next = m->due;
	}
	if (next)
		umad_timer_at(u, next);
}

static bool same_place(const struct umad_hdr *a, const struct umad_hdr *b)
{
	if (!a->grh_present != !b->grh_present)
		return false;
	return a->grh_present ? !memcmp(a->gid, b->gid, sizeof(a->gid)) : a->lid == b->lid;
}

/* As the kernel compares them. */
static bool waits(const struct umad_file *f, const struct umad_hdr *h, const uint8_t *mad)
{
	bool back = mad_is_response(mad);
	const struct umad_msg *m;

	DL_FOREACH(f->sent, m)
	if (mad64(m->mad, AT_TID) == mad64(mad, AT_TID) && m->mad[AT_CLASS] == mad[AT_CLASS] &&
	    mad_is_response(m->mad) == back && (!back || same_place(&m->hdr, h)))
		return true;
	return false;
}

size_t umad_rmpp_header(uint8_t mgmt_class)
{
	return mgmt_class == CLASS_SA ? 56 : mad_class_oui(mgmt_class) ? 40 : 64;
}

/* The header of the first segment, as the receiver is to see it. */
static void whole_message(uint8_t *mad, size_t len)
{
	size_t header = umad_rmpp_header(mad[AT_CLASS]);
	size_t data = len > header ? len - header : 0, piece = MAD_SIZE - header;
	size_t n = data ? (data + piece - 1) / piece : 1;

	mad[AT_RMPP_VERSION] = 1;
	mad[AT_RMPP_TYPE] = RMPP_DATA;
	mad[AT_RMPP_FLAGS] = (uint8_t)((mad[AT_RMPP_FLAGS] & ~RMPP_FLAGS) | RMPP_ACTIVE |
				       RMPP_FIRST | (n == 1 ? RMPP_LAST : 0));
	mad[AT_RMPP_STATUS] = 0;
	mad_put32(mad, AT_RMPP_NUMBER, 1);
	mad_put32(mad, AT_RMPP_LENGTH, (uint32_t)(data + n * (header - MAD_RMPP)));
}

static int refused(struct umad_file *f, const struct umad_agent *a, const struct umad_hdr *h,
		   const uint8_t *mad, size_t len)
{
	bool rmpp = a->rmpp_version && mad[AT_RMPP_FLAGS] & RMPP_ACTIVE;

	/* Before ENABLE_PKEY the field is not there. */
	if (f->pkey && h->pkey_index >= SH_PKEYS)
		return -EINVAL;
	if (h->grh_present && h->gid_index >= SH_GIDS)
		return -EINVAL;
	if (a->rmpp_version && !mad_class_rmpp(mad[AT_CLASS]))
		return -EINVAL;
	if (len > MAD_SIZE && !rmpp)
		return -EINVAL;
	/* Of the other classes, headers end before the RMPP header does. */
	if (mad_class_rmpp(mad[AT_CLASS]) && len < umad_rmpp_header(mad[AT_CLASS]))
		return -EINVAL;
	if (mad_is_smp(mad) != (a->qpn == 0))
		return -EINVAL;
	if (mad[AT_CLASS] == CLASS_DIRECTED && !fabric_route_ok(mad, f->port))
		return -EINVAL;
	return 0;
}

long umad_write(struct umad_file *f, const uint8_t *what, size_t len)
{
	size_t header = f->pkey ? sizeof(struct umad_hdr) : UMAD_HDR_OLD, n = len - header;
	struct umad_hdr h = {0};
	const struct umad_agent *a;
	struct umad_msg *m;
	bool rmpp, own_rmpp;
	int err;

	if (len < header + MAD_RMPP)
		return -EINVAL;
	memcpy(&h, what, header);
	if (h.id >= UMAD_AGENTS || !f->agent[h.id].used)
		return -EINVAL;
	a = &f->agent[h.id];
	/* A message of segments is as long as its data. Anything else fills a datagram. */
	rmpp = a->rmpp_version && what[header + AT_RMPP_FLAGS] & RMPP_ACTIVE;
	m = umad_msg_new(f, n < MAD_SIZE && !rmpp ? MAD_SIZE : n);
	if (!m)
		return -ENOMEM;
	m->hdr = h;
	memcpy(m->mad, what + header, n);
	if (!mad_is_response(m->mad))
		mad_put32(m->mad, AT_TID, a->hi_tid);
	own_rmpp = !a->rmpp_version && mad_is_rmpp(m->mad);
	err = refused(f, a, &h, m->mad, n);
	/* A program that makes segments itself uses one transaction for all of them. */
	if (!err && !own_rmpp && waits(f, &h, m->mad))
		err = -EINVAL;
	if (err) {
		umad_msg_free(f, m);
		return err;
	}
	if (rmpp)
		whole_message(m->mad, n);
	/*
	 * Without a limit no program waits for an answer. RMPP waits for the acknowledgement all
	 * the same.
	 */
	if (!h.timeout_ms && !rmpp) {
		send(f, m);
		umad_msg_free(f, m);
		return (long)len;
	}
	m->number = ++f->u->sent_number;
	m->retries = h.retries;
	DL_APPEND(f->sent, m);
	wait_for(f, m, limit(f, m));
	send(f, m);
	return (long)len;
}
