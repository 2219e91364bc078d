// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The host that unit tests of softhca/device run on: see softhca_mock.h. It has one thread, besides
 * those that tests start.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/host/reach.h"
#include "softhca/host/sys.h"
#include "softhca/host/witness.h"
#include "softhca_mock.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/life.h"
#include "softhca/kernel/uverbs/command.h"

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static bool mapped(const struct mock *m, uint32_t ctx, uint64_t addr, uint64_t len)
{
	unsigned int i;

	if (!ctx)
		return true;
	for (i = 0; i < m->nranges; i++)
		if (m->range[i].ctx == ctx && addr >= m->range[i].addr &&
		    addr - m->range[i].addr <= m->range[i].len &&
		    len <= m->range[i].len - (addr - m->range[i].addr))
			return true;
	return false;
}

/* By a system call, as the host does where that is what makes the difference. */
static long move(uint64_t to, uint64_t from, uint64_t len)
{
	struct iovec here = {(void *)(uintptr_t)to, len}, there = {(void *)(uintptr_t)from, len};

	if (sh_self.armed)
		return sh_reach_readv((int)syscall(SYS_gettid), &here, 1, &there, 1);
	memmove(here.iov_base, there.iov_base, len);
	return (long)len;
}

static enum sh_copy copy(void *host, uint32_t dst_ctx, const struct sh_seg *dst, unsigned int ndst,
			 uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc,
			 uint64_t len)
{
	struct mock *m = host;
	uint64_t doff = 0, soff = 0;

	__atomic_fetch_add(&m->shared->copies, 1, __ATOMIC_RELAXED);
	m->shared->now += m->copy_ns;
	/* As the host does before a system call. */
	if (sh_self.armed)
		sh_rearm();
	m->unannounced += dst_ctx && !(m->reaches && m->reached == dst_ctx);
	while (len && ndst && nsrc) {
		uint64_t n = dst->len - doff;

		if (n > src->len - soff)
			n = src->len - soff;
		if (n > len)
			n = len;
		if (n) {
			if (!mapped(m, src_ctx, src->addr + soff, n))
				return SH_COPY_SRC;
			if (!mapped(m, dst_ctx, dst->addr + doff, n))
				return SH_COPY_DST;
			must(move(dst->addr + doff, src->addr + soff, n) == (long)n,
			     "process_vm_readv");
			__atomic_thread_fence(__ATOMIC_RELEASE);
		}
		doff += n;
		soff += n;
		len -= n;
		if (doff == dst->len) {
			dst++;
			ndst--;
			doff = 0;
		}
		if (soff == src->len) {
			src++;
			nsrc--;
			soff = 0;
		}
	}
	must(!len, "copy: the lists are shorter than the length");
	return SH_COPY_OK;
}

/* All memory is this process's, so the system can copy and commit in one call. */
static enum sh_copy seal(void *host, uint32_t dst_ctx, const struct sh_seg *dst, uint32_t src_ctx,
			 const struct sh_seg *src, unsigned int nsrc, uint64_t len,
			 uint64_t *commit, uint64_t word)
{
	struct mock *m = host;
	struct iovec from[] = {{(void *)(uintptr_t)src->addr, len}, {&word, sizeof(word)}};
	struct iovec to[] = {{(void *)(uintptr_t)dst->addr, len}, {commit, sizeof(word)}};

	if (nsrc != 1 || len > src->len)
		return SH_COPY_APART;
	__atomic_fetch_add(&m->shared->copies, 1, __ATOMIC_RELAXED);
	if (!mapped(m, src_ctx, src->addr, len))
		return SH_COPY_SRC;
	if (!mapped(m, dst_ctx, dst->addr, len))
		return SH_COPY_DST;
	must(sh_reach_writev((int)syscall(SYS_gettid), from, 2, to, 2) ==
		     (long)(len + sizeof(word)),
	     "process_vm_writev");
	return SH_COPY_OK;
}

static bool reach(void *host, uint32_t ctx)
{
	struct mock *m = host;

	if (m->on_reach)
		m->on_reach(m);
	if (m->exchanges)
		return false;
	m->reached = ctx;
	m->reaches++;
	return true;
}

static void reach_end(void *host)
{
	((struct mock *)host)->reaches--;
}

static unsigned int records_of(const struct mock_shared *s, uint32_t evq)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < s->nrecords; i++)
		n += s->record[i].evq == evq;
	return n;
}

static int event_begin(void *host, uint32_t evq)
{
	struct mock_shared *s = ((struct mock *)host)->shared;

	if (s->refuses)
		return -EAGAIN;
	s->begun[evq % 16] = records_of(s, evq);
	return 0;
}

static bool event_written(void *host, uint32_t evq)
{
	const struct mock_shared *s = ((struct mock *)host)->shared;

	return records_of(s, evq) != s->begun[evq % 16];
}

static int event(void *host, uint32_t evq, const void *record, size_t len)
{
	struct mock_shared *s = ((struct mock *)host)->shared;
	struct mock_record *r = &s->record[s->nrecords];

	if (!s->room || s->nrecords == MOCK_RECORDS)
		return -EAGAIN;
	memset(r, 0, sizeof(*r));
	r->evq = evq;
	r->len = (uint32_t)len;
	memcpy(&r->element, record, len);
	s->room--;
	__atomic_store_n(&s->nrecords, s->nrecords + 1, __ATOMIC_RELEASE);
	return 0;
}

static int defer(void *host, uint64_t deadline, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		 uint64_t a, uint64_t b, bool once)
{
	struct mock *m = host;

	if (m->no_timers)
		return -ENOMEM;
	for (unsigned int i = 0; once && i < m->ndefers; i++)
		if (m->defer[i].fn == fn && m->defer[i].a == a && m->defer[i].b == b)
			return 0;
	must(m->ndefers < MOCK_DEFERS, "too many deferred calls");
	m->defer[m->ndefers].deadline = deadline;
	m->defer[m->ndefers].fn = fn;
	m->defer[m->ndefers].a = a;
	m->defer[m->ndefers++].b = b;
	return 0;
}

static void wake(void *host, uint32_t proc)
{
	struct mock *m = host;

	if (proc < 16)
		__atomic_fetch_add(&m->shared->wakes[proc], 1, __ATOMIC_RELAXED);
}

static void rouse(void *host, uint32_t proc)
{
	struct mock *m = host;

	if (proc < 16)
		__atomic_fetch_add(&m->shared->rouses[proc], 1, __ATOMIC_RELAXED);
}

static uint64_t now(void *host)
{
	return ((struct mock *)host)->shared->now;
}

static void complain(void *host, const char *what, uint32_t hca, uint32_t number)
{
	struct mock *m = host;

	(void)hca;
	(void)number;
	__atomic_fetch_add(&m->shared->complaints, 1, __ATOMIC_RELAXED);
	if (m->on_complaint)
		m->on_complaint(what);
}

/* All device memory is mapped. The lengths say how much a process with less would have. */
static int extend(void *host, uint64_t off, uint64_t len)
{
	struct mock *m = host;
	uint64_t *have = off < m->dev.shared_off ? &m->dev.pool_end : &m->dev.shared_end;
	uint64_t begin = off < m->dev.shared_off ? m->dev.pool_off : m->dev.shared_off;
	uint64_t end = off < m->dev.shared_off ? m->dev.shared_off : m->dev.size;

	if (off < begin || off > end || len > end - off)
		return -EINVAL;
	if (m->no_room)
		return -ENOMEM;
	m->extends++;
	*have = SH_PAGES(off + len);
	return 0;
}

static const struct sh_host_ops ops = {
	.copy = copy,
	.seal = seal,
	.reach = reach,
	.reach_end = reach_end,
	.event_begin = event_begin,
	.event = event,
	.event_written = event_written,
	.defer = defer,
	.wake = wake,
	.rouse = rouse,
	.now = now,
	.complain = complain,
	.extend = extend,
	.divert = sh_host_divert,
	.stands = sh_host_stands,
};

struct mock *mock_new(const struct mock_config *cfg)
{
	struct sh_config c = {.hosts = 1,
			      .hcas_per_host = 1,
			      .ports = 1,
			      .cqe_size = 32,
			      .driver_abi = 4,
			      .face = SH_FACE_OFED,
			      .pool_size = 64 << 20};
	struct mock *m = calloc(1, sizeof(*m));
	struct sh_proc *proc;
	int err;

	must(m, "calloc");
	if (cfg) {
		c.hosts = cfg->hosts ? cfg->hosts : 1;
		c.hcas_per_host = cfg->hcas_per_host ? cfg->hcas_per_host : 1;
		c.ports = cfg->ports ? cfg->ports : 1;
		c.cqe_size = cfg->cqe_size ? cfg->cqe_size : 32;
	}
	m->size = sh_instance_size(&c);
	m->fd = memfd_create("mock", MFD_CLOEXEC);
	must(m->fd >= 0 && !ftruncate(m->fd, (off_t)m->size), "memfd");
	m->inst = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	must(m->inst != MAP_FAILED, "mmap");
	must(!sh_instance_init(m->inst, m->fd, &c), "sh_instance_init");
	m->shared = mmap(NULL, sizeof(*m->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(m->shared != MAP_FAILED, "mmap");
	m->shared->room = MOCK_RECORDS;
	m->shared->now = 1000000000;
	m->dev = (struct sh_dev){.ops = &ops, .host = m, .proc = 1, .witness = sh_witness(&err)};
	must(!sh_dev_attach(&m->dev, m->inst, m->size), "sh_dev_attach");
	m->daemon = m->dev;
	m->daemon.proc = 0;
	proc = sh_proc(&m->dev, 0);
	proc[0].pid = 1;
	proc[1].pid = (uint32_t)getpid();
	/* for a client's thread, even where the test acts as the daemon */
	sh_exec_prepare(&m->dev);
	return m;
}

void mock_free(struct mock *m)
{
	unsigned int i;

	sh_exec_release();
	for (i = 0; i < m->nranges; i++)
		if (m->range[i].own)
			munmap((void *)(uintptr_t)m->range[i].addr, m->range[i].len);
	munmap(m->shared, sizeof(*m->shared));
	munmap(m->inst, m->size);
	close(m->fd);
	free(m);
}

uint32_t mock_ctx(struct mock *m, uint32_t hca)
{
	uint32_t index = ++m->nctx;
	struct sh_ctx *ctx = sh_ctx(&m->dev, index);

	must(ctx != NULL, "too many contexts");
	ctx->pid = (uint32_t)getpid();
	ctx->proc = 1;
	ctx->hca = hca;
	ctx->host = hca / m->dev.hcas_per_host;
	ctx->generation++;
	ctx->kick = 1;
	ctx->state = SH_CTX_LIVE;
	ctx->async_evq = mock_evq(m, index, 16);
	return index;
}

uint32_t mock_evq(struct mock *m, uint32_t ctx, uint32_t record_size)
{
	uint32_t evq = ++m->nevq;

	must(!sh_evq_init(&m->daemon, evq, ctx, record_size, 1), "sh_evq_init");
	sh_evq(&m->daemon, evq)->tells = 1;
	return evq;
}

void mock_map(struct mock *m, uint32_t ctx, void *addr, size_t len)
{
	must(m->nranges < MOCK_RANGES, "too many ranges");
	m->range[m->nranges].ctx = ctx;
	m->range[m->nranges].addr = (uintptr_t)addr;
	m->range[m->nranges++].len = len;
}

void mock_unmap(struct mock *m, uint32_t ctx, void *addr)
{
	unsigned int i;

	for (i = 0; i < m->nranges; i++)
		if (m->range[i].ctx == ctx && m->range[i].addr == (uintptr_t)addr)
			m->range[i].ctx = UINT32_MAX;
}

struct sh_umem mock_umem(struct mock *m, uint32_t ctx, size_t len, bool shared)
{
	struct sh_umem mem = {.len = len, .ctx = ctx};
	void *at;

	if (shared) {
		mem.shm_off = m->dev.pool_off + m->pool_used;
		m->pool_used += SH_PAGES(len);
		must(m->pool_used <= m->dev.shared_off - m->dev.pool_off, "the pool is used up");
		must(!sh_reserve(m->fd, mem.shm_off, SH_PAGES(len)), "sh_reserve");
		at = sh_at(&m->dev, mem.shm_off);
		/*
		 * The owner also has the memory at an address of its own, which copy() uses for
		 * processes that cannot map it.
		 */
		mock_map(m, ctx, at, SH_PAGES(len));
	} else {
		at = mmap(NULL, SH_PAGES(len), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
		must(at != MAP_FAILED, "mmap");
		mock_map(m, ctx, at, SH_PAGES(len));
		m->range[m->nranges - 1].own = true;
	}
	mem.uaddr = (uintptr_t)at;
	return mem;
}

void mock_advance(struct mock *m, uint64_t ns)
{
	uint64_t until = m->shared->now + ns;

	/* Clients have woken the daemon. */
	sh_evs_owed(&m->daemon);
	for (;;) {
		unsigned int i, first = m->ndefers;
		void (*fn)(struct sh_dev *, uint64_t, uint64_t);
		uint64_t a, b;

		for (i = 0; i < m->ndefers; i++)
			if (m->defer[i].deadline <= until &&
			    (first == m->ndefers ||
			     m->defer[i].deadline < m->defer[first].deadline))
				first = i;
		if (first == m->ndefers)
			break;
		if (m->defer[first].deadline > m->shared->now)
			m->shared->now = m->defer[first].deadline;
		fn = m->defer[first].fn;
		a = m->defer[first].a;
		b = m->defer[first].b;
		m->ndefers--;
		memmove(&m->defer[first], &m->defer[first + 1],
			(m->ndefers - first) * sizeof(m->defer[0]));
		fn(&m->dev, a, b);
	}
	m->shared->now = until;
}

unsigned int mock_records(const struct mock *m, uint32_t evq)
{
	unsigned int i, n = 0;

	for (i = 0; i < m->shared->nrecords; i++)
		n += m->shared->record[i].evq == evq;
	return n;
}

const struct mock_record *mock_record(const struct mock *m, uint32_t evq, unsigned int nth)
{
	unsigned int i;

	for (i = 0; i < m->shared->nrecords; i++)
		if (m->shared->record[i].evq == evq && !nth--)
			return &m->shared->record[i];
	return NULL;
}

pid_t mock_child(void (*what)(void *arg), void *arg)
{
	int hello[2];
	char c;
	pid_t pid;

	must(!pipe(hello), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* no child outlives a failing test */
		what(arg);
		if (write(hello[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(hello[1]);
	must(read(hello[0], &c, 1) == 1, "a child ended early");
	close(hello[0]);
	return pid;
}

void mock_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}
