/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The counters of ports as the fabric's tools know them: made of what the device has counted, when
 * a tool asks. The device's own counters never go back, so clearing keeps a base to subtract.
 */
#ifndef SOFTHCA_KERNEL_COUNTERS_H
#define SOFTHCA_KERNEL_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;

enum counter {
	C_SYMBOL_ERROR,
	C_LINK_RECOVERY,
	C_LINK_DOWNED,
	C_RCV_ERRORS,
	C_RCV_REMOTE_PHYSICAL,
	C_RCV_SWITCH_RELAY,
	C_XMIT_DISCARDS,
	C_XMIT_CONSTRAINT,
	C_RCV_CONSTRAINT,
	C_LOCAL_INTEGRITY,
	C_BUFFER_OVERRUN,
	C_VL15_DROPPED,
	C_XMIT_DATA, /* words of four octets */
	C_RCV_DATA,
	C_XMIT_PACKETS,
	C_RCV_PACKETS,
	C_XMIT_WAIT,
	C_NARROW, /* those before it have a narrow form, which stops at its maximum */
	C_UNICAST_XMIT = C_NARROW,
	C_UNICAST_RCV,
	C_MULTICAST_XMIT,
	C_MULTICAST_RCV,
	C_COUNTERS
};

/* The wide form, of 64 bits, exists of C_XMIT_DATA to C_RCV_PACKETS and from C_NARROW on. */
enum counter_form { COUNTERS_NARROW, COUNTERS_WIDE };

int counters_init(struct kernel *k);
void counters_exit(struct kernel *k);
/* Bits of a counter in its narrow form. */
unsigned int counter_bits(enum counter c);
/* hca counts over all hosts, port from 1. All that the form has are set, the others are 0. */
void counters_read(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		   uint64_t out[C_COUNTERS]);
/* The same as the other end of the cable counts it: what one sends the other receives. */
void counters_mirrored(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		       uint64_t out[C_COUNTERS]);
/* From now on the counter has that value; later it goes on from there. */
void counters_set(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
		  enum counter c, uint64_t value);
void counters_set_mirrored(struct kernel *k, uint32_t hca, uint32_t port, enum counter_form form,
			   enum counter c, uint64_t value);
/* The link has gone down. */
void counters_downed(struct kernel *k, uint32_t hca, uint32_t port);

/*
 * Files of sysfs. They are made with the HCA, and written when a program of the host is about to
 * open one, and once a second for programs that come by another name.
 */
int counters_files(struct kernel *k, uint32_t hca);
void counters_refresh(struct kernel *k, uint32_t host);
void counters_tick(struct kernel *k);
/* What the files say: of a port, by enum counter; of an HCA. */
uint64_t *counters_shown(struct kernel *k, uint32_t hca, uint32_t port);
uint64_t *counters_hw_shown(struct kernel *k, uint32_t hca);
#define COUNTERS_HW 8 /* most that change */

#endif
