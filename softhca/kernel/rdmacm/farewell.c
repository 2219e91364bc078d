// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See farewell.h. All of them wait equally long, so the table has them in the order in which they
 * are due.
 */
#include <stdlib.h>

#include "softhca/host/process.h"
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
static void enter(struct rdmacm *cm, struct cm_farewell *f)
{
	f->due = sh_now() + cm->response_ns;
	HASH_ADD(hh, cm->farewells, m.from, sizeof(f->m.from), f);
	/* Without memory it has been said once. */
	if (f->hh.tbl)
		cm_timer_set(cm, f->due);
	else
		free(f);
}

static void drop(struct rdmacm *cm, struct cm_farewell *f)
{
	HASH_DELETE(hh, cm->farewells, f);
	free(f);
}

void cm_farewell(struct cm_id *id)
{
	struct cm_message *m = cm_message_new(id, CM_M_DREQ);
	struct cm_farewell *f = m && id->far ? calloc(1, sizeof(*f)) : NULL;

	if (f) {
		f->m = *m;
		f->tries = CM_TRIES;
		enter(id->cm, f);
	}
	cm_message_send(id->cm, m);
}

void cm_farewell_heard(struct rdmacm *cm, const struct cm_message *m)
{
	struct cm_farewell *f;

	if (m->kind != CM_M_DREP && m->kind != CM_M_DREQ && m->kind != CM_M_REJ)
		return;
	HASH_FIND(hh, cm->farewells, &m->to, sizeof(m->to), f);
	if (f && f->m.to == m->from)
		drop(cm, f);
}

/* Without memory it is not said this time. */
static void say(struct rdmacm *cm, const struct cm_farewell *f)
{
	struct cm_message *m = calloc(1, sizeof(*m));

	if (m)
		*m = f->m;
	cm_message_send(cm, m);
}

uint64_t cm_farewell_due(struct rdmacm *cm, uint64_t now)
{
	struct cm_farewell *f;

	while ((f = cm->farewells) && f->due <= now) {
		if (!f->tries) {
			cm->count.given_up++;
			drop(cm, f);
			continue;
		}
		f->tries--;
		cm->count.repeated++;
		say(cm, f);
		HASH_DELETE(hh, cm->farewells, f);
		enter(cm, f);
	}
	return f ? f->due : 0;
}

bool cm_farewells_again(struct rdmacm *cm)
{
	struct cm_farewell *f, *tmp;

	HASH_ITER(hh, cm->farewells, f, tmp)
	say(cm, f);
	return cm->farewells;
}

void cm_farewells_free(struct rdmacm *cm)
{
	while (cm->farewells)
		drop(cm, cm->farewells);
}
