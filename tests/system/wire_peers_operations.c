// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The operations of wire_peers, between two processes that live: what arrives is what was sent, and
 * no more.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "wire_peers.h"

const uint32_t sizes[SIZES] = {0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 2048, 4097, 65537, 1048579};
/* For a wire that loses packets: those that fill a window, and end in every way, but few. */
static const uint32_t few[] = {0, 1025, 4097, 20001};
static const uint32_t *size = sizes;
static size_t nsizes = SIZES;

void few_sizes(void)
{
	size = few;
	nsizes = sizeof(few) / sizeof(few[0]);
}

void passive(void)
{
	uint64_t word = 40;

	memcpy(buf + 2 * HALF - 8, &word, sizeof(word));
	for (size_t i = 0; i < nsizes; i++) {
		struct ibv_wc wc;

		post_receive(HALF, HALF - 8);
		say();
		wc = completion(); /* a SEND */
		CHECK(!wc.status && wc.byte_len == size[i] && !(wc.wc_flags & IBV_WC_WITH_IMM));
		check(size[i]);
		memset(buf + HALF, 0, size[i]);
		post_receive(0, 1);
		say();
		wc = completion(); /* a WRITE with immediate data */
		CHECK(!wc.status && wc.wc_flags & IBV_WC_WITH_IMM &&
		      ntohl(wc.imm_data) == (size[i] ^ 0x5a5a));
		check(size[i]);
		say();
		hear();
	}
	/* A receive that comes after the message. */
	hear();
	post_receive(HALF, HALF - 8);
	done();
	check(4097);
	hear();
	memcpy(&word, buf + 2 * HALF - 8, sizeof(word));
	CHECK(word == 1000);
	say();
	hear();
}

void active(void)
{
	uint64_t word;

	for (size_t i = 0; i < nsizes; i++) {
		hear();
		fill(size[i]);
		post(IBV_WR_SEND, 0, size[i], 0, 0, 0, 0);
		done();
		hear();
		post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		done();
		hear();
		memset(buf + HALF, 0, size[i]);
		/* Several at once, so that one of them waits for others. */
		post(IBV_WR_RDMA_WRITE, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		for (int k = 0; k < 6; k++)
			post(IBV_WR_RDMA_READ, HALF, size[i], theirs.addr + HALF, theirs.rkey, 0,
			     0);
		for (int k = 0; k < 7; k++)
			done();
		check(size[i]);
		say();
	}
	fill(4097);
	post(IBV_WR_SEND, 0, 4097, 0, 0, 0, 0);
	usleep(20000); /* so that it comes too early, as a rule */
	say();
	done();
	for (uint64_t k = 0; k < 10; k++) {
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, HALF, 8, theirs.addr + 2 * HALF - 8, theirs.rkey,
		     1, 0);
		done();
		memcpy(&word, buf + HALF, 8);
		CHECK(word == 40 + k);
	}
	post(IBV_WR_ATOMIC_CMP_AND_SWP, HALF, 8, theirs.addr + 2 * HALF - 8, theirs.rkey, 50, 1000);
	done();
	memcpy(&word, buf + HALF, 8);
	CHECK(word == 50);
	say();
	hear();
	if (size == sizes) {
		post(IBV_WR_RDMA_READ, HALF, 8, theirs.addr, theirs.rkey ^ 1, 0, 0);
		CHECK(completion().status == IBV_WC_REM_ACCESS_ERR);
	}
	say();
}

/* ---- without acknowledgements ---- */

/* What a datagram may carry, at the edges of its padding. */
static const uint32_t short_sizes[] = {0, 1, 2, 3, 4, 5, 1023, 1024};

/*
 * A WRITE, and one with immediate data that follows it: when that has come, so has the first, of
 * the same contents, behind it.
 */
void uc_passive(void)
{
	for (size_t i = 0; i < nsizes && size[i] < HALF / 4; i++) {
		struct ibv_wc wc;

		memset(buf + HALF, 0, HALF);
		post_receive(0, 1);
		say();
		wc = completion();
		CHECK(!wc.status && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
		      wc.wc_flags & IBV_WC_WITH_IMM && wc.byte_len == size[i] &&
		      ntohl(wc.imm_data) == (size[i] ^ 0x5a5a));
		check(size[i]);
		CHECK(!memcmp(buf + HALF, buf + HALF + HALF / 2, size[i]));
		/* Not a byte more. */
		CHECK(!buf[HALF + size[i]] && !buf[HALF + HALF / 2 + size[i]]);
	}
}

void uc_active(void)
{
	for (size_t i = 0; i < nsizes && size[i] < HALF / 4; i++) {
		hear();
		fill(size[i]);
		post(IBV_WR_RDMA_WRITE, 0, size[i], theirs.addr + HALF + HALF / 2, theirs.rkey, 0,
		     0);
		post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, size[i], theirs.addr + HALF, theirs.rkey, 0, 0);
		done();
		done();
	}
}

#define GRH 40

void ud_passive(void)
{
	for (size_t i = 0; i < 2 * sizeof(short_sizes) / sizeof(short_sizes[0]); i++) {
		uint32_t len = short_sizes[i / 2];
		struct ibv_wc wc;

		post_receive(HALF - GRH, GRH + 1024);
		say();
		wc = completion();
		CHECK(!wc.status && wc.byte_len == GRH + len && wc.src_qp == theirs.qpn &&
		      (!theirs.lid || wc.slid == theirs.lid));
		CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM) == !(i & 1));
		CHECK(!(i & 1) || ntohl(wc.imm_data) == (len ^ 0x5a5a));
		check(len);
	}
}

void ud_active(void)
{
	for (size_t i = 0; i < 2 * sizeof(short_sizes) / sizeof(short_sizes[0]); i++) {
		uint32_t len = short_sizes[i / 2];
		struct ibv_sge sge = {(uintptr_t)buf, len, mr->lkey};
		struct ibv_send_wr *bad, wr = {.opcode = i & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					       .sg_list = &sge,
					       .num_sge = len ? 1 : 0,
					       .imm_data = htonl(len ^ 0x5a5a)};

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = theirs.qpn;
		wr.wr.ud.remote_qkey = QKEY;
		hear();
		fill(len);
		CHECK(!ibv_post_send(qp, &wr, &bad));
		done();
	}
}

/* ---- the last messages of a QP ---- */

#define LAST	  5 /* messages */
#define LAST_SIZE 20001
#define LAST_ROOM ((size_t)32768)

void last_passive(void)
{
	for (int i = 0; i < LAST; i++)
		post_receive(HALF + (size_t)i * LAST_ROOM, LAST_ROOM);
	say();
	for (int i = 0; i < LAST; i++) {
		struct ibv_wc wc = completion();

		CHECK(!wc.status && wc.byte_len == LAST_SIZE);
		memmove(buf + HALF, buf + HALF + (size_t)i * LAST_ROOM, LAST_SIZE);
		check(LAST_SIZE);
	}
}

/* Nobody looks at the completions. */
void last_active(void)
{
	fill(LAST_SIZE);
	hear();
	for (int i = 0; i < LAST; i++)
		post(IBV_WR_SEND, 0, LAST_SIZE, 0, 0, 0, 0);
}

/* ---- again and again ---- */

void new_passive(void)
{
	char more;

	do {
		passive();
		CHECK(read(tcp, &more, 1) == 1);
	} while (more == 'x');
}

void new_active(void)
{
	const char *old = getenv("OLD");
	unsigned long rounds = 0;
	char more;

	CHECK(old);
	do {
		active();
		rounds++;
		more = kill((pid_t)atoi(old), 0) ? 'e' : 'x';
		CHECK(write(tcp, &more, 1) == 1);
	} while (more == 'x');
	if (sleeps)
		printf("%lu rounds\n", rounds);
}
