// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What wire_peers does where not all goes well, and no end is at fault: messages without
 * acknowledgements on a wire that loses packets, and ends that differ in their path MTU.
 */
#include <string.h>
#include <sys/socket.h>

#include "check.h"
#include "wire_peers.h"

/* ---- UC, with losses ---- */

#define RECEIVES 64
#define ROOM	 (HALF / RECEIVES)
#define WANTED	 100 /* messages that have come */
#define GAPS	 10  /* places where some are missing */
#define MOST	 100000

/*
 * Of 20 packets or so. The contents differ with the length: parts of two messages are none of
 * either.
 */
static uint32_t length_of(uint64_t number)
{
	return 18001 + (uint32_t)(number * 7 % 2048);
}

/*
 * Each message that comes is one that was sent, from the first byte to the last, and none comes
 * twice or out of order. Those in between are lost as a whole: a receive waits for the next one.
 */
void uc_lossy_passive(void)
{
	unsigned int come = 0, gaps = 0, at = 0;
	uint64_t next = 0;

	for (int i = 0; i < RECEIVES; i++)
		post_receive(HALF + (size_t)i * ROOM, ROOM);
	say();
	while (come < WANTED || gaps < GAPS) {
		struct ibv_wc wc = completion();
		size_t place = HALF + at * ROOM;
		uint64_t number;

		CHECK(!wc.status && wc.opcode == IBV_WC_RECV);
		memcpy(&number, buf + place, sizeof(number));
		CHECK(number >= next && number < MOST && wc.byte_len == length_of(number));
		CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM) == !(number & 1));
		check_at(place, sizeof(number), length_of(number));
		gaps += number > next;
		come++;
		next = number + 1;
		post_receive(place, ROOM);
		at = (at + 1) % RECEIVES;
	}
	say();
	fprintf(stderr, "%u messages of %lu\n", come, (unsigned long)next);
}

void uc_lossy_active(void)
{
	char byte;

	hear();
	for (uint64_t number = 0; number < MOST; number++) {
		fill(length_of(number));
		memcpy(buf, &number, sizeof(number));
		post(number & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 0, length_of(number), 0, 0, 0,
		     0);
		done();
		if (recv(tcp, &byte, 1, MSG_DONTWAIT) == 1)
			return;
	}
	CHECK(!"enough messages come");
}

/* ---- two path MTUs ---- */

/*
 * What fits into a packet of either end arrives. Of a message of more packets, one end's are too
 * long or too short for the other: the requester is told so (NAK, invalid request), or finds it out
 * (of the answers to a READ). Nothing of a SEND is completed at the other end.
 */
#define SMALL 256u
#define LARGE 20001u

static const struct {
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
} too_large[] = {{IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR},
		 {IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR},
		 {IBV_WR_RDMA_READ, IBV_WC_BAD_RESP_ERR}};

#define LARGES (sizeof(too_large) / sizeof(too_large[0]))

void mtus_passive(void)
{
	for (size_t i = 0; i < LARGES; i++) {
		struct ibv_wc wc;

		if (i)
			join(IBV_QPT_RC, 17, 7);
		post_receive(HALF, SMALL);
		say();
		wc = completion();
		CHECK(!wc.status && wc.byte_len == SMALL);
		check(SMALL);
		post_receive(HALF, HALF);
		fill(LARGE);
		say();
		hear();
		/* Of the WRITE and the READ it may still wait. */
		if (too_large[i].opcode == IBV_WR_SEND)
			CHECK(completion().status != IBV_WC_SUCCESS);
		CHECK(!ibv_destroy_qp(qp));
		CHECK(!ibv_poll_cq(cq, 1, &wc) || wc.status);
	}
	join(IBV_QPT_RC, 17, 7);
}

void mtus_active(void)
{
	for (size_t i = 0; i < LARGES; i++) {
		struct ibv_wc wc;

		if (i)
			join(IBV_QPT_RC, 17, 7);
		hear();
		fill(SMALL);
		post(IBV_WR_SEND, 0, SMALL, 0, 0, 0, 0);
		done();
		hear();
		memset(buf + HALF, 0, SMALL);
		post(IBV_WR_RDMA_READ, HALF, SMALL, theirs.addr, theirs.rkey, 0, 0);
		post(IBV_WR_RDMA_WRITE, 0, SMALL, theirs.addr + HALF, theirs.rkey, 0, 0);
		done();
		done();
		check_of(HALF, 0, SMALL, LARGE);
		fill(LARGE);
		post(too_large[i].opcode, too_large[i].opcode == IBV_WR_RDMA_READ ? HALF : 0, LARGE,
		     theirs.addr, theirs.rkey, 0, 0);
		wc = completion();
		fprintf(stderr, "operation %d: %s\n", too_large[i].opcode,
			ibv_wc_status_str(wc.status));
		CHECK(wc.status == too_large[i].status);
		say();
		CHECK(!ibv_destroy_qp(qp));
	}
	join(IBV_QPT_RC, 17, 7);
}
