// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trap: the file behind the UAR has length 0, so each store to it raises SIGBUS; here the store is taken apart and
 * handed to the bus. Everything in the handler is async-signal-safe. The cache of UAR pages is filled from
 * /proc/self/maps, because other libraries map behind everybody's back; an entry counts while its context lives.
 */
#include "shim.h"

#ifdef HAVE_TRAP

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "decode.h"
#include "signals.h"

#define CACHED 256

/* Readers and writers race: an entry is taken apart into one word of page number and one of meaning, both checked. */
struct uar_page {
	uint64_t addr;			/* 0: empty */
	uint32_t ctx, generation;
	uint32_t page;			/* 0 UAR, 1 BlueFlame */
	uint32_t seq;			/* odd while it is written */
};

static struct uar_page cache[CACHED];
static uint32_t cache_lock;

static bool lives(uint32_t index, uint32_t generation)
{
	const struct sh_ctx *c = shim_dev.inst ? sh_ctx(&shim_dev, index) : NULL;

	return c && c->state == SH_CTX_LIVE && c->generation == generation;
}

static bool cache_get(uint64_t addr, struct uar_page *out)
{
	struct uar_page *p = &cache[addr / SHIM_PAGE % CACHED];
	uint32_t seq = __atomic_load_n(&p->seq, __ATOMIC_ACQUIRE);

	*out = *p;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if ((seq & 1) || seq != __atomic_load_n(&p->seq, __ATOMIC_RELAXED))
		return false;
	return out->addr == addr && lives(out->ctx, out->generation);
}

static void cache_put(const struct uar_page *in)
{
	struct uar_page *p = &cache[in->addr / SHIM_PAGE % CACHED];
	uint32_t seq;

	/* Without the lock for a moment, the next store just looks again. */
	if (__atomic_exchange_n(&cache_lock, 1, __ATOMIC_ACQUIRE))
		return;
	seq = p->seq;
	__atomic_store_n(&p->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	p->addr = in->addr;
	p->ctx = in->ctx;
	p->generation = in->generation;
	p->page = in->page;
	__atomic_store_n(&p->seq, seq + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&cache_lock, 0, __ATOMIC_RELEASE);
}

/* Forget what is unmapped, when we are told. */
void shim_trap_unmapped(uint64_t start, uint64_t end)
{
	for (unsigned int i = 0; shim_dev.inst && i < CACHED; i++) {
		if (cache[i].addr >= start && cache[i].addr < end) {
			uint32_t seq = cache[i].seq | 1;

			__atomic_store_n(&cache[i].seq, seq, __ATOMIC_RELEASE);
			cache[i].addr = 0;
			__atomic_store_n(&cache[i].seq, seq + 1, __ATOMIC_RELEASE);
		}
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

/* "start-end perms offset dev inode   path": does it hold addr, and is it a context's file? */
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
	if (!path || (size_t)(end - path) < dir_len + sizeof(files) || memcmp(path, shim.dir, dir_len) ||
	    memcmp(path + dir_len, files, sizeof(files) - 1))
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
	int found = 0, fd = sh_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

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
	return found > 0 && out->page < 2;
}

static void store(void *arg, uint64_t addr, unsigned int width, const uint8_t *value)
{
	const struct uar_page *p = arg;

	shim_bus_store(p->ctx, p->page, (unsigned int)(addr - p->addr), width, value);
}

static void on_bus(int sig, siginfo_t *info, void *uc)
{
	uint64_t addr = (uintptr_t)info->si_addr, start = addr & ~(uint64_t)(SHIM_PAGE - 1);
	struct uar_page page;
	int saved = errno;

	if (info->si_code == BUS_ADRERR) {
		if (cache_get(start, &page) ||
		    (look_up(start, &page) && (cache_put(&page), true))) {
			if (!sh_decode_store(uc, addr, start, start + SHIM_PAGE, store, &page)) {
				errno = saved;
				return;
			}
		}
	}
	errno = saved;
	shim_signals_chain(sig, info, uc);
}

int shim_trap_install(void)
{
	static bool decoder_ready;

	if (!decoder_ready) {
		sh_decode_init();
		decoder_ready = true;
	}
	return shim_signals_own(on_bus);
}

#else

int shim_trap_install(void)
{
	return 0;
}


void shim_trap_unmapped(uint64_t start, uint64_t end)
{
	(void)start;
	(void)end;
}
#endif
