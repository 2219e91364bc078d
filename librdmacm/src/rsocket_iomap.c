// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that the peer writes into directly. A mapping is an entry of the table that lives at the
 * peer, which is told of a change by a message, in order with the data. Its number of entries was
 * set at the peer, by RDMA_IOMAPSIZE.
 */

#include <byteswap.h>
#include <sys/mman.h>

#include "rs.h"

struct rs_iomr {
	struct ibv_mr *mr;
	uint64_t offset;
	size_t len;
	int index; /* -1: for one's own use */
	struct rs_iomr *next;
};

uint8_t rs_iomap_scale(uint32_t size)
{
	return size <= 128 ? (uint8_t)size : (uint8_t)(128 | size >> 8);
}

uint32_t rs_iomap_unscale(uint8_t scale)
{
	return scale <= 128 ? scale : (scale & 127U) << 8;
}

void rs_iomap_free(struct rs *rs)
{
	struct rs_iomr *iomr;

	while ((iomr = rs->iomrs)) {
		rs->iomrs = iomr->next;
		ibv_dereg_mr(iomr->mr);
		free(iomr);
	}
}

void rs_iomap_forget(struct rs *rs)
{
	struct rs_iomr *iomr;

	while ((iomr = rs->iomrs)) {
		rs->iomrs = iomr->next;
		free(iomr);
	}
}

/* Waiting for room gives the lock away, so it comes before anything is looked up or changed. */
static bool publishable(const struct rs *rs)
{
	return rs->broken || rs->controls - rs->controls_done < RS_CONTROLS;
}

/* Writes an entry of the peer's table, for which there is room; iomr NULL: empties it. */
static int publish(struct rs *rs, int index, const struct rs_iomr *iomr)
{
	struct rs_mapping entry = {0};

	if (iomr) {
		entry.offset = iomr->offset;
		entry.buffer.addr = (uintptr_t)iomr->mr->addr;
		entry.buffer.key = iomr->mr->rkey;
		entry.buffer.length = (uint32_t)iomr->len;
	}
	if (rs->peer_swaps) {
		entry.offset = bswap_64(entry.offset);
		entry.buffer.addr = bswap_64(entry.buffer.addr);
		entry.buffer.key = bswap_32(entry.buffer.key);
		entry.buffer.length = bswap_32(entry.buffer.length);
	}
	return rs_post_control(rs, RS_IOMAP, index, &entry, sizeof(entry),
			       rs->peer_iomap + index * sizeof(entry), rs->peer_key);
}

static int free_index(const struct rs *rs)
{
	const struct rs_iomr *iomr;
	int index;

	for (index = 0; (uint32_t)index < rs->peer_iomap_size; index++) {
		for (iomr = rs->iomrs; iomr && iomr->index != index; iomr = iomr->next)
			;
		if (!iomr)
			return index;
	}
	return -ENOMEM;
}

static int map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset)
{
	bool remote = prot & PROT_WRITE;
	struct rs_iomr *iomr;
	int index = -1, ret;

	if (rs->state != RS_CONNECTED || rs->broken)
		return -ENOTCONN;
	if (remote) {
		ret = rs_wait(rs, publishable, -1);
		if (ret)
			return ret;
		if (rs->broken)
			return -ENOTCONN;
		index = free_index(rs);
		if (index < 0)
			return index;
	}
	iomr = calloc(1, sizeof(*iomr));
	if (!iomr)
		return -ENOMEM;
	errno = 0;
	iomr->mr = ibv_reg_mr(rs->id->pd, buf, len,
			      remote ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
				     : IBV_ACCESS_LOCAL_WRITE);
	if (!iomr->mr) {
		ret = errno ? -errno : -ENOMEM;
		free(iomr);
		return ret;
	}
	iomr->len = len;
	iomr->index = index;
	iomr->offset = *offset == -1 ? (uintptr_t)buf : (uint64_t)*offset;
	ret = remote ? publish(rs, index, iomr) : 0;
	if (ret) {
		ibv_dereg_mr(iomr->mr);
		free(iomr);
		return ret;
	}
	iomr->next = rs->iomrs;
	rs->iomrs = iomr;
	*offset = (off_t)iomr->offset;
	return 0;
}

PUBLIC off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	int ret, state = cm_hold_cancel();
	struct rs *rs = rs_hold(socket);

	if (!rs) {
		cm_let_cancel(state);
		return cm_return(-EBADF);
	}
	if (rs->ds || flags || !len || len > UINT32_MAX || offset < -1 || (prot & ~PROT_WRITE))
		ret = -EINVAL;
	else
		ret = map(rs, buf, len, prot, &offset);
	pthread_mutex_unlock(&rs->lock);
	cm_let_cancel(state);
	return ret ? cm_return(ret) : offset;
}

static struct rs_iomr **find(struct rs *rs, const void *buf, size_t len)
{
	struct rs_iomr **at = &rs->iomrs;

	while (*at && ((*at)->mr->addr != buf || (*at)->len != len))
		at = &(*at)->next;
	return at;
}

static bool told_or_publishable(const struct rs *rs)
{
	return rs->heard_disconnect || publishable(rs);
}

static int unmap(struct rs *rs, const void *buf, size_t len)
{
	struct rs_iomr **at = find(rs, buf, len), *iomr;
	int ret;

	if (*at && (*at)->index >= 0) {
		ret = rs_wait(rs, told_or_publishable, -1);
		if (ret)
			return ret;
		/* Another thread may have been quicker. */
		at = find(rs, buf, len);
	}
	iomr = *at;
	if (!iomr)
		return -EINVAL;
	*at = iomr->next;
	/* A peer that can no longer be told can no longer write, either. A peer that is told may
	 * write until it has heard of it: then its connection breaks. */
	if (iomr->index >= 0 && !rs->broken && !rs->heard_disconnect)
		publish(rs, iomr->index, NULL);
	ibv_dereg_mr(iomr->mr);
	free(iomr);
	return 0;
}

PUBLIC int riounmap(int socket, void *buf, size_t len)
{
	int ret, state = cm_hold_cancel();
	struct rs *rs = rs_hold(socket);

	if (!rs) {
		cm_let_cancel(state);
		return cm_return(-EBADF);
	}
	ret = unmap(rs, buf, len);
	pthread_mutex_unlock(&rs->lock);
	cm_let_cancel(state);
	return cm_return(ret);
}
