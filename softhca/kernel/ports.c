// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events of ports, as a subnet manager or a cable causes them. The softhca command asks for them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softhca/device/memory/txn.h"
#include "softhca/device/transport/fabric.h"
#include "counters.h"
#include "kern.h"
#include "ports.h"
#include "room.h"
#include "sysfs.h"

void status_say(struct sh_status *st, int error, const char *fmt, ...)
{
	va_list ap;

	st->error = error;
	va_start(ap, fmt);
	vsnprintf(st->text, sizeof(st->text), fmt, ap);
	va_end(ap);
}

#define CAPABILITIES UINT32_C(0x02510868)
#define CAP_IS_SM    UINT32_C(2)

uint32_t port_capabilities(const struct kernel *k, uint32_t hca, uint32_t port)
{
	return CAPABILITIES | (k->hcas[hca].sm_ports >> port & 1 ? CAP_IS_SM : 0);
}

bool port_active(struct kernel *k, uint32_t hca, uint32_t port)
{
	return !k->hcas[hca].fatal && sh_hca(&k->dev, hca)->port[port - 1].state == 4;
}

enum port_physical port_physical(struct kernel *k, uint32_t hca, uint32_t port)
{
	if (port_active(k, hca, port))
		return PORT_LINK_UP;
	return !k->hcas[hca].fatal && k->hcas[hca].cut_ports >> port & 1 ? PORT_POLLING
									 : PORT_DISABLED;
}

uint8_t port_mtu(const struct kernel *k)
{
	const struct sh_wire_config *wire = &k->cfg.device.wire;

	return wire->n ? (uint8_t)(__builtin_ctz(wire->mtu) - 7) : 5;
}

/*
 * Another port, or the switch, that says that it has this LID, as an entry of the table. 0: there
 * is none. What ports say may have been overwritten, so only this function asks them.
 */
static uint32_t heir_of(const struct kernel *k, uint32_t lid, uint32_t but)
{
	if (lid == k->switch_lid && but != SH_LID_OF_SWITCH)
		return SH_LID_OF_SWITCH;
	for (uint32_t hca = 0; hca < k->dev.hcas; hca++)
		for (uint32_t port = 1; port <= k->cfg.device.ports; port++)
			if ((hca << 8 | port) + 1 != but &&
			    sh_hca(&k->dev, hca)->port[port - 1].lid == lid)
				return (hca << 8 | port) + 1;
	return 0;
}

/*
 * A subnet manager gives LIDs to one port after the other, and may give one a LID that another port
 * has until that gets a new one, too. Messages go to the port that got the LID last. Searches the
 * whole table: what the port says of its LID may have been overwritten.
 */
static void take_lid(struct kernel *k, uint32_t mine, uint32_t lid)
{
	uint32_t *table = k->dev.inst->lid_port;

	for (uint32_t i = 1; i < SH_MAX_LIDS; i++)
		if (table[i] == mine && i != lid)
			__atomic_store_n(&table[i], heir_of(k, i, mine), __ATOMIC_RELEASE);
	__atomic_store_n(&table[lid], mine, __ATOMIC_RELEASE);
}

static bool change_lid(struct kernel *k, struct sh_port *p, uint32_t hca, uint32_t port,
		       uint32_t lid, bool anyones, struct sh_status *st)
{
	const uint32_t *table = k->dev.inst->lid_port;
	uint32_t mine = (hca << 8 | port) + 1;
	bool changed;

	if (k->cfg.device.wire.n) {
		status_say(st, EINVAL,
			   "LIDs of an instance with a wire are those of its addresses: start "
			   "another one with another address");
		return false;
	}
	if (!lid || lid >= (anyones ? SH_MAX_LIDS : SH_SWITCH_LID)) {
		status_say(st, EINVAL, "LID %u is out of range: choose one of 1 to %d", lid,
			   SH_SWITCH_LID - 1);
		return false;
	}
	if (table[lid] && table[lid] != mine && !anyones) {
		status_say(st, EBUSY,
			   "LID %u belongs to another port: choose a free one (softhca show lists "
			   "them)",
			   lid);
		return false;
	}
	changed = p->lid != lid;
	if (changed || table[lid] != mine)
		take_lid(k, mine, lid);
	p->lid = lid;
	return changed;
}

int port_switch_lid(struct kernel *k, uint32_t lid)
{
	if (lid == k->switch_lid && sh_lid_is_switch(&k->dev, lid))
		return 0;
	if (k->cfg.device.wire.n || !lid || lid >= SH_MAX_LIDS)
		return -EINVAL;
	take_lid(k, SH_LID_OF_SWITCH, lid);
	k->switch_lid = lid;
	return 0;
}

uint32_t switch_lid(const struct kernel *k)
{
	return k->switch_lid;
}

/*
 * The QPs of the HCA no longer send, receive or complete anything; their peers retry in vain.
 * Silences those whose locks are free; hcas_retry() comes back to the others.
 */
static void silence(struct kernel *k, uint32_t hca)
{
	bool all = true;

	for (uint32_t i = 0; rooms[i]; i++)
		if (rooms[i]->silence && rooms[i]->silence(k, hca) == -EINPROGRESS)
			all = false;
	if (!all)
		return;
	k->hcas[hca].loud = false;
	k->loud--;
}

void hcas_retry(struct kernel *k)
{
	uint32_t i;

	for (i = 0; k->loud && i < k->dev.hcas; i++)
		if (k->hcas[i].loud)
			silence(k, i);
}

/* The card stops for good: nothing in an instance resets it. */
static void fail(struct kernel *k, uint32_t hca)
{
	k->hcas[hca].fatal = k->hcas[hca].loud = true;
	k->loud++;
	__atomic_store_n(&sh_hca(&k->dev, hca)->fatal, 1, __ATOMIC_RELEASE);
	silence(k, hca);
}

/* All its ports are down from now on. */
static void tell_failed(struct kernel *k, uint32_t hca)
{
	for (uint32_t port = 1; port <= k->cfg.device.ports; port++)
		(void)sysfs_port(k, hca, port, 0);
	ROOMS(port_event, k, hca, 1, PORT_DEVICE_FATAL);
}

void ports_fail(struct kernel *k)
{
	for (uint32_t i = 0; i < k->dev.hcas; i++)
		if (!k->hcas[i].fatal) {
			fail(k, i);
			tell_failed(k, i);
		}
}

/* True: something has changed, and *event tells what. */
static bool change(struct kernel *k, const struct sh_port_msg *m, uint32_t hca,
		   enum port_event *event, struct sh_status *st)
{
	struct sh_port *p = &sh_hca(&k->dev, hca)->port[m->port - 1];
	uint32_t state;

	switch (m->what) {
	case SH_PORT_UP:
	case SH_PORT_DOWN:
		state = m->what == SH_PORT_UP ? 4 : 1;
		*event = m->what == SH_PORT_UP ? PORT_ACTIVE : PORT_ERR;
		if (p->state == state)
			return false;
		__atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
		if (m->what == SH_PORT_DOWN)
			counters_downed(k, hca, m->port);
		else
			k->hcas[hca].cut_ports &= ~(1u << m->port);
		return true;
	case SH_PORT_LID:
		*event = PORT_LID_CHANGE;
		return change_lid(k, p, hca, m->port, m->a, m->b, st);
	case SH_PORT_PKEY:
		*event = PORT_PKEY_CHANGE;
		if (m->a >= SH_PKEYS || m->b > 0xffff) {
			status_say(st, EINVAL,
				   "cannot set the P_Key: its INDEX must be from 0 to %d, its "
				   "VALUE from 0 to 0xffff",
				   SH_PKEYS - 1);
			return false;
		}
		if (p->pkey[m->a] == m->b)
			return false;
		p->pkey[m->a] = m->b;
		return true;
	case SH_PORT_SM:
		*event = PORT_SM_CHANGE;
		if (!m->a || m->a > 0xbfff) {
			status_say(st, EINVAL,
				   "SM LID %u is not a unicast LID: choose one of 1 to 49151",
				   m->a);
			return false;
		}
		if (p->sm_lid == m->a)
			return false;
		p->sm_lid = m->a;
		return true;
	case SH_PORT_FATAL:
		*event = PORT_DEVICE_FATAL;
		return true;
	}
	status_say(st, EINVAL, "unknown port event: up, down, lid, pkey, sm and fatal are known");
	return false;
}

bool port_change(struct kernel *k, const struct sh_port_msg *m, bool late, struct sh_status *st)
{
	const struct sh_config *cfg = &k->cfg.device;
	struct sh_hca *hca;
	enum port_event event = PORT_ACTIVE;
	uint32_t index;
	bool changed;

	memset(st, 0, sizeof(*st));
	if (m->host >= cfg->hosts || m->hca >= cfg->hcas_per_host || !m->port ||
	    m->port > cfg->ports) {
		status_say(st, ENODEV,
			   "there is no port mlx4_%u:%u on host %u: the instance has %u host%s "
			   "with %u HCA%s of %u port%s; hosts "
			   "and HCAs are counted from 0, ports from 1",
			   m->hca, m->port, m->host, cfg->hosts, cfg->hosts == 1 ? "" : "s",
			   cfg->hcas_per_host, cfg->hcas_per_host == 1 ? "" : "s", cfg->ports,
			   cfg->ports == 1 ? "" : "s");
		return true;
	}
	index = m->host * cfg->hcas_per_host + m->hca;
	if (k->hcas[index].fatal) {
		if (m->what != SH_PORT_FATAL)
			status_say(st, EIO,
				   "mlx4_%u of host %u has failed for good (softhca port ... "
				   "fatal): start another instance",
				   m->hca, m->host);
		return true;
	}
	hca = sh_hca(&k->dev, index);
	if (sh_lock_bounded(&k->dev, &hca->port_lock) < 0) {
		if (!late)
			return false;
		status_say(st, EBUSY,
			   "a stopped process holds the port: continue or end it, then try again");
		return true;
	}
	changed = change(k, m, index, &event, st);
	sh_unlock(&k->dev, &hca->port_lock);
	if (!changed)
		return true;
	/* Behind the lock: that takes those of QPs. */
	if (event == PORT_DEVICE_FATAL) {
		fail(k, index);
		tell_failed(k, index);
		return true;
	}
	(void)sysfs_port(k, index, m->port, m->what == SH_PORT_PKEY ? m->a : 0);
	ROOMS(port_event, k, index, m->port, event);
	/* A subnet manager that has taken over asks for new subscriptions in its first sweep. */
	if (event == PORT_SM_CHANGE)
		ROOMS(port_event, k, index, m->port, PORT_CLIENT_REREGISTER);
	return true;
}

int port_pkeys(struct kernel *k, uint32_t hca, uint32_t port, uint32_t first,
	       const uint16_t pkey[PORT_PKEYS])
{
	struct sh_port *p = &sh_hca(&k->dev, hca)->port[port - 1];
	bool changed[PORT_PKEYS], any = false;

	if (k->hcas[hca].fatal)
		return -EIO;
	if (sh_lock_bounded(&k->dev, &sh_hca(&k->dev, hca)->port_lock) < 0)
		return -EBUSY;
	for (uint32_t i = 0; i < PORT_PKEYS; i++) {
		changed[i] = p->pkey[first + i] != pkey[i];
		p->pkey[first + i] = pkey[i];
	}
	sh_unlock(&k->dev, &sh_hca(&k->dev, hca)->port_lock);
	for (uint32_t i = 0; i < PORT_PKEYS; i++)
		if (changed[i]) {
			(void)sysfs_port(k, hca, port, first + i);
			any = true;
		}
	if (any)
		ROOMS(port_event, k, hca, port, PORT_PKEY_CHANGE);
	return 0;
}

void ports_end(struct kernel *k)
{
	for (uint32_t i = 0; i < k->dev.hcas; i++)
		if (!k->hcas[i].fatal)
			ROOMS(port_event, k, i, 1, PORT_DEVICE_FATAL);
}
