/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of qp_scale share: the objects of a process, one QP, and clocks. Each call that
 * fails ends the program.
 */
#ifndef BENCH_QP_SCALE_H
#define BENCH_QP_SCALE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <infiniband/verbs.h>

enum kind { KIND_RC, KIND_XRC_SEND, KIND_XRC_RECV };

struct side { /* shared by all queue pairs */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrc_domain *domain;
	uint16_t lid;
	enum kind kind;
	char *memory;
};

struct one {
	struct ibv_qp *qp;
	uint32_t qpn;
};

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
double now_us(clockid_t clock);
int by_value(const void *a, const void *b); /* for qsort() of doubles */
double median(double *v, int n);

/* ---- One queue pair (qp_scale_side.c) ---- */

void open_side(struct side *s, enum kind kind);
void create(struct side *s, struct one *q);
void destroy(struct side *s, struct one *q);
/*
 * One of the steps that connect the QP to itself. For what is measured, any other QP would be the
 * same.
 */
void connect_step(struct side *s, struct one *q, int step);
void connect_qp(struct side *s, struct one *q);
void query(struct side *s, struct one *q);
/* Sends eight bytes from the QP to itself. The device looks the QP up for the doorbell, the packet
 * and the acknowledgement, the library for the completion. */
void work(struct side *s, struct one *q);

/* ---- The other measurements ---- */

/* Of memory, up to that size (qp_scale_memory.c). */
void measure_registration(size_t largest);
/* With so many clients, processes that register, and processes that send (qp_scale_clients.c). */
void measure_latency(const unsigned int count[3]);

#endif
