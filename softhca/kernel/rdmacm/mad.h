/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Messages as management datagrams of the communication manager, as they are between machines: what
 * InfiniBand's chapter 12 says, in the way in which Linux's rdma_cm fills it in. Pure functions.
 *
 * All of them: numbers are big-endian, and fields of bits begin with the highest one.
 *
 *	OFFSET	SIZE	MEANING
 *	0	4	1 (base version), 7 (class), 2 (its version), 3 (method: Send)
 *	8	8	transaction
 *	16	2	attribute: which message it is
 *	20	4	ECE: the modifier, of REQ, REP, SIDR_REQ, SIDR_REP
 *	24	4	the sender's number of the connection; of SIDR the client's, in both directions
 *	28	4	the receiver's (REP, RTU, REJ, DREQ, DREP, MRA)
 *
 *	REQ	29: 3, ECE's vendor; 32: 8, service; 40: 8, GUID of the sender; 56: QP 24 bits, responder
 *		resources 8; 63: initiator depth; 67: time-out of the answer 5 bits, service 2, flow
 *		control 1; 68: PSN 24, time-out of the sender's answers 5, retries 3; 72: 2, P_Key; 74:
 *		MTU 4, -1, RNR retries 3; 75: tries 4, SRQ 1, extended service 3; 76: 2 + 2 LIDs; 80: 16 +
 *		16 GIDs of sender and receiver; 115: rate; 116: traffic class; 117: hop limit; 118: SL 4,
 *		within the subnet 1; 119: time-out of the QP 5; 164: 92, private data
 *	REP	36: QP 24, ECE's vendor 8; 40: EE context 24 (an XRC target's QP), vendor 8; 44: PSN 24,
 *		vendor 8; 48: responder resources; 49: initiator depth; 50: ACK delay 5, -2, flow control
 *		1; 51: RNR retries 3, SRQ 1; 52: 8, GUID; 60: 196, private data
 *	REJ	32: about which message 2; 33: length of the information 7; 34: 2, reason; 36: 72, the
 *		information; 108: 148, private data
 *	MRA	32: about which message 2; 33: time 5
 *	DREQ	32: the receiver's QP 24
 *	SIDR_REQ 28: 2, P_Key; 32: 8, service; 40: 216, private data
 *	SIDR_REP 28: status; 31: vendor, its second byte; 32: QP 24, vendor's first byte; 36: 8, service;
 *		44: Q_Key; 120: 136, private data
 *
 * A service is the port space and the port: space << 16 | port. Private data of a request begins
 * with the requester, if that has an IP address:
 *
 *	0	1	0
 *	1	1	4 or 6, << 4
 *	2	2	the sender's port
 *	4	16	the sender's address; of IPv4 in the last four bytes
 *	20	16	the receiver's
 */
#ifndef SOFTHCA_KERNEL_RDMACM_MAD_H
#define SOFTHCA_KERNEL_RDMACM_MAD_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

#define CM_MAD 256

struct cm_mad_sender {
	uint64_t guid;
	uint8_t timeout; /* how long it waits for an answer, as 4.096 us << timeout */
};

/* The lower halves of m's from and to are the numbers. */
void cm_mad_write(const struct cm_message *m, const struct cm_mad_sender *s, uint8_t mad[CM_MAD]);
/*
 * Fills in all of *m that stands in the datagram; from and to as they stand there. False: it is
 * none that this version knows.
 */
bool cm_mad_read(const uint8_t mad[CM_MAD], struct cm_message *m);
/*
 * Reads the data of a request again, that *m was read from. It is the program's from its first byte
 * on: that program has addresses of AF_IB, and what it has written looks like the header of IP
 * addresses.
 */
void cm_mad_whole(const uint8_t mad[CM_MAD], struct cm_message *m);

/*
 * The header of IP addresses of a request, and its addresses from there: false: it is none. port:
 * the receiver's.
 */
void cm_mad_put_header(uint8_t at[CM_IP_HEADER], const struct cm_message *m);
bool cm_mad_take_header(const uint8_t at[CM_IP_HEADER], uint16_t port, struct cm_message *m);

#endif
