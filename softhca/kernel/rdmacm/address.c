// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What addresses mean. Those of the wire's network, as IP addresses or GIDs, name ports on it.
 * Other IP addresses of the blocks in softhca/host/address.h name host, HCA and port; the machine's
 * own name the first active port of the host that asks; GIDs name themselves.
 */
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/host/address.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/wire_engine.h"
#include "address.h"
#include "rdmacm.h"

static bool in_block(const union cm_sockaddr *a, unsigned int *host, unsigned int *n)
{
	if (a->family == AF_INET)
		return sh_address_host(a->in.sin_addr, host, n);
	return a->family == AF_INET6 && sh_address6_host(&a->in6.sin6_addr, host, n);
}

bool cm_addr_zero(const union cm_sockaddr *a)
{
	static const uint8_t zero[16];

	switch (a->family) {
	case AF_INET:
		return a->in.sin_addr.s_addr == 0;
	case AF_INET6:
		return !memcmp(&a->in6.sin6_addr, zero, 16);
	case CM_AF_IB:
		return !memcmp(a->ib.gid, zero, 16);
	}
	return true;
}

/* As the wire has it. False: it is none. */
static bool take_ip(const union cm_sockaddr *a, struct sh_ip *ip)
{
	switch (a->family) {
	case AF_INET:
		*ip = sh_ip4(ntohl(a->in.sin_addr.s_addr));
		return true;
	case AF_INET6:
		*ip = sh_ip_get(&a->in6.sin6_addr);
		/* The kernel has no route to those of IPv4 in this form. */
		return !sh_ip_is4(*ip);
	case CM_AF_IB:
		*ip = sh_ip_get(a->ib.gid);
		return true;
	}
	return false;
}

/* The LID that the address has on the wire, wherever its port is. */
static uint16_t on_wire(const struct rdmacm *cm, const union cm_sockaddr *a)
{
	struct sh_ip ip;

	return take_ip(a, &ip) ? wire_lid(cm->k, ip) : 0;
}

static bool own_on_wire(const struct rdmacm *cm, const union cm_sockaddr *a, uint32_t *hca,
			uint32_t *port)
{
	struct sh_ip ip;

	return take_ip(a, &ip) && wire_own(cm->k, ip, hca, port);
}

uint16_t cm_addr_far(const struct rdmacm *cm, const union cm_sockaddr *a)
{
	uint32_t hca, port;

	return own_on_wire(cm, a, &hca, &port) ? 0 : on_wire(cm, a);
}

uint16_t cm_wire_family(const struct rdmacm *cm)
{
	return sh_ip_is4(cm->cfg->wire.network) ? AF_INET : AF_INET6;
}

static void put_ip(union cm_sockaddr *a, uint16_t family, struct sh_ip ip)
{
	memset(a, 0, sizeof(*a));
	a->family = family;
	if (family == AF_INET)
		a->in.sin_addr.s_addr = htonl((uint32_t)ip.lo);
	else if (family == AF_INET6)
		sh_ip_put(ip, &a->in6.sin6_addr);
	else
		sh_ip_put(ip, a->ib.gid);
}

void cm_addr_of_far(const struct rdmacm *cm, uint16_t family, uint16_t lid, union cm_sockaddr *a)
{
	put_ip(a, family, wire_address_of(cm->k, lid));
}

void cm_addr_on_wire(const struct rdmacm *cm, uint16_t family, uint32_t hca, uint32_t port,
		     union cm_sockaddr *a)
{
	put_ip(a, family, wire_address(cm->k, hca, port));
}

bool cm_addr_any(const struct rdmacm *cm, const union cm_sockaddr *a)
{
	static const uint8_t loopback[16] = {[15] = 1};
	unsigned int host, n;

	if (cm_addr_zero(a))
		return true;
	if (on_wire(cm, a))
		return false;
	if (a->family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == 127 && !in_block(a, &host, &n);
	return !memcmp(a->family == AF_INET6 ? (const uint8_t *)&a->in6.sin6_addr : a->ib.gid,
		       loopback, 16);
}

bool cm_addr_group(const union cm_sockaddr *a)
{
	switch (a->family) {
	case AF_INET:
		return IN_MULTICAST(ntohl(a->in.sin_addr.s_addr));
	case AF_INET6:
		return a->in6.sin6_addr.s6_addr[0] == 0xff;
	}
	return a->ib.gid[0] == 0xff;
}

uint32_t cm_addr_size(uint16_t family)
{
	return family == AF_INET    ? sizeof(struct sockaddr_in)
	       : family == AF_INET6 ? sizeof(struct sockaddr_in6)
	       : family == CM_AF_IB ? sizeof(struct cm_sockaddr_ib)
				    : 0;
}

bool cm_addr_same(const union cm_sockaddr *a, const union cm_sockaddr *b)
{
	if (a->family != b->family)
		return false;
	if (a->family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	if (a->family == AF_INET6)
		return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16);
	return !memcmp(a->ib.gid, b->ib.gid, 16);
}

uint16_t cm_addr_port(const union cm_sockaddr *a)
{
	if (a->family == CM_AF_IB)
		return (uint16_t)(be64toh(a->ib.sid) & be64toh(a->ib.sid_mask));
	return ntohs(a->family == AF_INET ? a->in.sin_port : a->in6.sin6_port);
}

void cm_addr_set_port(union cm_sockaddr *a, uint16_t service, uint16_t port)
{
	if (a->family == AF_INET)
		a->in.sin_port = htons(port);
	else if (a->family == AF_INET6)
		a->in6.sin6_port = htons(port);
	if (a->family != CM_AF_IB)
		return;
	a->ib.sid = htobe64((uint64_t)service << 16 | port);
	a->ib.sid_mask = UINT64_MAX;
}

uint16_t cm_addr_service(const union cm_sockaddr *a)
{
	uint64_t sid = be64toh(a->ib.sid) & be64toh(a->ib.sid_mask);

	return sid >> 32 ? 0 : (uint16_t)(sid >> 16);
}

void cm_addr_loopback(union cm_sockaddr *a, uint16_t family, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->family = family;
	if (family == AF_INET)
		a->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (family == AF_INET6)
		a->in6.sin6_addr = in6addr_loopback;
	cm_addr_set_port(a, 0, port);
}

bool cm_port_first(struct rdmacm *cm, uint32_t host, uint32_t *hca, uint32_t *port)
{
	uint32_t n = cm->cfg->hcas_per_host;

	for (uint32_t i = host * n; i < (host + 1) * n; i++)
		for (uint32_t p = 1; p <= cm->cfg->ports; p++)
			if (port_active(cm->k, i, p)) {
				*hca = i;
				*port = p;
				return true;
			}
	return false;
}

bool cm_port_by_gid(struct rdmacm *cm, const uint8_t gid[16], uint32_t *hca, uint32_t *port)
{
	for (uint32_t i = 0; i < cm->dev->hcas; i++)
		for (uint32_t p = 1; p <= cm->cfg->ports; p++)
			if (!memcmp(sh_hca(cm->dev, i)->port[p - 1].gid[0], gid, 16)) {
				*hca = i;
				*port = p;
				return true;
			}
	return false;
}

/* Is it an address of an interface of the machine? */
static bool of_machine(const union cm_sockaddr *a)
{
	struct ifaddrs *list, *i;
	union cm_sockaddr b;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != a->family)
			continue;
		memset(&b, 0, sizeof(b));
		memcpy(&b, i->ifa_addr, cm_addr_size(a->family));
		found = cm_addr_same(a, &b);
	}
	freeifaddrs(list);
	return found;
}

int cm_addr_find(struct rdmacm *cm, uint32_t host, const union cm_sockaddr *a, uint32_t *hca,
		 uint32_t *port)
{
	uint32_t ports = cm->cfg->ports, per_host = cm->cfg->hcas_per_host;
	unsigned int where, n;

	if (a->family == CM_AF_IB && cm_port_by_gid(cm, a->ib.gid, hca, port))
		return 0;
	if (own_on_wire(cm, a, hca, port))
		return cm->hcas[*hca].fatal ? -ETIMEDOUT : 0;
	if (a->family == CM_AF_IB || on_wire(cm, a))
		return -ENODEV;
	if (in_block(a, &where, &n)) {
		if (where >= cm->cfg->hosts || n > per_host * ports)
			return -ETIMEDOUT;
		*hca = where * per_host + (n - 1) / ports;
		*port = (n - 1) % ports + 1;
		return cm->hcas[*hca].fatal ? -ETIMEDOUT : 0;
	}
	/* With a wire, the machine's other interfaces have nothing to do with the card. */
	return !cm->cfg->wire.n && of_machine(a) && cm_port_first(cm, host, hca, port) ? 0
										       : -ENODEV;
}

int cm_addr_own(struct rdmacm *cm, uint32_t host, const union cm_sockaddr *a, uint32_t *hca,
		uint32_t *port)
{
	int err = cm_addr_find(cm, host, a, hca, port);

	if (!err && cm->hcas[*hca].host == host)
		return 0;
	/* The machine has the address, on an interface that is not the card's. */
	if (err == -ENODEV && cm->cfg->wire.n && !on_wire(cm, a) && of_machine(a))
		return err;
	return a->family == CM_AF_IB ? -ENODEV : -EADDRNOTAVAIL;
}

void cm_addr_of(struct rdmacm *cm, uint16_t family, uint32_t hca, uint32_t port,
		union cm_sockaddr *a)
{
	const struct sh_port *p = &sh_hca(cm->dev, hca)->port[port - 1];
	unsigned int n = cm->hcas[hca].unit * cm->cfg->ports + port;

	memset(a, 0, sizeof(*a));
	a->family = family;
	if (family == AF_INET)
		a->in.sin_addr = sh_host_address(cm->hcas[hca].host, n);
	else if (family == AF_INET6)
		a->in6.sin6_addr = sh_host_address6(cm->hcas[hca].host, n);
	else
		memcpy(a->ib.gid, p->gid[0], 16);
}
