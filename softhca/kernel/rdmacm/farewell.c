// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See farewell.h. All of them wait equally long, so the table has them in the order in which they are due. */
#include <stdlib.h>

#include "softhca/host/process.h"
#include "softhca/kernel/kern.h"
#include "exchange.h"
#include "farewell.h"
#include "id.h"
#include "message.h"
#include "rdmacm.h"
#include "timer.h"

struct cm_farewell {
	struct cm_message m;
	uint64_t due;
	unsigned int tries; /* left */
	UT_hash_handle hh;  /* by m.from */
};

/* At the end of the table. */
static void enter(struct rdmacm *r, struct cm_farewell *f)
{
	f->due = sh_now() + r->response_ns;
	HASH_ADD(hh, r->farewells, m.from, sizeof(f->m.from), f);
	/* Without memory it has been said once. */
	if (f->hh.tbl)
		cm_timer_set(r->k, f->due);
	else
		free(f);
}

static void drop(struct rdmacm *r, struct cm_farewell *f)
{
	HASH_DELETE(hh, r->farewells, f);
	free(f);
}

void cm_farewell(struct cm_id *id)
{
	struct cm_message *m = cm_message_new(id, CM_M_DREQ);
	struct cm_farewell *f = m && id->far ? calloc(1, sizeof(*f)) : NULL;

	if (f) {
		f->m = *m;
		f->tries = CM_TRIES;
		enter(id->k->rdmacm, f);
	}
	cm_message_send(id->k, m);
}

void cm_farewell_heard(struct kernel *k, const struct cm_message *m)
{
	struct rdmacm *r = k->rdmacm;
	struct cm_farewell *f;

	if (m->kind != CM_M_DREP && m->kind != CM_M_DREQ && m->kind != CM_M_REJ)
		return;
	HASH_FIND(hh, r->farewells, &m->to, sizeof(m->to), f);
	if (f && f->m.to == m->from)
		drop(r, f);
}

/* Without memory it is not said this time. */
static void say(struct kernel *k, const struct cm_farewell *f)
{
	struct cm_message *m = calloc(1, sizeof(*m));

	if (m)
		*m = f->m;
	cm_message_send(k, m);
}

uint64_t cm_farewell_due(struct kernel *k, uint64_t now)
{
	struct rdmacm *r = k->rdmacm;
	struct cm_farewell *f;

	while ((f = r->farewells) && f->due <= now) {
		if (!f->tries) {
			r->count.given_up++;
			drop(r, f);
			continue;
		}
		f->tries--;
		r->count.repeated++;
		say(k, f);
		HASH_DELETE(hh, r->farewells, f);
		enter(r, f);
	}
	return f ? f->due : 0;
}

bool cm_farewells_again(struct kernel *k)
{
	struct cm_farewell *f, *tmp;

	HASH_ITER(hh, k->rdmacm->farewells, f, tmp)
	say(k, f);
	return k->rdmacm->farewells;
}

void cm_farewells_free(struct rdmacm *r)
{
	while (r->farewells)
		drop(r, r->farewells);
}
