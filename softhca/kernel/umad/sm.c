// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The built-in subnet manager gives way when a program opens an issm file: it answers no more. When
 * the last such file is closed, it manages the subnet again, with the LIDs that it finds. What the
 * program has written is forgotten then, and each port has the SM LID that it had.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/sysfs.h"
#include "notice.h"
#include "sa_inform.h"
#include "sa_service.h"
#include "sm.h"
#include "smp.h"

struct umad_written *sm_written(struct umad *u)
{
	return u->written;
}

struct umad_written *sm_write(struct umad *u)
{
	struct umad_written *w = u->written;

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	u->written = w;
	return w;
}

void sm_forget(struct umad *u)
{
	free(u->written);
	u->written = NULL;
}

bool sm_built_in(const struct umad *u)
{
	return !u->managers;
}

/* Gives the port the bit, or takes it away, in everything that tells the mask. */
static void say(struct umad *u, uint32_t hca, uint32_t port, bool is)
{
	if (is)
		u->hcas[hca].sm_ports |= 1u << port;
	else
		u->hcas[hca].sm_ports &= ~(1u << port);
	(void)sysfs_port(u->k, hca, port, 0);
	notice_mask(u, hca, port);
}

static const struct sh_port *port_at(struct umad *u, uint32_t i)
{
	uint32_t hca, port;

	fabric_end_of(u, i + 1, &hca, &port);
	return &sh_hca(u->dev, hca)->port[port - 1];
}

/* The manager that the ports know is a port, whose LID the program may change. */
static void remember(struct umad *u)
{
	for (uint32_t i = 0; i < fabric_ports(u); i++) {
		u->sm_lid[i] = port_at(u, i)->sm_lid;
		u->sm_at[i] = 0;
		for (uint32_t j = 0; j < fabric_ports(u) && !u->sm_at[i]; j++)
			if (port_at(u, j)->lid == u->sm_lid[i])
				u->sm_at[i] = j + 1;
	}
}

static void restore(struct umad *u)
{
	const struct sh_config *c = u->cfg;
	struct sh_status st;

	for (uint32_t i = 0; i < fabric_ports(u); i++) {
		uint32_t at = u->sm_at[i], hca, port;
		struct sh_port_msg m = {.what = SH_PORT_SM,
					.a = at ? port_at(u, at - 1)->lid : u->sm_lid[i]};

		fabric_end_of(u, i + 1, &hca, &port);
		m.host = hca / c->hcas_per_host;
		m.hca = hca % c->hcas_per_host;
		m.port = port;
		(void)port_change(u->k, &m, true, &st);
	}
}

int sm_told(struct umad *u, const struct mad_node *n, const uint8_t *mad)
{
	uint8_t notice[NOTICE_SIZE] = {0};

	if (!smp_is_sm(u, n))
		return -1;
	memcpy(notice, mad + AT_DATA, NOTICE_ISSUER);
	sa_inform(u, notice);
	return 0;
}

int sm_open(struct umad *u, uint32_t hca, uint32_t port)
{
	if (u->hcas[hca].sm_ports >> port & 1)
		return -EAGAIN;
	if (!u->managers++) {
		remember(u);
		/* Programs are told to register anew when there is another manager. */
		sa_inform_forget(u);
		sa_service_forget(u);
		notice_forget(u);
	}
	say(u, hca, port, true);
	return 0;
}

void sm_closed(struct umad *u, uint32_t hca, uint32_t port)
{
	say(u, hca, port, false);
	/* If the instance ends, the built-in manager does not come back. */
	if (--u->managers || kern_ends(u->k))
		return;
	sm_forget(u);
	restore(u);
}
