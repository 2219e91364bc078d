// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider's objects, and the functions that its files offer each other. Functions return 0 or
 * -errno. Those in an operation table return what verbs requires there: 0 or a positive errno
 * value, or NULL with errno set.
 *
 * Lock order: table mutex, SQ, RQ, CQs in ascending CQN, SRQ. The doorbell record mutex, the
 * BlueFlame lock and the UAR lock are innermost.
 */
#ifndef MLX4_H
#define MLX4_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/driver.h>

#include "mlx4-barrier.h"
#include "mlx4-bytes.h"
#include "mlx4-format.h"
#include "mlx4-lock.h"

#if HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/memcheck.h>
#endif
#ifndef VALGRIND_MAKE_MEM_DEFINED
#define VALGRIND_MAKE_MEM_DEFINED(addr, len) ((void)0)
#endif

#define MLX4_CACHE_ALIGNED __attribute__((aligned(64)))

enum {
	MLX4_PORTS = 2,
	MLX4_TABLE_BUCKETS = 256,
	MLX4_DB_BUCKETS = 256,	     /* a page in each has records for all QPs of a device */
	MLX4_NO_NUMBER = 0x7fffffff, /* has more than 24 bits, so it is no object's number */
	MLX4_POLL_ERR = -2,	     /* poll_cq returns this for a CQE of an unknown object */
};

/* Pages that the device reads or writes: mapped, zeroed, and not inherited by children of
 * fork(). */
struct mlx4_buf {
	void *addr;
	size_t length;
};

/*
 * Maps numbers to objects. A reader holds the lock of a CQ to which the object's completions go,
 * and objects are cleared under that lock. Writers hold the mutex, but never while a command runs:
 * a destroy call waits until the application has acknowledged the object's events, and the thread
 * that is to acknowledge them may create another object first. Meanwhile the kernel may reuse the
 * number. So the thread that creates an object first removes a destroyed one with the same number,
 * and the thread that destroys removes only its own object. Buckets are freed with the context.
 */
struct mlx4_table {
	pthread_mutex_t mutex;
	uint32_t num_mask;
	uint32_t shift;
	uint32_t mask;
	void **bucket[MLX4_TABLE_BUCKETS];
};

enum mlx4_db_type { MLX4_DB_CQ, MLX4_DB_RQ, MLX4_DB_TYPES };
struct mlx4_db_page;

struct mlx4_device {
	struct ibv_device ibv_dev;
	int abi_version;
};

struct mlx4_context {
	struct ibv_context ibv_ctx;

	void *uar;
	void *blueflame;	       /* the page; NULL: no BlueFlame */
	unsigned int blueflame_size;   /* of one of the two buffers; 0: no BlueFlame */
	unsigned int blueflame_offset; /* protected by blueflame_lock */
	struct mlx4_lock blueflame_lock;
	struct mlx4_lock uar_lock; /* for CQ doorbells of two stores */

	int single_threaded;
	size_t page_size;
	unsigned int cqe_size;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	int has_xrc;
	/* IBV_LINK_LAYER_*, or 0 until the kernel is asked; all threads store the same */
	uint8_t link_layer[MLX4_PORTS];

	struct mlx4_table qps;
	struct mlx4_table xrc_srqs;

	pthread_mutex_t db_mutex;
	struct mlx4_db_page *db_pages[MLX4_DB_TYPES]; /* pages with free records */
	struct mlx4_db_page *db_hash[MLX4_DB_BUCKETS];
};

struct mlx4_pd {
	struct ibv_pd ibv_pd;
	uint32_t pdn;
};

struct mlx4_qp;
struct mlx4_srq;

struct mlx4_cq {
	struct ibv_cq ibv_cq;

	/* Protects all members below, and the tails of the QPs whose completions come here. */
	struct mlx4_lock lock MLX4_CACHE_ALIGNED;
	struct mlx4_cqe *next; /* the CQE at cons_index; set by mlx4_cq_set_ci() */
	struct mlx4_cqe *end;
	uint32_t cons_index;
	/* The QP of the last look-up. cur_rq_qpn is its connected_rq_qpn. */
	uint32_t cur_qpn;
	uint32_t cur_rq_qpn;
	struct mlx4_qp *cur_qp;
	struct mlx4_cq_dbrec *db;
	struct mlx4_srq *cur_srq;
	uint32_t cur_srqn;
	uint8_t phase; /* owner bit of next once software owns it */
	uint64_t stride;

	struct mlx4_cqe *cqes; /* the valid 32 bytes of the first CQE */
	uint32_t mask;	       /* CQEs - 1 */

	uint32_t cqn;
	uint32_t arm_sn;
	struct mlx4_buf buf;
};

/* State of an SRQ's WQE. The free WQEs form a list here. The provider only writes the links that
 * the device reads, each in the WQE before it. It does not touch a consumed WQE, which the device
 * has just read, until the WQE is posted again. */
struct mlx4_srq_wqe {
	uint64_t wr_id;
	struct mlx4_srq_wqe *next; /* NULL: the last free one. Not used while posted */
	struct mlx4_wqe_srq_next *wqe;
	uint64_t link; /* link to this WQE, 16 bits in the device's byte order */
};

struct mlx4_srq {
	struct ibv_srq ibv_srq;

	/* Protects all members below. head is the next WQE to post. tail is the last free one and
	 * is never posted, because its successor is not known yet. */
	struct mlx4_lock lock MLX4_CACHE_ALIGNED;
	struct mlx4_srq_wqe *head;
	struct mlx4_srq_wqe *tail;
	struct mlx4_rq_dbrec *db;
	struct mlx4_srq_wqe *wqes;
	uint16_t counter; /* receives posted, modulo 2^16 */
	uint32_t max_gs;
	uint32_t max;

	uint32_t shift;
	uint32_t srqn;
	struct mlx4_cq *xrc_cq; /* NULL: not an XRC SRQ */
	struct mlx4_buf buf;
};

/* Tables for post_send, indexed by opcode of a QP type and by the low bits of send_flags. */
struct mlx4_send_op;
struct mlx4_send_flags;

/* lock protects all members except the tail. The tail changes under the lock of the send CQ, by a
 * release store. */
struct mlx4_sq {
	struct mlx4_lock lock;
	uint32_t head;	/* index of the next WQE */
	uint32_t limit; /* head at which the queue is full, by the last known tail */
	void *next;	/* the slot at head, and the owner bit for it; set by mlx4_sq_rewind() */
	__be32 owner;
	__be32 doorbell_qpn;
	const struct mlx4_send_op *ops;
	const struct mlx4_send_flags *flags;
	uint64_t *wrid;
	void *doorbell;

	uint32_t mask; /* slots - 1 */
	uint32_t shift;
	uint64_t stride; /* 1 << shift */
	void *end;
	char *wqes;
	uint32_t longest_ds; /* the largest of all posted WQEs */
	uint32_t spare; /* slots between the newest WQE and the oldest that may be overwritten */
	uint32_t max_post;
	uint32_t max_gs;
	uint32_t max_inline;
	uint32_t max_short; /* the same, or 0 without BlueFlame */

	/* Low 16 bits of the index after the last completed WQE */
	uint16_t tail MLX4_CACHE_ALIGNED;
};

/* Like the send queue, with the receive CQ. slots is 0 if the QP receives through an SRQ. */
struct mlx4_rq {
	struct mlx4_lock lock;
	uint32_t head;
	uint32_t limit;
	uint32_t mask;
	uint32_t shift;
	char *wqes;
	uint64_t *wrid;
	struct mlx4_rq_dbrec *db;
	uint32_t max_gs;
	uint32_t max_post;
	uint32_t slots;

	uint32_t tail MLX4_CACHE_ALIGNED;
};

struct mlx4_qp {
	struct ibv_qp ibv_qp;
	struct mlx4_sq sq MLX4_CACHE_ALIGNED;
	struct mlx4_rq rq MLX4_CACHE_ALIGNED;
	struct mlx4_srq *srq; /* NULL: a receive queue of its own, or XRC; see mlx4_has_rq() */
	/* For the fast path of polling, which handles connected QPs only: the SRQ, or NULL; the
	 * number of the QP if it has a receive queue, else MLX4_NO_NUMBER. */
	struct mlx4_srq *connected_srq;
	uint32_t connected_rq_qpn;
	int is_ud;
	unsigned int sl_shift; /* position of the SL in its byte of a CQE: InfiniBand or Ethernet */
	struct ibv_qp_cap granted;
	struct mlx4_buf buf;
};

struct mlx4_ah {
	struct ibv_ah ibv_ah;
	struct mlx4_av av;
	__be16 vlan;
	uint8_t mac[6];
};

#define MLX4_CONTAINER(type, member)                                                               \
	static inline struct mlx4_##type *to_mlx4_##type(struct ibv_##member *obj)                 \
	{                                                                                          \
		return (struct mlx4_##type *)((char *)obj -                                        \
					      offsetof(struct mlx4_##type, ibv_##member));         \
	}
MLX4_CONTAINER(pd, pd)
MLX4_CONTAINER(cq, cq)
MLX4_CONTAINER(srq, srq)
MLX4_CONTAINER(qp, qp)
MLX4_CONTAINER(ah, ah)

static inline struct mlx4_context *to_mlx4_ctx(struct ibv_context *ctx)
{
	return (struct mlx4_context *)((char *)ctx - offsetof(struct mlx4_context, ibv_ctx));
}

static inline struct mlx4_device *to_mlx4_dev(struct ibv_device *dev)
{
	return (struct mlx4_device *)((char *)dev - offsetof(struct mlx4_device, ibv_dev));
}

/* The smallest power of two that is at least n; 1 for 0. */
static inline uint32_t mlx4_ceil_pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* The smallest shift that is at least min and has 1 << shift >= n. */
static inline uint32_t mlx4_ceil_shift(uint32_t n, uint32_t min)
{
	uint32_t shift = min;

	while ((1u << shift) < n)
		++shift;
	return shift;
}

static inline size_t mlx4_align(size_t n, size_t a)
{
	return (n + a - 1) & ~(a - 1);
}

/* buf.c: returns 0, -ENOMEM, or -errno of madvise() */
int mlx4_alloc_buf(struct mlx4_context *ctx, struct mlx4_buf *buf, size_t size);
void mlx4_free_buf(struct mlx4_buf *buf);
/* Allocates zeroed memory, aligned for the objects above; free() frees it. NULL with errno set. */
void *mlx4_zalloc(size_t size);

/* dbrec.c: returns a zeroed record, or NULL with errno set */
void *mlx4_alloc_db(struct mlx4_context *ctx, enum mlx4_db_type type);
void mlx4_free_db(struct mlx4_context *ctx, enum mlx4_db_type type, void *db);

/* table.c: init fails with -EINVAL if num is not a power of two, store with -ENOMEM. Callers of
 * store and clear hold the mutex. */
int mlx4_table_init(struct mlx4_table *table, uint32_t num);
void mlx4_table_destroy(struct mlx4_table *table);
int mlx4_table_store(struct mlx4_table *table, uint32_t number, void *object);
void mlx4_table_clear(struct mlx4_table *table, uint32_t number);

static inline void *mlx4_table_find(struct mlx4_table *table, uint32_t number)
{
	uint32_t i = number & table->num_mask;
	/* Acquire: pairs with the release in mlx4_table_store(). */
	void **bucket = __atomic_load_n(&table->bucket[i >> table->shift], __ATOMIC_ACQUIRE);

	return bucket ? __atomic_load_n(&bucket[i & table->mask], __ATOMIC_ACQUIRE) : NULL;
}

/* verbs.c */
int mlx4_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int mlx4_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
struct ibv_pd *mlx4_alloc_pd(struct ibv_context *context);
int mlx4_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_mr *mlx4_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
int mlx4_dereg_mr(struct ibv_mr *mr);
/* Returns IBV_LINK_LAYER_* of a port, or -errno. Asks the kernel once per port. */
int mlx4_link_layer(struct mlx4_context *ctx, uint8_t port);

/* ah.c */
struct ibv_ah *mlx4_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int mlx4_destroy_ah(struct ibv_ah *ibah);

/* cq.c */
struct ibv_cq *mlx4_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel, int comp_vector);
int mlx4_resize_cq(struct ibv_cq *ibcq, int cqe);
int mlx4_destroy_cq(struct ibv_cq *ibcq);
int mlx4_arm_cq(struct ibv_cq *ibcq, int solicited_only);
void mlx4_cq_event(struct ibv_cq *ibcq);

/*
 * cq-poll.c, post-send.c, post-recv.c: the data path. The functions named _st take no locks; they
 * are for contexts whose application has promised to use a single thread.
 */
int mlx4_poll_cq(struct ibv_cq *ibcq, int ne, struct ibv_wc *wc);
int mlx4_poll_cq_st(struct ibv_cq *ibcq, int ne, struct ibv_wc *wc);
int mlx4_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int mlx4_post_send_st(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int mlx4_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int mlx4_post_recv_st(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int mlx4_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int mlx4_post_srq_recv_st(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr);

/* cq-clean.c. Callers hold the lock of the CQ. */
void mlx4_cq_clean_qp(struct mlx4_cq *cq, uint32_t qpn, struct mlx4_srq *srq);
void mlx4_cq_clean_xrc_srq(struct mlx4_cq *cq, struct mlx4_srq *srq);
void mlx4_cq_copy_resized(struct mlx4_cq *cq, struct mlx4_cqe *new_cqes, uint32_t new_mask);

static inline struct mlx4_cqe *mlx4_cqe_at(const struct mlx4_cq *cq, uint32_t index)
{
	return (struct mlx4_cqe *)((char *)cq->cqes + (size_t)(index & cq->mask) * cq->stride);
}

/* Has the device handed the CQE to software? phase is the owner bit that such a CQE has. */
static inline int mlx4_cqe_owned(const struct mlx4_cqe *cqe, uint8_t phase)
{
	return (int8_t)(__atomic_load_n(&cqe->owner_sr_opcode, __ATOMIC_RELAXED) ^ phase) >= 0;
}

/* The owner bit that the CQE at a free-running index has once software owns it. */
static inline uint8_t mlx4_cq_phase(const struct mlx4_cq *cq, uint32_t index)
{
	return index & (cq->mask + 1) ? MLX4_CQE_OWNER : 0;
}

/* These make sure that a look-up does not find an object that may have been destroyed. */
static inline void mlx4_cq_forget_qp(struct mlx4_cq *cq)
{
	cq->cur_qpn = MLX4_NO_NUMBER;
	cq->cur_rq_qpn = MLX4_NO_NUMBER;
	cq->cur_qp = NULL;
}

static inline void mlx4_cq_forget_srq(struct mlx4_cq *cq)
{
	cq->cur_srqn = MLX4_NO_NUMBER;
	cq->cur_srq = NULL;
}

static inline void mlx4_cq_set_ci(struct mlx4_cq *cq, uint32_t index)
{
	cq->cons_index = index;
	cq->next = mlx4_cqe_at(cq, index);
	cq->phase = mlx4_cq_phase(cq, index);
}

static inline void mlx4_cq_update_ci(struct mlx4_cq *cq)
{
	udma_taken_barrier(); /* pairs with the device's read before it reuses a CQE */
	*(volatile __be32 *)&cq->db->set_ci = to_be32(cq->cons_index & MLX4_CQ_DB_CI_MASK);
}

/* srq.c */
struct ibv_srq *mlx4_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *mlx4_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
				    struct ibv_cq *cq, struct ibv_srq_init_attr *attr);
int mlx4_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask);
int mlx4_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int mlx4_destroy_srq(struct ibv_srq *ibsrq);

/* Does the QP have a receive queue of its own? An XRC QP does not: it receives into the SRQ that a
 * message names. A completion of such a receive has bit 23 of the QPN set and belongs to the
 * SRQ. */
static inline int mlx4_has_rq(const struct mlx4_qp *qp)
{
	return !qp->srq && qp->ibv_qp.qp_type != IBV_QPT_XRC;
}

/* Appends a consumed WQE, index < max, to the free list. The caller holds the lock of the SRQ. */
static inline void mlx4_srq_free(struct mlx4_srq *srq, uint32_t index)
{
	struct mlx4_srq_wqe *freed = &srq->wqes[index];

	freed->next = NULL;
	srq->tail->next = freed;
	srq->tail = freed;
}

/* qp-size.c */
int mlx4_size_sq(struct mlx4_context *ctx, const struct ibv_qp_cap *cap, enum ibv_qp_type type,
		 struct mlx4_sq *sq);
int mlx4_size_rq(struct mlx4_context *ctx, const struct ibv_qp_cap *cap, struct mlx4_rq *rq);
void mlx4_lay_out_qp(struct mlx4_qp *qp);

/* qp.c */
struct ibv_qp *mlx4_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int mlx4_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask);
int mlx4_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int mlx4_destroy_qp(struct ibv_qp *ibqp);
void mlx4_init_sq_ownership(struct mlx4_qp *qp);

/* send-ops.c */
const struct mlx4_send_op *mlx4_send_ops(enum ibv_qp_type type);
const struct mlx4_send_flags *mlx4_send_flags(int sq_sig_all);

/* post-send-short.c: like mlx4_post_send_any(), for a request with one entry and more than plain
 * flags. The caller has checked that the queue has room and that the opcode exists. */
int mlx4_post_short(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		    uint32_t index);
int mlx4_post_short_st(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		       uint32_t index);
/* Like mlx4_post_send_any(), for a list that probably begins with such requests. The caller has not
 * checked any of them. */
int mlx4_post_short_list(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
			 uint32_t index);

/* post-send-any.c: handles all requests that the fast path does not. The caller holds the lock of
 * the SQ; this function releases it. index is the index after the WQEs that the call has posted so
 * far; they begin at sq.head. Returns 0 or a positive errno value. */
int mlx4_post_send_any(struct mlx4_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		       uint32_t index);

/* xrc.c */
extern struct ibv_more_ops mlx4_more_ops;

static inline void *mlx4_sq_slot(const struct mlx4_sq *sq, uint32_t index)
{
	return sq->wqes + ((size_t)(index & sq->mask) << sq->shift);
}

/* Sets head and the members that depend on it. */
static inline void mlx4_sq_rewind(struct mlx4_sq *sq, uint32_t head)
{
	sq->head = head;
	sq->next = mlx4_sq_slot(sq, head);
	sq->owner = head & (sq->mask + 1) ? MLX4_BE32(MLX4_WQE_OWNER) : 0;
}

#endif
