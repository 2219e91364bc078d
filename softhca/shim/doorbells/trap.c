// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trap: the file behind the UAR has length 0, so each store to it raises SIGBUS. The handler takes
 * the store apart and hands it to the bus. Everything in the handler is async-signal-safe. The
 * table of UAR pages is filled where they are mapped. A page that some library mapped by a system
 * call of its own is found in /proc/self/maps, if there is a descriptor to open that with. An entry
 * counts while its context lives.
 */
#include "config.h"

#ifdef HAVE_TRAP

#include <cpuid.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "bus.h"
#include "softhca/shim/files/context.h"
#include "decode.h"
#include "softhca/shim/memory/memory.h"
#include "softhca/shim/signals/handlers.h"
#include "softhca/shim/signals/signals.h"
#include "softhca/shim/stack.h"
#include "trap.h"

#define SLOTS  4096
#define WINDOW 32   /* places for an address, from that of its hash on */
#define SINGLE 1024 /* so many pages of a range are looked up one by one */

/* Readers and writers race: seq tells a reader whether an entry changed while it read it. */
struct uar_page {
	uint64_t addr; /* 0: empty */
	uint32_t ctx, generation;
	uint32_t page; /* 0 UAR, 1 BlueFlame */
	uint32_t seq;  /* odd while it is written; 0: never used */
};

static struct uar_page table[SLOTS + WINDOW];
static uint32_t table_lock; /* of writers; a handler reads without it */

static bool lives(uint32_t index, uint32_t generation)
{
	const struct sh_ctx *c = shim_dev.inst ? sh_ctx(&shim_dev, index) : NULL;

	return c && c->state == SH_CTX_LIVE && c->generation == generation;
}

static struct uar_page *first_place(uint64_t addr)
{
	return &table[addr / SHIM_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}
_Static_assert(SLOTS == 1 << 12, "the upper bits of a product");

static bool table_get(uint64_t addr, struct uar_page *out)
{
	struct uar_page *p = first_place(addr);

	for (struct uar_page *end = p + WINDOW; p < end; p++) {
		uint32_t seq = __atomic_load_n(&p->seq, __ATOMIC_ACQUIRE);

		if (!seq)
			return false;
		*out = *p;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && seq == __atomic_load_n(&p->seq, __ATOMIC_RELAXED) &&
		    out->addr == addr)
			return lives(out->ctx, out->generation);
	}
	return false;
}

/* seq never goes back to 0, which ends a search. */
static void write_place(struct uar_page *p, const struct uar_page *in)
{
	uint32_t seq = p->seq;

	__atomic_store_n(&p->seq, seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	p->addr = in->addr;
	p->ctx = in->ctx;
	p->generation = in->generation;
	p->page = in->page;
	__atomic_store_n(&p->seq, (seq | 1) + 1 ? (seq | 1) + 1 : 2, __ATOMIC_RELEASE);
}

/*
 * Takes the address's own place, else one that is free or belongs to a context that has ended. The
 * lock is held.
 */
static void table_put(const struct uar_page *in)
{
	struct uar_page *first = first_place(in->addr), *place = NULL;

	for (struct uar_page *p = first; p < first + WINDOW; p++) {
		if (p->addr == in->addr) {
			place = p;
			break;
		}
		if (!place && (!p->addr || !lives(p->ctx, p->generation)))
			place = p;
		if (!p->seq)
			break;
	}
	if (place)
		write_place(place, in);
}

/*
 * False: the caller has interrupted the thread that holds the lock, or may have. Then
 * /proc/self/maps tells, as it does when the table is full.
 */
static bool lock_table(void)
{
	/* A handler that jumped away would keep the lock. */
	shim_handlers_wait();
	for (int tries = 0; __atomic_exchange_n(&table_lock, 1, __ATOMIC_ACQUIRE); tries++) {
		if (tries > 1000) {
			shim_handlers_go_on();
			return false;
		}
		sched_yield();
	}
	return true;
}

static void clear_lock(void)
{
	__atomic_store_n(&table_lock, 0, __ATOMIC_RELEASE);
}

static void unlock_table(void)
{
	clear_lock();
	shim_handlers_go_on();
}

void shim_trap_forked(void)
{
	clear_lock();
}

void shim_trap_mapped(const struct shim_ctx *ctx, uint64_t start, uint64_t len, uint64_t off)
{
	if (!lock_table())
		return;
	for (uint64_t done = 0; done < len && (off + done) / SHIM_PAGE < 2; done += SHIM_PAGE)
		table_put(&(struct uar_page){
			.addr = start + done,
			.ctx = ctx->index,
			.generation = ctx->generation,
			.page = (uint32_t)((off + done) / SHIM_PAGE),
		});
	unlock_table();
}

static void forget(struct uar_page *p)
{
	write_place(p, &(struct uar_page){.addr = 0});
}

/* Forgets what is unmapped, when the shim is told. */
void shim_trap_unmapped(uint64_t start, uint64_t end)
{
	struct uar_page page;

	if (!shim_dev.inst)
		return;
	if (end - start > SINGLE * SHIM_PAGE) {
		if (!lock_table())
			return;
		for (struct uar_page *p = table; p < table + SLOTS + WINDOW; p++)
			if (p->addr >= start && p->addr < end)
				forget(p);
		unlock_table();
		return;
	}
	for (uint64_t at = start & ~(uint64_t)(SHIM_PAGE - 1); at < end; at += SHIM_PAGE) {
		if (!table_get(at, &page) || !lock_table())
			continue;
		for (struct uar_page *p = first_place(at); p < first_place(at) + WINDOW; p++)
			if (p->addr == at)
				forget(p);
		unlock_table();
	}
}

/* ---- /proc/self/maps, in a signal handler ---- */

static const char *hex(const char *s, const char *end, uint64_t *out)
{
	uint64_t v = 0;

	for (; s < end; s++) {
		if (*s >= '0' && *s <= '9')
			v = v << 4 | (uint64_t)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			v = v << 4 | (uint64_t)(*s - 'a' + 10);
		else
			break;
	}
	*out = v;
	return s;
}

static const char *decimal(const char *s, const char *end, uint32_t *out)
{
	uint32_t v = 0;

	for (; s < end && *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (uint32_t)(*s - '0');
	*out = v;
	return s;
}

/*
 * "start-end perms offset dev inode   path": 0: the line does not hold addr; 1: it does, and is a
 * context's file; -1: it is something else.
 */
static int parse_line(const char *s, const char *end, uint64_t addr, struct uar_page *out)
{
	static const char files[] = "/files/c";
	uint64_t from, to, off;
	const char *path;
	size_t dir_len = strlen(shim.dir);

	s = hex(s, end, &from);
	if (s == end || *s != '-')
		return 0;
	s = hex(s + 1, end, &to);
	if (addr < from || addr >= to)
		return 0;
	s = s + 6 < end ? hex(s + 6, end, &off) : end;
	path = memchr(s, '/', (size_t)(end - s));
	if (!path || (size_t)(end - path) < dir_len + sizeof(files) ||
	    memcmp(path, shim.dir, dir_len) || memcmp(path + dir_len, files, sizeof(files) - 1))
		return -1;
	s = decimal(path + dir_len + sizeof(files) - 1, end, &out->ctx);
	if (s == end || *s != '.')
		return -1;
	decimal(s + 1, end, &out->generation);
	out->addr = addr;
	out->page = (uint32_t)((off + addr - from) / SHIM_PAGE);
	return 1;
}

static bool look_up(uint64_t addr, struct uar_page *out)
{
	char buf[4096];
	size_t have = 0;
	int found = 0, fd = sh_open_own("/proc/thread-self/maps", O_RDONLY);

	if (fd < 0)
		return false;
	while (!found) {
		long got = sh_read(fd, buf + have, sizeof(buf) - have);
		char *line = buf, *nl;

		if (got <= 0)
			break;
		have += (size_t)got;
		while (!found && (nl = memchr(line, '\n', have - (size_t)(line - buf)))) {
			found = parse_line(line, nl, addr, out);
			line = nl + 1;
		}
		have -= (size_t)(line - buf);
		if (have == sizeof(buf))
			have = 0;
		memmove(buf, line, have);
	}
	sh_close(fd);
	if (found <= 0 || out->page >= 2)
		return false;
	/* If the lock is taken at this moment, the next store looks again. */
	if (!__atomic_exchange_n(&table_lock, 1, __ATOMIC_ACQUIRE)) {
		table_put(out);
		clear_lock();
	}
	return true;
}

static void store(void *arg, uint64_t addr, unsigned int width, const uint8_t *value)
{
	const struct uar_page *p = arg;

	shim_bus_store(p->ctx, p->page, (unsigned int)(addr - p->addr), width, value);
}

struct trapped {
	uint64_t addr;
	void *uc;
};

/* Returns 0 if it was a store to a UAR page, which is done. */
static int carry_out(void *arg)
{
	const struct trapped *t = arg;
	uint64_t start = t->addr & ~(uint64_t)(SHIM_PAGE - 1);
	struct uar_page page;

	if (!table_get(start, &page) && !look_up(start, &page))
		return -ENOENT;
	return sh_decode_store(t->uc, t->addr, start, start + SHIM_PAGE, store, &page);
}

static bool has_keys; /* the processor and the kernel know protection keys */

static uint32_t rights(void)
{
	uint32_t now, high;

	__asm__ volatile("rdpkru" : "=a"(now), "=d"(high) : "c"(0));
	return now;
}

static void set_rights(uint32_t to)
{
	__asm__ volatile("wrpkru" : : "a"(to), "c"(0), "d"(0) : "memory");
}

/*
 * A handler begins with the kernel's rights to memory with protection keys, which deny access to
 * most. An HCA needs none: it reaches memory by DMA.
 */
static bool carry_out_with_all_keys(struct trapped *t)
{
	uint32_t were = has_keys ? rights() : 0;
	bool done;

	if (has_keys)
		set_rights(0);
	/* The signal's frame alone may take half of a small stack. */
	done = !stack_spare_wait(carry_out, t);
	if (has_keys)
		set_rights(were);
	return done;
}

static void on_bus(int sig, siginfo_t *info, void *uc)
{
	struct trapped t = {(uintptr_t)info->si_addr, uc};
	int saved = errno;
	bool done = info->si_code == BUS_ADRERR && carry_out_with_all_keys(&t);

	errno = saved;
	if (!done)
		shim_signals_chain(sig, info, uc);
}

int shim_trap_install(void)
{
	static bool decoder_ready;

	if (!decoder_ready) {
		unsigned int a, b, c = 0, d;

		has_keys = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_OSPKE;
		sh_decode_init();
		decoder_ready = true;
	}
	return shim_signals_own(on_bus);
}

#else

#include <stdint.h>

#include "trap.h"

int shim_trap_install(void)
{
	return 0;
}

void shim_trap_mapped(const struct shim_ctx *ctx, uint64_t start, uint64_t len, uint64_t off)
{
	(void)ctx, (void)start, (void)len, (void)off;
}

void shim_trap_unmapped(uint64_t start, uint64_t end)
{
	(void)start, (void)end;
}

void shim_trap_forked(void)
{
}
#endif
