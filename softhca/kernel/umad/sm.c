// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The built-in subnet manager gives way when a program opens an issm file: it answers no more. When
 * the last such file is closed, it manages the subnet again, with the LIDs that it finds. What the
 * program has written is forgotten then, and each port has the SM LID that it had.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/kernel/kern.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/sysfs.h"
#include "notice.h"
#include "sa_inform.h"
#include "sa_service.h"
#include "sm.h"
#include "smp.h"

struct umad_written *sm_written(struct kernel *k)
{
	return k->umad->written;
}

struct umad_written *sm_write(struct kernel *k)
{
	struct umad_written *w = k->umad->written;

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	k->umad->written = w;
	return w;
}

void sm_forget(struct kernel *k)
{
	free(k->umad->written);
	k->umad->written = NULL;
}

bool sm_built_in(const struct kernel *k)
{
	return !k->umad->managers;
}

/* Gives the port the bit, or takes it away, in everything that tells the mask. */
static void say(struct kernel *k, uint32_t hca, uint32_t port, bool is)
{
	if (is)
		k->hcas[hca].sm_ports |= 1u << port;
	else
		k->hcas[hca].sm_ports &= ~(1u << port);
	(void)sysfs_port(k, hca, port, 0);
	notice_mask(k, hca, port);
}

static const struct sh_port *port_at(struct kernel *k, uint32_t i)
{
	uint32_t hca, port;

	fabric_end_of(k, i + 1, &hca, &port);
	return &sh_hca(&k->dev, hca)->port[port - 1];
}

/* The manager that the ports know is a port, whose LID the program may change. */
static void remember(struct kernel *k)
{
	for (uint32_t i = 0; i < fabric_ports(k); i++) {
		k->umad->sm_lid[i] = port_at(k, i)->sm_lid;
		k->umad->sm_at[i] = 0;
		for (uint32_t j = 0; j < fabric_ports(k) && !k->umad->sm_at[i]; j++)
			if (port_at(k, j)->lid == k->umad->sm_lid[i])
				k->umad->sm_at[i] = j + 1;
	}
}

static void restore(struct kernel *k)
{
	const struct sh_config *c = &k->cfg.device;
	struct sh_status st;

	for (uint32_t i = 0; i < fabric_ports(k); i++) {
		uint32_t at = k->umad->sm_at[i], hca, port;
		struct sh_port_msg m = {.what = SH_PORT_SM,
					.a = at ? port_at(k, at - 1)->lid : k->umad->sm_lid[i]};

		fabric_end_of(k, i + 1, &hca, &port);
		m.host = hca / c->hcas_per_host;
		m.hca = hca % c->hcas_per_host;
		m.port = port;
		(void)port_change(k, &m, true, &st);
	}
}

int sm_told(struct kernel *k, const struct mad_node *n, const uint8_t *mad)
{
	uint8_t notice[NOTICE_SIZE] = {0};

	if (!smp_is_sm(k, n))
		return -1;
	memcpy(notice, mad + AT_DATA, NOTICE_ISSUER);
	sa_inform(k, notice);
	return 0;
}

int sm_open(struct kernel *k, uint32_t hca, uint32_t port)
{
	if (k->hcas[hca].sm_ports >> port & 1)
		return -EAGAIN;
	if (!k->umad->managers++) {
		remember(k);
		/* Programs are told to register anew when there is another manager. */
		sa_inform_forget(k);
		sa_service_forget(k);
		notice_forget(k);
	}
	say(k, hca, port, true);
	return 0;
}

void sm_closed(struct kernel *k, uint32_t hca, uint32_t port)
{
	say(k, hca, port, false);
	/* If the instance ends, the built-in manager does not come back. */
	if (--k->umad->managers || k->stop)
		return;
	sm_forget(k);
	restore(k);
}
