// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The kernel of softhca in the test's own process. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/host/witness.h"
#include "softhca_kernel.h"
#include "softhca_place.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/objects.h"

static void *must(void *p, const char *what)
{
	if (!p) {
		perror(what);
		exit(1);
	}
	return p;
}

/* ---- memory that faults on demand ---- */

static bool faults(struct kt *t, int *countdown, uint64_t addr, size_t len)
{
	if (t->fault_addr && addr < t->fault_addr + 4096 && t->fault_addr < addr + len)
		return true;
	return *countdown && !--*countdown;
}

static int mem_read(void *arg, const struct user *user, uint64_t addr, void *buf, size_t len)
{
	struct kt *t = arg;

	return faults(t, &t->fault_reads, addr, len) ? -EFAULT
						     : user_real.read(NULL, user, addr, buf, len);
}

static int mem_write(void *arg, const struct user *user, uint64_t addr, const void *buf, size_t len)
{
	struct kt *t = arg;

	return faults(t, &t->fault_writes, addr, len) ? -EFAULT
						      : user_real.write(NULL, user, addr, buf, len);
}

static int open_fd(void *arg, pid_t tid, int fd)
{
	(void)arg;
	return user_real.open_fd(NULL, tid, fd);
}

static const struct user_ops ops = {.read = mem_read, .write = mem_write, .open_fd = open_fd};

/* ---- the instance ---- */

static struct kt *start(enum sh_face face, uint32_t hosts, uint32_t hcas,
			const struct sh_wire_config *wire)
{
	struct kt *t = must(calloc(1, sizeof(*t)), "memory");
	struct sh_kernel_config cfg = {
		.device = {.hosts = hosts,
			   .hcas_per_host = hcas,
			   .ports = 2,
			   .cqe_size = 32,
			   .driver_abi = 3,
			   .face = face,
			   .pool_size = 64 << 20,
			   .wire = *wire},
	};
	uint64_t witness;
	int err;
	char text[512] = "", base[48];

	snprintf(base, sizeof(base), "%s/softhca-test.XXXXXX", place());
	must(mkdtemp(base), "mkdtemp");
	snprintf(t->dir, sizeof(t->dir), "%s/instance", base);
	cfg.dir = t->dir;
	if (kern_init(&t->k, &cfg, text, sizeof(text)) < 0 ||
	    kern_publish(&t->k, text, sizeof(text)) < 0) {
		fprintf(stderr, "instance: %s\n", text);
		exit(1);
	}
	t->k.user = &ops;
	t->k.user_arg = t;
	t->memlock = UINT64_MAX;
	witness = sh_witness(&err);
	if (err || proc_attach(&t->k, getpid(), 0, 0, witness, &t->proc) < 0)
		exit(1);
	return t;
}

struct kt *kt_start(enum sh_face face, uint32_t hosts, uint32_t hcas)
{
	return start(face, hosts, hcas, &(struct sh_wire_config){.n = 0});
}

struct kt *kt_start_wire(enum sh_face face, const struct sh_wire_config *wire)
{
	return start(face, 1, 1, wire);
}

void kt_stop(struct kt *t)
{
	proc_detach(&t->k, t->proc);
	kern_exit(&t->k);
	*strrchr(t->dir, '/') = 0;
	if (rmdir(t->dir) < 0) {
		fprintf(stderr, "%s is not empty\n", t->dir);
		exit(1);
	}
	free(t);
}

struct kctx *kt_open_raw(struct kt *t, uint32_t device)
{
	struct kctx *ctx;

	if (ctx_open(&t->k, t->proc, device, &ctx) < 0 ||
	    ctx_opened(&t->k, t->proc, ctx->index) < 0) {
		fprintf(stderr, "open of device %u failed\n", device);
		exit(1);
	}
	return ctx;
}

static void start_context(struct kt *t, struct kctx *ctx)
{
	struct {
		struct uv_get_context_resp core;
		struct mlx4_abi_context_resp_v3 drv;
	} resp;
	struct uv_plain cmd = {.response = (uintptr_t)&resp};

	if (kt_cmd(t, ctx, UV_GET_CONTEXT, &cmd, sizeof(cmd), sizeof(resp))) {
		fprintf(stderr, "GET_CONTEXT: error %d\n", t->r.error);
		exit(1);
	}
	close(t->fds[0]);
}

struct kctx *kt_open(struct kt *t, uint32_t device)
{
	struct kctx *ctx = kt_open_raw(t, device);

	start_context(t, ctx);
	return ctx;
}

struct kctx *kt_open_host(struct kt *t, uint32_t host, uint32_t device)
{
	struct kctx *ctx;
	uint32_t own = t->proc->host;

	t->proc->host = host;
	ctx = kt_open(t, device);
	t->proc->host = own;
	return ctx;
}

/* ---- commands ---- */

static void map(struct kt *t)
{
	uint32_t i;

	for (i = 0; i < t->r.nactions && !t->no_map; i++) {
		const struct sh_action *a = &t->r.action[i];

		if (mmap((void *)(uintptr_t)a->uaddr, a->len, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, t->k.memfd, a->shm_off) == MAP_FAILED) {
			perror("mmap");
			exit(1);
		}
	}
}

/* Repeats a command as the daemon does, but counts it as late sooner. */
static void run(struct kt *t, struct call *c, const void *buf, size_t len)
{
	c->late = false;
	for (int tries = 0; !command_run(c, (uintptr_t)buf, len); tries++) {
		usleep(100);
		t->tries++;
		c->late = tries > 100;
	}
}

int kt_write(struct kt *t, struct kctx *ctx, const void *buf, size_t len)
{
	struct call c = {
		.k = &t->k,
		.ctx = ctx,
		.proc = t->proc,
		.tid = gettid(),
		.cap_ipc_lock = t->cap,
		.memlock_limit = t->memlock,
		.r = &t->r,
	};

	run(t, &c, buf, len);
	if (t->r.pin_check) {
		c.pinned = true;
		c.pin_error = -t->pin_error;
		run(t, &c, buf, len);
	}
	memcpy(t->fds, c.fds, sizeof(t->fds));
	map(t);
	return t->r.error;
}

int kt_cmd(struct kt *t, struct kctx *ctx, uint32_t number, void *cmd, size_t len, size_t out)
{
	*(struct uv_hdr *)cmd =
		(struct uv_hdr){.command = number, .in_words = len / 4, .out_words = out / 4};
	return kt_write(t, ctx, cmd, len);
}

int kt_pd(struct kt *t, struct kctx *ctx, uint32_t *handle)
{
	struct {
		struct uv_alloc_pd_resp core;
		struct mlx4_abi_alloc_pd_resp drv;
	} resp;
	struct uv_plain cmd = {.response = (uintptr_t)&resp};
	int err = kt_cmd(t, ctx, UV_ALLOC_PD, &cmd, sizeof(cmd), sizeof(resp));

	if (!err)
		*handle = resp.core.pd_handle;
	return err;
}

int kt_mr(struct kt *t, struct kctx *ctx, uint32_t pd, void *addr, uint64_t len, uint32_t access,
	  uint32_t *handle, uint32_t *key)
{
	struct uv_reg_mr_resp resp;
	struct uv_reg_mr cmd = {
		.response = (uintptr_t)&resp,
		.start = (uintptr_t)addr,
		.length = len,
		.hca_va = (uintptr_t)addr,
		.pd_handle = pd,
		.access_flags = access,
	};
	int err = kt_cmd(t, ctx, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp));

	if (!err) {
		*handle = resp.mr_handle;
		*key = resp.lkey;
	}
	return err;
}

int kt_channel(struct kt *t, struct kctx *ctx, int *fd)
{
	struct uv_create_comp_channel_resp resp;
	struct uv_plain cmd = {.response = (uintptr_t)&resp};
	int err = kt_cmd(t, ctx, UV_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), sizeof(resp));

	if (!err)
		*fd = t->fds[0];
	return err;
}

static void queue_alloc(struct kt_queue *q, size_t bytes)
{
	static uint64_t next = 0x1000;

	q->len = ((bytes + 4095) & ~(size_t)4095) + 4096;
	q->mem = mmap(NULL, q->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (q->mem == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	q->user_handle = next++;
}

static uint64_t record(const struct kt_queue *q)
{
	return (uintptr_t)q->mem + q->len - 4096;
}

void kt_queue_free(struct kt_queue *q)
{
	munmap(q->mem, q->len);
}

static int done(struct kt_queue *q, int err, uint32_t handle, uint32_t number)
{
	if (err) {
		kt_queue_free(q);
		return err;
	}
	q->handle = handle;
	q->number = number;
	return 0;
}

int kt_cq(struct kt *t, struct kctx *ctx, uint32_t cqe, int channel, struct kt_queue *q)
{
	struct {
		struct uv_create_cq_resp core;
		struct mlx4_abi_create_cq_resp drv;
	} resp;
	struct {
		struct uv_create_cq core;
		struct mlx4_abi_create_cq drv;
	} cmd = {.core = {.response = (uintptr_t)&resp, .cqe = cqe, .comp_channel = channel}};
	int err;

	queue_alloc(q, (size_t)(cqe + 1) * 2 * 32);
	cmd.core.user_handle = q->user_handle;
	cmd.drv.buf_addr = (uintptr_t)q->mem;
	cmd.drv.db_addr = record(q);
	err = kt_cmd(t, ctx, UV_CREATE_CQ, &cmd, sizeof(cmd), sizeof(resp));
	return done(q, err, resp.core.cq_handle, resp.drv.cqn);
}

struct srq_resp {
	struct uv_create_srq_resp core;
	struct mlx4_abi_create_srq_resp drv;
};

int kt_srq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	   struct kt_queue *q)
{
	struct srq_resp resp;
	struct {
		struct uv_create_srq core;
		struct mlx4_abi_create_srq drv;
	} cmd = {.core = {.response = (uintptr_t)&resp,
			  .pd_handle = pd,
			  .max_wr = max_wr,
			  .max_sge = max_sge}};
	int err;

	queue_alloc(q, (size_t)(max_wr + 1) * 2 * 1024);
	cmd.core.user_handle = q->user_handle;
	cmd.drv.buf_addr = (uintptr_t)q->mem;
	cmd.drv.db_addr = record(q);
	err = kt_cmd(t, ctx, UV_CREATE_SRQ, &cmd, sizeof(cmd), sizeof(resp));
	return done(q, err, resp.core.srq_handle, resp.drv.srqn);
}

int kt_xsrq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t xrcd, uint32_t cq,
	    struct kt_queue *q)
{
	struct srq_resp resp;
	struct {
		struct uv_create_xrc_srq core;
		struct mlx4_abi_create_srq drv;
	} ofed = {.core = {.response = (uintptr_t)&resp,
			   .pd_handle = pd,
			   .max_wr = 15,
			   .max_sge = 1,
			   .xrcd_handle = xrcd,
			   .xrc_cq = cq}};
	struct {
		struct uv_create_xsrq core;
		struct mlx4_abi_create_srq drv;
	} mainline = {.core = {.response = (uintptr_t)&resp,
			       .srq_type = UV_SRQT_XRC,
			       .pd_handle = pd,
			       .max_wr = 15,
			       .max_sge = 1,
			       .xrcd_handle = xrcd,
			       .cq_handle = cq}};
	int err;

	queue_alloc(q, 4096);
	ofed.core.user_handle = mainline.core.user_handle = q->user_handle;
	ofed.drv.buf_addr = mainline.drv.buf_addr = (uintptr_t)q->mem;
	ofed.drv.db_addr = mainline.drv.db_addr = record(q);
	if (t->k.cfg.device.face == SH_FACE_OFED)
		err = kt_cmd(t, ctx, UV_CREATE_XRC_SRQ, &ofed, sizeof(ofed), sizeof(resp));
	else
		err = kt_cmd(t, ctx, UV_CREATE_XSRQ, &mainline, sizeof(mainline), sizeof(resp));
	return done(q, err, resp.core.srq_handle, resp.drv.srqn);
}

int kt_qp(struct kt *t, struct kctx *ctx, uint32_t type, uint32_t pd, uint32_t cq, int64_t srq,
	  struct kt_queue *q)
{
	struct uv_create_qp_resp resp;
	bool rq = srq < 0 && type != UV_QPT_XRC && type != UV_QPT_XRC_INI;
	struct {
		struct uv_create_qp core;
		struct mlx4_abi_create_qp drv;
	} cmd = {
		.core = {.response = (uintptr_t)&resp,
			 .pd_handle = pd,
			 .send_cq_handle = cq,
			 .recv_cq_handle = cq,
			 .srq_handle = srq < 0 ? 0 : srq,
			 .max_send_wr = 10,
			 .max_recv_wr = rq ? 10 : 0,
			 .max_send_sge = 1,
			 .max_recv_sge = rq ? 1 : 0,
			 .qp_type = type,
			 .is_srq = srq >= 0 && type != UV_QPT_XRC},
		.drv = {.log_sq_bb_count = 6, .log_sq_stride = 6},
	};
	int err;

	queue_alloc(q, 64 * 64 + 16 * 16);
	cmd.core.user_handle = q->user_handle;
	cmd.drv.buf_addr = (uintptr_t)q->mem;
	cmd.drv.db_addr = rq ? record(q) : 0;
	err = kt_cmd(t, ctx, UV_CREATE_QP, &cmd, sizeof(cmd), sizeof(resp));
	return done(q, err, resp.qp_handle, resp.qpn);
}

int kt_destroy(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle)
{
	uint32_t resp[2];
	struct uv_object cmd = {.response = (uintptr_t)resp, .handle = handle};

	return kt_cmd(t, ctx, number, &cmd, sizeof(cmd), sizeof(resp));
}

int kt_dealloc(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle)
{
	struct uv_handle cmd = {.handle = handle};

	return kt_cmd(t, ctx, number, &cmd, sizeof(cmd), 0);
}

int kt_xrcd(struct kt *t, struct kctx *ctx, int fd, int oflags, uint32_t *handle)
{
	bool ofed = t->k.cfg.device.face == SH_FACE_OFED;
	struct uv_open_xrc_domain_resp resp[3];
	struct uv_open_xrc_domain cmd = {.response = (uintptr_t)resp, .fd = fd, .oflags = oflags};
	int err = kt_cmd(t, ctx, ofed ? UV_OPEN_XRC_DOMAIN : UV_OPEN_XRCD, &cmd, sizeof(cmd),
			 sizeof(resp));

	if (!err)
		*handle = resp[0].xrcd_handle;
	return err;
}

/* ---- state ---- */

struct kt_state kt_state(struct kt *t)
{
	const struct sh_config *cfg = &t->k.cfg.device;
	struct kt_state s;
	const struct uobj *u;
	const struct kxrcd *d;
	const struct kevq *e;
	uint32_t i, type;

	memset(&s, 0, sizeof(s));
	for (i = 1; i < SH_MAX_CTX; i++) {
		if (!t->k.uverbs->ctx[i])
			continue;
		for (type = 0; type < UO_TYPES; type++)
			DL_FOREACH(t->k.uverbs->ctx[i]->objs[type], u)
		s.objects[type]++;
		DL_FOREACH(t->k.uverbs->ctx[i]->evqs, e)
		s.evqs++;
	}
	for (i = 0; i < cfg->hosts * cfg->hcas_per_host; i++) {
		const struct hca_objects *h = &t->k.uverbs->objects[i];

		s.numbers += h->pdn.used + h->xrcdn.used + h->mpt.used + h->cqn.used +
			     h->srqn.used + h->qpn.used;
		DL_FOREACH(h->xrcds, d)
		s.domains += 1 + 100 * d->opens + 10000 * d->users;
		s.qps += HASH_COUNT(h->qps);
	}
	s.regs = t->k.uverbs->xrc_reg.used;
	s.pool = t->k.pool.used;
	s.locked = t->proc->locked;
	return s;
}

bool kt_same(const struct kt_state *a, const struct kt_state *b)
{
	return !memcmp(a, b, sizeof(*a));
}
