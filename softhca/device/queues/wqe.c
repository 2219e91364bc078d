// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send WQEs as the device reads them. Never trusts a length, never writes to the queue. The caller
 * holds the QP's lock. Ignores bits that BlueFlame leaves in the control segment.
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/copy.h"
#include "wqe.h"

#define BIT(n) (1u << (n))

static const uint32_t legal_opcodes[] = {
	[SH_SVC_RC] = BIT(MLX4_OPCODE_NOP) | BIT(MLX4_OPCODE_SEND) | BIT(MLX4_OPCODE_SEND_IMM) |
		      BIT(MLX4_OPCODE_RDMA_WRITE) | BIT(MLX4_OPCODE_RDMA_WRITE_IMM) |
		      BIT(MLX4_OPCODE_RDMA_READ) | BIT(MLX4_OPCODE_ATOMIC_CS) |
		      BIT(MLX4_OPCODE_ATOMIC_FA),
	[SH_SVC_UC] = BIT(MLX4_OPCODE_NOP) | BIT(MLX4_OPCODE_SEND) | BIT(MLX4_OPCODE_SEND_IMM) |
		      BIT(MLX4_OPCODE_RDMA_WRITE) | BIT(MLX4_OPCODE_RDMA_WRITE_IMM),
	[SH_SVC_UD] = BIT(MLX4_OPCODE_NOP) | BIT(MLX4_OPCODE_SEND) | BIT(MLX4_OPCODE_SEND_IMM),
};

static uint32_t opcodes_of(uint32_t type)
{
	switch (type) {
	case SH_QPT_UC:
		return legal_opcodes[SH_SVC_UC];
	case SH_QPT_UD:
		return legal_opcodes[SH_SVC_UD];
	default:
		return legal_opcodes[SH_SVC_RC];
	}
}

int sh_wqe_posted(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index)
{
	__be32 dw0;

	if (!qp->sq_present)
		return 0;
	if (sh_umem_read(dev, &qp->buf, sh_wqe_off(qp, index), &dw0, sizeof(dw0)))
		return -EFAULT;
	return sh_wqe_owned(qp, index, dw0);
}

/*
 * mlx4's rule for readers: at each multiple of 16 bytes a word says what follows. The ends of
 * chunks are such multiples, too.
 */
SH_INLINE int parse_data(struct sh_wqe *wqe, unsigned int pos, unsigned int end)
{
	bool plain = false;

	while (pos + 16 <= end) {
		const struct mlx4_wqe_data *d = (const void *)(wqe->raw + pos);
		uint32_t count = from_be32(d->byte_count);
		struct sh_sge *sge;

		if (wqe->nsge == SH_MAX_SEGS)
			return MLX4_SYNDROME_LOC_QP_OP;
		sge = &wqe->sge[wqe->nsge];
		if (count & MLX4_INLINE_SEG) {
			uint32_t len = count & MLX4_INLINE_LEN_MASK;
			unsigned int next = pos + sizeof(struct mlx4_wqe_inline) + len;

			if (next > end || (len && pos / MLX4_CHUNK != (next - 1) / MLX4_CHUNK))
				return MLX4_SYNDROME_LOC_QP_OP;
			if (len) {
				wqe->is_inline = 1;
				sge->addr = (uintptr_t)(wqe->raw + pos +
							sizeof(struct mlx4_wqe_inline));
				sge->len = len;
				sge->key = 0;
				wqe->nsge++;
			}
			wqe->length += len;
			pos = (next + 15) & ~15u;
			continue;
		}
		if (count) {
			plain = true;
			sge->addr = from_be64(d->addr);
			sge->len = count;
			sge->key = from_be32(d->lkey);
			wqe->nsge++;
			wqe->length += count;
		}
		pos += 16;
	}
	return plain && wqe->is_inline ? MLX4_SYNDROME_LOC_QP_OP : 0;
}

/* Only few WQEs have this, so it is parsed out of the way of the others. */
SH_OUTLINE void parse_datagram(struct sh_wqe *wqe, const struct mlx4_wqe_datagram *dg)
{
	uint32_t word = from_be32(dg->av.port_pd);

	wqe->av_pd = word & MLX4_PDN_MASK;
	wqe->av_port = (word >> MLX4_AV_PORT_SHIFT) & MLX4_AV_PORT_MASK;
	wqe->grh = !!(dg->av.g_slid & MLX4_AV_GRH);
	wqe->path_bits = dg->av.g_slid & 0x7f;
	wqe->dlid = from_be16(dg->av.dlid);
	wqe->gid_index = dg->av.gid_index;
	wqe->hop_limit = dg->av.hop_limit;
	word = from_be32(dg->av.sl_tclass_flowlabel);
	wqe->sl = word >> MLX4_AV_SL_SHIFT;
	wqe->traffic_class = word >> MLX4_AV_TCLASS_SHIFT;
	wqe->flow_label = word & MLX4_AV_FLOW_MASK;
	wqe->dgid = dg->av.dgid;
	wqe->dqpn = from_be32(dg->dqpn) & MLX4_QPN_MASK;
	wqe->qkey = from_be32(dg->qkey);
}

SH_INLINE uint8_t parse(const struct sh_qp *qp, struct sh_wqe *wqe, unsigned int end)
{
	unsigned int pos = sizeof(struct mlx4_wqe_ctrl);

	if (!(opcodes_of(qp->type) & BIT(wqe->opcode)))
		return MLX4_SYNDROME_LOC_QP_OP;
	if (wqe->opcode == MLX4_OPCODE_NOP)
		return 0;
	if (qp->type == SH_QPT_UD) {
		if (pos + sizeof(struct mlx4_wqe_datagram) > end)
			return MLX4_SYNDROME_LOC_QP_OP;
		parse_datagram(wqe, (const void *)(wqe->raw + pos));
		pos += sizeof(struct mlx4_wqe_datagram);
	} else if (wqe->opcode != MLX4_OPCODE_SEND && wqe->opcode != MLX4_OPCODE_SEND_IMM) {
		const struct mlx4_wqe_raddr *ra = (const void *)(wqe->raw + pos);

		if (pos + sizeof(*ra) > end)
			return MLX4_SYNDROME_LOC_QP_OP;
		wqe->raddr = from_be64(ra->raddr);
		wqe->rkey = from_be32(ra->rkey);
		pos += sizeof(*ra);
		if (sh_wqe_is_atomic(wqe)) {
			const struct mlx4_wqe_atomic *at = (const void *)(wqe->raw + pos);

			if (pos + sizeof(*at) > end)
				return MLX4_SYNDROME_LOC_QP_OP;
			wqe->swap_add = from_be64(at->swap_add);
			wqe->compare = from_be64(at->compare);
			pos += sizeof(*at);
		}
	}
	return parse_data(wqe, pos, end);
}

/* Copies whole 16 bytes, without a call: most WQEs have three or four such pieces. */
static inline void copy16(void *to, const void *from, unsigned int len)
{
	for (unsigned int i = 0; i < len; i += 16)
		__builtin_memcpy((char *)to + i, (const char *)from + i, 16);
}

/* Parses the control segment, which has been copied. Returns the length of the whole WQE. */
static inline unsigned int parse_ctrl(const struct sh_qp *qp, uint32_t index, struct sh_wqe *wqe)
{
	const struct mlx4_wqe_ctrl *ctrl = (const void *)wqe->raw;
	uint32_t flags = from_be32(ctrl->flags);

	sh_zero(wqe, offsetof(struct sh_wqe, sge));
	wqe->index = index;
	wqe->opcode = from_be32(ctrl->owner_opcode) & MLX4_WQE_OPCODE_MASK;
	wqe->fence = !!(ctrl->fence_size & MLX4_WQE_FENCE);
	wqe->strong = !!(flags & MLX4_WQE_SO);
	wqe->signaled = (flags & MLX4_WQE_CQ_UPDATE) == MLX4_WQE_CQ_UPDATE || qp->sq_sig_all;
	wqe->solicited = !!(flags & MLX4_WQE_SOLICITED);
	wqe->srqn = flags >> MLX4_WQE_SRQN_SHIFT;
	wqe->imm_be = ctrl->imm;
	return (ctrl->fence_size & MLX4_WQE_DS_MASK) * 16u;
}

static inline bool length_fits(unsigned int slot, unsigned int size)
{
	return size >= sizeof(struct mlx4_wqe_ctrl) && size <= slot &&
	       size <= sizeof(((struct sh_wqe *)NULL)->raw);
}

void sh_wqe_take(const struct sh_qp *qp, uint32_t index, const void *at, unsigned int slot,
		 struct sh_wqe *wqe)
{
	unsigned int size;

	copy16(wqe->raw, at, sizeof(struct mlx4_wqe_ctrl));
	size = parse_ctrl(qp, index, wqe);
	if (!length_fits(slot, size)) {
		wqe->bad = MLX4_SYNDROME_LOC_QP_OP;
		return;
	}
	copy16(wqe->raw + sizeof(struct mlx4_wqe_ctrl),
	       (const char *)at + sizeof(struct mlx4_wqe_ctrl),
	       size - sizeof(struct mlx4_wqe_ctrl));
	wqe->bad = parse(qp, wqe, size);
}

int sh_wqe_read(struct sh_dev *dev, const struct sh_qp *qp, uint32_t index, struct sh_wqe *wqe)
{
	const unsigned int ctrl = sizeof(struct mlx4_wqe_ctrl);
	uint64_t off = sh_wqe_off(qp, index);
	unsigned int size;
	int posted = sh_wqe_posted(dev, qp, index);

	if (posted <= 0)
		return posted ? posted : -ENOENT;
	/* Like in sh_wqe_fetch(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (sh_umem_read(dev, &qp->buf, off, wqe->raw, ctrl))
		return -EFAULT;
	size = parse_ctrl(qp, index, wqe);
	if (!length_fits(1u << (qp->sq_shift & 15), size)) {
		wqe->bad = MLX4_SYNDROME_LOC_QP_OP;
		return 0;
	}
	if (size > ctrl && sh_umem_read(dev, &qp->buf, off + ctrl, wqe->raw + ctrl, size - ctrl))
		return -EFAULT;
	wqe->bad = parse(qp, wqe, size);
	return 0;
}
