/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a CQE says and where it goes. Inline for nearly every message: a caller knows most of the
 * CQE at compile time, and commits it by sh_txn_commit_cqe(). cq.c has sh_cq_put() for the other
 * cases, and all else about completion queues.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_CQE_H
#define SOFTHCA_DEVICE_QUEUES_CQE_H

#include <string.h>

#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/objects.h"
#include "softhca/device/memory/qp_context.h"
#include "softhca/device/memory/umem.h"

#define SH_VENDOR_NONE	     0
#define SH_VENDOR_LOC_LEN    0x69
#define SH_VENDOR_LOC_QP_OP  0x6f
#define SH_VENDOR_FLUSH_SQ   0xf9
#define SH_VENDOR_FLUSH_RQ   0xf9
#define SH_VENDOR_RETRY	     0x81
#define SH_VENDOR_RNR	     0x87
#define SH_VENDOR_REM_ACCESS 0x88
#define SH_VENDOR_REM_OP     0x89
#define SH_VENDOR_REM_INV    0x8a

/*
 * Releases the lock of a CQ that may have a new CQE. A thread that has polled the CQ in vain for
 * long may doze. It says so in sh_ctx.dozing, and polls once more before it sleeps. Here the CQE is
 * stored first, and the flag is read after the lock has been released. The release is an atomic
 * exchange and orders the two; it pairs with the fence in shim/doorbells/idle.c.
 */
static inline void sh_cq_let_go(struct sh_dev *dev, struct sh_cq *cq)
{
	struct sh_ctx *ctx = (struct sh_ctx *)sh_at(dev, SH_CTX_OFF) + cq->ctx % SH_MAX_CTX;

	sh_unlock(dev, &cq->lock);
	if (__builtin_expect(__atomic_load_n(&ctx->dozing, __ATOMIC_SEQ_CST), 0))
		sh_cq_rouse(dev, ctx);
}

/* What a CQE says. sh_cqe_format() turns it into the 32 bytes of the format. */
struct sh_cqe {
	uint32_t qpn;	     /* dw0: bit 23 as the QP has it */
	__be32 imm_be;	     /* dw1, raw */
	uint32_t srqn_srcqp; /* dw2: flags | source QPN, or SRQ number */
	uint16_t sl_vid;     /* +12, host order */
	uint16_t slid;	     /* +14 */
	uint32_t byte_cnt;
	uint16_t wqe_index;
	uint8_t opcode;		  /* 5 bits; MLX4_CQE_ERROR for errors */
	uint8_t send;		  /* nonzero: send queue */
	uint8_t syndrome, vendor; /* errors */
	/* Raises the event of a CQ armed for solicited ones (errors always do). */
	uint8_t solicited;
};

/*
 * Adds a CQE to an open transaction. The caller holds the lock of the CQ, and the transaction
 * covers it. 0. -ENOSPC: the CQ has overrun; it is marked so, and the transaction raises CQ_ERR.
 * The caller moves the QP to the error state with QP_FATAL. -ENODEV: the CQ or its owner is gone;
 * nothing is added, and the caller goes on as if it had been.
 */
int sh_cq_put(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq,
	      const struct sh_cqe *cqe);

#define SH_CQ_MAX_LOG_SIZE 22

static inline uint32_t sh_cqe_size(const struct sh_dev *dev)
{
	return dev->cqe_size == MLX4_CQE_SIZE_LARGE ? MLX4_CQE_SIZE_LARGE : MLX4_CQE_SIZE;
}

/* The offset of the valid 32 bytes of entry n, which in a large entry are the second half. */
static inline uint64_t sh_cqe_at(const struct sh_dev *dev, uint32_t n, uint32_t entries)
{
	unsigned int large = dev->cqe_size == MLX4_CQE_SIZE_LARGE;

	return ((uint64_t)(n & (entries - 1)) * MLX4_CQE_SIZE << large) + large * MLX4_CQE_SIZE;
}

static inline uint8_t sh_cqe_owner(uint32_t n, uint32_t entries)
{
	return n & entries ? MLX4_CQE_OWNER : 0;
}

static inline uint64_t sh_two_be(__be32 first, __be32 second)
{
	return sh_two((MLX4_FORCE uint32_t)first, (MLX4_FORCE uint32_t)second);
}

/*
 * Composes the 32 bytes in registers. If small pieces were stored and read back as larger ones, the
 * processor would stall.
 */
static inline void sh_cqe_format(uint64_t word[4], const struct sh_cqe *cqe, uint8_t owner)
{
	bool error = cqe->opcode == MLX4_CQE_ERROR;
	uint8_t last =
		(cqe->opcode & MLX4_CQE_OPCODE_MASK) | (cqe->send ? MLX4_CQE_IS_SEND : 0) | owner;
	uint32_t tail = (uint32_t)cqe->wqe_index << 16 |
			(error ? (uint32_t)cqe->vendor << 8 | cqe->syndrome : 0);

	word[0] = sh_two_be(to_be32(cqe->qpn), cqe->imm_be);
	word[1] = sh_two_be(to_be32(cqe->srqn_srcqp),
			    to_be32((uint32_t)cqe->sl_vid << 16 | cqe->slid));
	word[2] = sh_two_be(0, to_be32(cqe->byte_cnt));
	word[3] = sh_two_be(to_be32(tail), to_be32(last));
}

/*
 * Asks for a line that this thread is going to write, and for the only copy of it. No memory need
 * be mapped there.
 */
static inline void sh_fetch_to_write(const void *at)
{
#if defined(__x86_64__)
	/*
	 * The compiler's built-in function asks for one more copy, unless the compiler is told that
	 * the processor has this instruction. All x86-64 processors accept it.
	 */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/*
 * Asks for the line of the next CQE. The processor of the thread that polls the CQ has it, and the
 * line takes about as long to come as all else that a message needs. So a sender asks for it first.
 * Takes no lock and checks no bounds: at a wrong address this does nothing.
 */
static inline void sh_cq_expect(const struct sh_dev *dev, const struct sh_cq *cq)
{
	uint64_t at = cq->buf.shm_off + sh_cqe_at(dev, cq->producer, 1u << (cq->log_size & 31));

	if (cq->buf.shm_off)
		sh_fetch_to_write(sh_at(dev, at));
}

/* Is the CQ in use, and not overwritten? */
static inline bool sh_cq_whole(const struct sh_cq *cq)
{
	return cq->live == SH_LIVE && cq->log_size <= SH_CQ_MAX_LOG_SIZE;
}

/* Is there room for entry n, by the consumer's position as last read? */
static inline bool sh_cq_has_room(const struct sh_cq *cq, uint32_t n)
{
	return n - cq->consumer_seen < 1u << (cq->log_size & 31);
}

/* Does the CQE raise the event of a CQ that is armed for solicited ones? */
static inline bool sh_cqe_solicits(const struct sh_cqe *cqe)
{
	return cqe->solicited || cqe->opcode == MLX4_CQE_ERROR;
}

/* Adds the producer's new position to a transaction. solicits: of the last CQE. */
static inline void sh_txn_cq(struct sh_txn_open *t, struct sh_cq *cq, uint32_t n, bool solicits)
{
	sh_txn_store_two(t, &cq->producer, n, solicits ? n : cq->solicited_producer);
}

/*
 * The place of the next CQE, entry n, in the usual case: the CQ is whole and not armed, has room by
 * the consumer's position as last read, and its buffer is device memory. NULL: another case, for
 * sh_cq_put(). The caller holds the CQ's lock.
 */
static inline uint64_t *sh_cq_usual(const struct sh_dev *dev, const struct sh_cq *cq, uint32_t n)
{
	uint32_t entries = 1u << (cq->log_size & 31);

	if (__builtin_expect(!sh_cq_whole(cq) || cq->overrun || cq->armed != SH_ARM_NONE ||
				     !sh_cq_has_room(cq, n) || cq->buf.shm_off % sizeof(uint64_t) ||
				     !sh_ctx_live(dev, cq->ctx),
			     0))
		return NULL;
	return sh_umem_in_place(dev, &cq->buf, sh_cqe_at(dev, n, entries), MLX4_CQE_SIZE);
}

/* Is the CQE after entry n on the same line? */
static inline bool sh_cqe_begins_line(const struct sh_dev *dev, uint32_t n)
{
	return !(n & 1) && sh_cqe_size(dev) == MLX4_CQE_SIZE;
}

/*
 * The CQE of a receive or a send that failed. srqn: where the receive is from, which only
 * completions of XRC say.
 */
static inline struct sh_cqe sh_cqe_failed(const struct sh_qp *qp, bool send, uint32_t srqn,
					  uint32_t index, uint8_t syndrome, uint8_t vendor)
{
	return (struct sh_cqe){
		.qpn = qp->qpn,
		.srqn_srcqp = !send && sh_qp_is_xrc(qp) ? srqn : 0,
		.wqe_index = (uint16_t)index,
		.opcode = MLX4_CQE_ERROR,
		.send = send,
		.syndrome = syndrome,
		.vendor = vendor,
	};
}

/* Composes a CQE as entry n of this CQ. */
static inline void sh_cqe_words(uint64_t word[4], const struct sh_cqe *cqe, const struct sh_cq *cq,
				uint32_t n)
{
	sh_cqe_format(word, cqe, sh_cqe_owner(n, 1u << (cq->log_size & 31)));
}

#endif
