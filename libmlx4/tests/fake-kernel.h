// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel and a bus inside one process, with just what the provider needs: a sysfs tree, a device
 * file whose commands this part answers, and plain memory for the UAR and BlueFlame pages. The
 * program's own write() and open() take precedence over the C library's. The fields of commands are
 * read by their offsets in the kernel's interface.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <infiniband/driver.h>

#include "fields.h"

enum { FK_COMMANDS = 64, FK_MAX_COMMAND = 256 };

struct fake_kernel {
	/* What the device is. Set it before fk_open(). */
	int driver_abi;
	uint32_t qp_tab_size;
	uint16_t bf_reg_size;
	uint32_t dev_caps;
	uint32_t cqe_size;
	uint32_t cap_flags;
	uint8_t link_layer;

	/* What the kernel does next. */
	int fail_command; /* this command fails once, with fail_errno */
	int fail_errno;
	void (*hook)(int command, uint8_t *cmd,
		     uint8_t *resp); /* called after a command was carried out */
	uint32_t next_qpn, next_cqn, next_srqn;
	/* XRC QPs get numbers without bit 23, as a mainline kernel gives to QPs that only send */
	int xrc_without_bit;

	/* The commands that the kernel got. */
	unsigned int count[FK_COMMANDS];
	uint8_t last[FK_COMMANDS][FK_MAX_COMMAND];
	size_t last_len[FK_COMMANDS];
	uint8_t *uar, *bf; /* the pages that the provider has mapped */

	/* Allocations of the provider: the fail_at-th from now on fails; 0: no failure. */
	unsigned int fail_at;
	int mapped; /* mmap() calls minus munmap() calls */
};

extern struct fake_kernel fk;

/* Resets the kernel to the default kind: driver ABI 3, BlueFlame, XRC, 32-byte entries. */
void fk_reset(void);

/*
 * Opens the device through libibverbs. Returns NULL and sets errno on failure. The first call in a
 * process fixes abi_version.
 */
struct ibv_context *fk_open(void);

/*
 * Makes the sysfs tree and the device file; fk_open() does so by itself if they are missing.
 * fk_put_file() changes one attribute.
 */
void fk_make_device(void);
void fk_put_file(const char *path, const char *text);

/* Removes the sysfs tree. */
void fk_cleanup(void);

/* Big-endian words at an offset. */
uint16_t be16_at(const void *p, size_t offset);
uint32_t be32_at(const void *p, size_t offset);
uint64_t be64_at(const void *p, size_t offset);
void put_be16(void *p, size_t offset, uint16_t value);
void put_be32(void *p, size_t offset, uint32_t value);
void put_be64(void *p, size_t offset, uint64_t value);

/*
 * Queues as the device sees them.
 */

struct dev_cq {
	struct ibv_cq *cq;
	uint8_t *buf;
	uint8_t *db;
	uint32_t entries;
	uint32_t entry_size;
	uint32_t producer;
};

struct dev_qp {
	struct ibv_qp *qp;
	uint8_t *sq, *rq; /* where the device finds the queues */
	uint8_t *db;
	uint32_t sq_slots, sq_shift, rq_slots, rq_shift;
};

struct dev_srq {
	struct ibv_srq *srq;
	uint8_t *buf;
	uint8_t *db;
	uint32_t slots, shift;
	uint32_t head; /* where the device takes the next WQE */
};

void dev_create_cq(struct dev_cq *d, struct ibv_context *ctx, int cqe);

/* attr as for ibv_create_qp(); on return, its caps are those granted. */
void dev_create_qp(struct dev_qp *d, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/* With domain and cq it is an XRC SRQ; with both NULL, a plain SRQ. */
void dev_create_srq(struct dev_srq *d, struct ibv_pd *pd, struct ibv_xrc_domain *domain,
		    struct ibv_cq *cq, int max_wr, int max_sge);

/* Takes the QP from RESET to INIT, as far as the provider cares. */
void dev_init_qp(struct dev_qp *d);

struct cqe_fields {
	uint32_t qpn, dw1, dw2, byte_count, sl_vid, slid;
	uint16_t wqe_index;
	uint8_t vendor, syndrome, sr_opcode;
};

/* Writes an entry as the device does: 32 valid bytes, the owner byte last. */
void dev_write_cqe(struct dev_cq *d, const struct cqe_fields *f);

/* Takes the next WQE of an SRQ as the device does: follows the link. */
uint32_t dev_take_srq_wqe(struct dev_srq *d);

static inline uint8_t *dev_sq_slot(const struct dev_qp *d, uint32_t index)
{
	return d->sq + ((size_t)(index & (d->sq_slots - 1)) << d->sq_shift);
}

#endif
