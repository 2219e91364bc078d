// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registration of agents, with the checks of the kernel, and what follows from it.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/kernel/lists.h"
#include "agent.h"
#include "file.h"

#define USER_RMPP 1u

bool mad_class_rmpp(uint8_t c)
{
	return c == CLASS_SA || c == 0x06 || c == 0x10 || c == 0x12 || mad_class_oui(c);
}

bool mad_is_rmpp(const uint8_t *mad)
{
	return mad_class_rmpp(mad[AT_CLASS]) && mad[AT_RMPP_FLAGS] & RMPP_ACTIVE;
}

static bool methods_meet(const struct umad_agent *a, const struct umad_agent *b)
{
	return (a->methods[0] & b->methods[0]) || (a->methods[1] & b->methods[1]);
}

/* Has an agent of this port registered one of these methods? */
static bool taken(struct umad_file *f, const struct umad_agent *a)
{
	struct umad_file *o;

	DL_FOREACH(f->u->files, o)
	{
		if (o->hca != f->hca || o->port != f->port)
			continue;
		for (uint32_t i = 0; i < UMAD_AGENTS; i++) {
			const struct umad_agent *b = &o->agent[i];

			if (b->used && b->mgmt_class && b->mgmt_class == a->mgmt_class &&
			    b->version == a->version && b->oui == a->oui && methods_meet(a, b))
				return true;
		}
	}
	return false;
}

/* One more than the greatest version of a class that kernels register. */
static uint32_t versions(const struct umad *u)
{
	return u->cfg->face == SH_FACE_OFED ? 8 : 0x83;
}

static int check(const struct umad *u, const struct umad_agent *a)
{
	bool smp = a->mgmt_class == CLASS_SMP || a->mgmt_class == CLASS_DIRECTED;

	if (a->qpn > 1 || a->rmpp_version > 1)
		return -EINVAL;
	if (!a->mgmt_class)
		return 0;
	if (a->version >= versions(u))
		return -EINVAL;
	if (a->rmpp_version && !mad_class_rmpp(a->mgmt_class))
		return -EINVAL;
	if (a->mgmt_class >= 80 && a->mgmt_class != CLASS_DIRECTED)
		return -EINVAL;
	if (mad_class_oui(a->mgmt_class) && !a->oui)
		return -EINVAL;
	return smp == (a->qpn == 0) ? 0 : -EINVAL;
}

static int add(struct umad_file *f, struct umad_agent *a, uint32_t *id)
{
	uint32_t i;
	int err = check(f->u, a);

	if (err)
		return err;
	if (!mad_class_oui(a->mgmt_class))
		a->oui = 0;
	for (i = 0; i < UMAD_AGENTS && f->agent[i].used; i++)
		;
	if (i == UMAD_AGENTS)
		return -ENOMEM;
	if (a->mgmt_class && taken(f, a))
		return -EINVAL;
	a->used = true;
	a->hi_tid = ++f->u->hi_tid;
	f->agent[i] = *a;
	f->registered = true;
	*id = i;
	return 0;
}

int umad_register(struct umad_file *f, struct umad_reg *r)
{
	struct umad_agent a = {.qpn = r->qpn,
			       .mgmt_class = r->mgmt_class,
			       .version = r->mgmt_class_version,
			       .rmpp_version = r->rmpp_version,
			       .oui = (uint32_t)r->oui[0] << 16 | r->oui[1] << 8 | r->oui[2]};

	memcpy(a.methods, r->method_mask, sizeof(a.methods));
	return add(f, &a, &r->id);
}

int umad_register2(struct umad_file *f, struct umad_reg2 *r)
{
	struct umad_agent a = {.qpn = (uint8_t)r->qpn,
			       .mgmt_class = r->mgmt_class,
			       .version = r->mgmt_class_version,
			       .rmpp_version = r->rmpp_version,
			       .oui = r->oui};
	int err;

	if (r->qpn > 1)
		return -EINVAL;
	if (r->flags & ~USER_RMPP) {
		r->flags = USER_RMPP;
		return -EINVAL;
	}
	if (r->oui >> 24)
		return -EINVAL;
	/* The program makes segments itself: this agent counts as one without RMPP. */
	if (r->flags)
		a.rmpp_version = 0;
	memcpy(a.methods, r->method_mask, sizeof(a.methods));
	err = add(f, &a, &r->id);
	if (!err)
		f->pkey = true;
	return err;
}

int umad_unregister(struct umad_file *f, uint32_t id)
{
	struct umad_msg *m, *tmp;

	if (id >= UMAD_AGENTS || !f->agent[id].used)
		return -EINVAL;
	f->agent[id].used = false;
	/* No program learns what becomes of its requests. */
	DL_FOREACH_SAFE(f->sent, m, tmp)
	if (m->hdr.id == id)
		umad_sent_drop(f, m);
	return 0;
}

int umad_enable_pkey(struct umad_file *f)
{
	if (f->registered)
		return -EINVAL;
	f->pkey = true;
	return 0;
}

static uint32_t oui_of(const uint8_t *mad)
{
	return (uint32_t)mad[AT_OUI] << 16 | mad[AT_OUI + 1] << 8 | mad[AT_OUI + 2];
}

struct umad_file *umad_agent_for(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
				 uint32_t *id)
{
	uint8_t method = mad[AT_METHOD] & 0x7f;
	struct umad_file *f;

	DL_FOREACH(u->files, f)
	{
		if (f->hca != hca || f->port != port)
			continue;
		for (uint32_t i = 0; i < UMAD_AGENTS; i++) {
			const struct umad_agent *a = &f->agent[i];

			if (!a->used || a->mgmt_class != mad[AT_CLASS] ||
			    a->version != mad[AT_CLASS_VERSION] ||
			    !(a->methods[method / 64] >> (method % 64) & 1))
				continue;
			if (mad_class_oui(a->mgmt_class) && a->oui != oui_of(mad))
				continue;
			*id = i;
			return f;
		}
	}
	return NULL;
}

struct umad_file *umad_agent_of(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
				uint32_t *id)
{
	struct umad_file *f;

	DL_FOREACH(u->files, f)
	{
		if (f->hca != hca || f->port != port)
			continue;
		for (uint32_t i = 0; i < UMAD_AGENTS; i++) {
			if (!f->agent[i].used || f->agent[i].hi_tid != mad32(mad, AT_TID))
				continue;
			*id = i;
			return f;
		}
	}
	return NULL;
}

struct umad_file *umad_asker(struct umad *u, uint32_t hca, uint32_t port, const uint8_t *mad,
			     struct umad_msg **sent)
{
	uint32_t hi_tid = mad32(mad, AT_TID);
	struct umad_file *f;
	struct umad_msg *m;

	DL_FOREACH(u->files, f)
	{
		if (f->hca != hca || f->port != port)
			continue;
		DL_FOREACH(f->sent, m)
		{
			const struct umad_agent *a = &f->agent[m->hdr.id];

			/* No response answers another one. */
			if (!a->used || a->hi_tid != hi_tid || mad_is_response(m->mad) ||
			    mad64(m->mad, AT_TID) != mad64(mad, AT_TID) ||
			    m->mad[AT_CLASS] != mad[AT_CLASS])
				continue;
			*sent = m;
			return f;
		}
	}
	return NULL;
}

struct umad_msg *umad_sent(struct umad *u, uint64_t number, struct umad_file **f)
{
	struct umad_file *o;
	struct umad_msg *m;

	if (!number)
		return NULL;
	DL_FOREACH(u->files, o)
	DL_FOREACH(o->sent, m)
	if (m->number == number) {
		*f = o;
		return m;
	}
	return NULL;
}
