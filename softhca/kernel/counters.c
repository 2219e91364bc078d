// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of ports. The drops of the device stand where a card would count what caused them; what
 * cannot happen here stays 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/device/queues/qp.h"
#include "counters.h"
#include "kern.h"

/* A packet's local route header, base transport header and invariant CRC. */
#define HEADERS 24

/* The two ends of a port's cable. */
enum end { NEAR, FAR, ENDS };

struct port_base {
	struct {
		uint64_t narrow[C_NARROW], wide[C_COUNTERS];
	} end[ENDS];
	uint64_t downed;
	uint64_t shown[C_COUNTERS];
	uint64_t unicast_xmit, unicast_rcv; /* as raw() last found them */
};
struct counters {
	struct port_base *base; /* by HCA and port */
	uint64_t (*hw_shown)[COUNTERS_HW];
};

static struct port_base *base_of(struct kernel *k, uint32_t hca, uint32_t port)
{
	return &k->counters->base[hca * SH_MAX_PORTS + port - 1];
}

int counters_init(struct kernel *k)
{
	k->counters = calloc(1, sizeof(*k->counters));
	if (!k->counters)
		return -ENOMEM;
	k->counters->base = calloc((size_t)k->dev.hcas * SH_MAX_PORTS, sizeof(*k->counters->base));
	k->counters->hw_shown = calloc(k->dev.hcas, sizeof(*k->counters->hw_shown));
	return k->counters->base && k->counters->hw_shown ? 0 : -ENOMEM;
}

void counters_exit(struct kernel *k)
{
	if (!k->counters)
		return;
	free(k->counters->base);
	free(k->counters->hw_shown);
	free(k->counters);
	k->counters = NULL;
}

uint64_t *counters_shown(struct kernel *k, uint32_t hca, uint32_t port)
{
	return base_of(k, hca, port)->shown;
}

uint64_t *counters_hw_shown(struct kernel *k, uint32_t hca)
{
	return k->counters->hw_shown[hca];
}

unsigned int counter_bits(enum counter c)
{
	switch (c) {
	case C_LOCAL_INTEGRITY:
	case C_BUFFER_OVERRUN:
		return 4;
	case C_LINK_RECOVERY:
	case C_LINK_DOWNED:
	case C_XMIT_CONSTRAINT:
	case C_RCV_CONSTRAINT:
		return 8;
	case C_XMIT_DATA:
	case C_RCV_DATA:
	case C_XMIT_PACKETS:
	case C_RCV_PACKETS:
	case C_XMIT_WAIT:
		return 32;
	default:
		return 16;
	}
}

static uint64_t words(uint64_t payload, uint64_t pads, uint64_t packets)
{
	return (payload + pads + HEADERS * packets) / 4;
}

/* Senders count meanwhile, so what is found can be too small. What is told never runs backwards. */
static uint64_t unicast(uint64_t *most, uint64_t packets, uint64_t multicast)
{
	int64_t found = (int64_t)(packets - multicast);

	if (found > 0 && (uint64_t)found > *most)
		*most = (uint64_t)found;
	return *most;
}

static void raw(struct kernel *k, uint32_t hca, uint32_t port, uint64_t v[C_COUNTERS])
{
	struct sh_traffic all[SH_MAX_PORTS], *t = &all[port - 1];
	struct port_base *b = base_of(k, hca, port);

	sh_traffic(&k->dev, hca, all);
	memset(v, 0, C_COUNTERS * sizeof(v[0]));
	/* A packet that fails its check was hit on its way. */
	v[C_SYMBOL_ERROR] = v[C_RCV_ERRORS] = t->rcv_errors;
	v[C_LINK_DOWNED] = b->downed;
	v[C_XMIT_DISCARDS] = t->xmit_discards;
	v[C_RCV_CONSTRAINT] = t->rcv_constraint;
	v[C_XMIT_DATA] = words(t->xmit_data, t->xmit_pads, t->xmit_packets);
	v[C_RCV_DATA] = words(t->rcv_data, t->rcv_pads, t->rcv_packets);
	v[C_XMIT_PACKETS] = t->xmit_packets;
	v[C_RCV_PACKETS] = t->rcv_packets;
	v[C_UNICAST_XMIT] = unicast(&b->unicast_xmit, t->xmit_packets, t->xmit_multicast);
	v[C_UNICAST_RCV] = unicast(&b->unicast_rcv, t->rcv_packets, t->rcv_multicast);
	v[C_MULTICAST_XMIT] = t->xmit_multicast;
	v[C_MULTICAST_RCV] = t->rcv_multicast;
}

static uint64_t narrowed(enum counter_form form, enum counter c, uint64_t v)
{
	uint64_t most = (UINT64_C(1) << counter_bits(c)) - 1;

	return form == COUNTERS_NARROW && v > most ? most : v;
}

/* What one end sends the other receives. */
static void mirror(uint64_t v[C_COUNTERS])
{
	static const enum counter pairs[][2] = {
		{C_XMIT_DATA, C_RCV_DATA},
		{C_XMIT_PACKETS, C_RCV_PACKETS},
		{C_UNICAST_XMIT, C_UNICAST_RCV},
		{C_MULTICAST_XMIT, C_MULTICAST_RCV},
	};
	uint64_t near[C_COUNTERS];

	memcpy(near, v, sizeof(near));
	memset(v, 0, sizeof(near));
	v[C_LINK_DOWNED] = near[C_LINK_DOWNED];
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		v[pairs[i][0]] = near[pairs[i][1]];
		v[pairs[i][1]] = near[pairs[i][0]];
	}
}

static void counted(struct kernel *k, uint32_t hca, uint32_t port, enum end end,
		    uint64_t v[C_COUNTERS])
{
	raw(k, hca, port, v);
	if (end == FAR)
		mirror(v);
}

static void read_end(struct kernel *k, uint32_t hca, uint32_t port, enum end end,
		     enum counter_form form, uint64_t out[C_COUNTERS])
{
	const struct port_base *b = base_of(k, hca, port);
	uint64_t v[C_COUNTERS];

	counted(k, hca, port, end, v);
	memset(out, 0, C_COUNTERS * sizeof(out[0]));
	for (unsigned int i = 0; form == COUNTERS_WIDE && i < C_COUNTERS; i++)
		if (i >= C_NARROW || (i >= C_XMIT_DATA && i <= C_RCV_PACKETS))
			out[i] = v[i] - b->end[end].wide[i];
	for (unsigned int i = 0; form == COUNTERS_NARROW && i < C_NARROW; i++)
		out[i] = narrowed(form, i, v[i] - b->end[end].narrow[i]);
}

static void set_end(struct kernel *k, uint32_t hca, uint32_t port, enum end end,
		    enum counter_form form, enum counter c, uint64_t value)
{
	struct port_base *b = base_of(k, hca, port);
	uint64_t v[C_COUNTERS];

	counted(k, hca, port, end, v);
	if (form == COUNTERS_WIDE)
		b->end[end].wide[c] = v[c] - value;
	else if (c < C_NARROW)
		b->end[end].narrow[c] = v[c] - value;
}

void counters_read(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		   uint64_t out[C_COUNTERS])
{
	read_end(k, hca, port, NEAR, form, out);
}

void counters_mirrored(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		       uint64_t out[C_COUNTERS])
{
	read_end(k, hca, port, FAR, form, out);
}

void counters_set(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		  enum counter c, uint64_t value)
{
	set_end(k, hca, port, NEAR, form, c, value);
}

void counters_set_mirrored(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
			   enum counter c, uint64_t value)
{
	set_end(k, hca, port, FAR, form, c, value);
}

void counters_downed(struct kernel *k, uint32_t hca, uint32_t port)
{
	base_of(k, hca, port)->downed++;
}
