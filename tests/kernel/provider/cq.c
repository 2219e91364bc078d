// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: the kernel produces, we consume. The CQ's lock covers the ring, its
 * replacement included.
 */

#include <errno.h>
#include <stdlib.h>

#include "rxe.h"

struct create_cq_resp {
	struct ibv_create_cq_resp core;
	struct rxe_create_cq_resp rxe;
};

struct resize_cq_resp {
	struct ibv_resize_cq_resp core;
	struct rxe_resize_cq_resp rxe;
};

_Static_assert(offsetof(struct create_cq_resp, rxe) == 8, "driver answer of CREATE_CQ");
_Static_assert(offsetof(struct resize_cq_resp, rxe) == 8, "driver answer of RESIZE_CQ");

struct ibv_cq *rxe_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct create_cq_resp resp;
	struct ibv_create_cq cmd;
	struct rxe_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);

	ret = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &cq->ibv, &cmd, sizeof(cmd),
				&resp.core, sizeof(resp));
	if (ret)
		goto err_free;

	ret = -rxe_ring_map(&cq->ring, context->cmd_fd, &resp.rxe.mi, sizeof(struct ibv_kern_wc));
	if (ret)
		goto err_destroy;

	return &cq->ibv;

err_destroy:
	/*
	 * What waits for acknowledgements in there is not yet the library's to have set up; there
	 * are none.
	 */
	cq->ibv.context = context;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	ibv_cmd_destroy_cq(&cq->ibv);
err_free:
	pthread_spin_destroy(&cq->lock);
	free(cq);
	errno = ret;
	return NULL;
}

int rxe_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct rxe_cq *cq = to_rxe_cq(ibv);
	struct resize_cq_resp resp;
	struct ibv_resize_cq cmd;
	int ret;

	/*
	 * The kernel moves what waits from the old ring to the new one: nobody may consume
	 * meanwhile.
	 */
	pthread_spin_lock(&cq->lock);

	ret = ibv_cmd_resize_cq(ibv, cqe, &cmd, sizeof(cmd), &resp.core, sizeof(resp));
	if (!ret) {
		rxe_ring_unmap(&cq->ring);
		ret = -rxe_ring_map(&cq->ring, ibv->context->cmd_fd, &resp.rxe.mi,
				    sizeof(struct ibv_kern_wc));
	}

	pthread_spin_unlock(&cq->lock);
	return ret;
}

static void wc_from_kernel(struct ibv_wc *wc, const struct ibv_kern_wc *kern)
{
	wc->wr_id = kern->wr_id;
	wc->status = kern->status;
	wc->opcode = kern->opcode;
	wc->vendor_err = kern->vendor_err;
	wc->byte_len = kern->byte_len;
	wc->imm_data = kern->imm_data;
	wc->qp_num = kern->qp_num;
	wc->src_qp = kern->src_qp;
	wc->wc_flags = kern->wc_flags;
	wc->pkey_index = kern->pkey_index;
	wc->slid = kern->slid;
	wc->sl = kern->sl;
	wc->dlid_path_bits = kern->dlid_path_bits;
}

int rxe_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct rxe_cq *cq = to_rxe_cq(ibv);
	const struct ibv_kern_wc *kern;
	int n = 0;

	pthread_spin_lock(&cq->lock);

	if (!cq->ring.buf)
		n = -1;
	else
		for (; n < num_entries && (kern = ring_head(&cq->ring)); ++n) {
			wc_from_kernel(&wc[n], kern);
			ring_consume(&cq->ring);
		}

	pthread_spin_unlock(&cq->lock);
	return n;
}

int rxe_destroy_cq(struct ibv_cq *ibv)
{
	struct rxe_cq *cq = to_rxe_cq(ibv);
	int ret;

	ret = ibv_cmd_destroy_cq(ibv);
	if (ret)
		return ret;

	rxe_ring_unmap(&cq->ring);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}
