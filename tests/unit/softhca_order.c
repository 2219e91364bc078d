// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks the order of locks: softhca_order.h. Each thread keeps what it has taken, and no lock
 * protects that: a signal handler on top of device code takes none. A thread can be thrown out of
 * any instruction here; then the words of its locks name another life than the one that it has
 * begun.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What sh_hold() does for users. Everybody else calls the one below. */
#define sh_hold hold_unchecked
#include "softhca/device/memory/lock.c"
#undef sh_hold
#include "softhca/device/memory/tables.h"
#include "softhca/device/waits.h"
#include "softhca_order.h"

/* ---- the order ---- */

/* That of sh_exec.ending, of which `softhca show --waits` says nothing. */
#define ENDING	  (SH_LOCK_RECOVERY + 1)
#define BIT(kind) (1u << (kind))
#define QP_LOCKS  (BIT(SH_LOCK_REQUESTER) | BIT(SH_LOCK_RESPONDER))
#define TO_SRQ	  (QP_LOCKS | BIT(SH_LOCK_SRQ))
#define TO_CQ	  (TO_SRQ | BIT(SH_LOCK_CQ))

static const struct {
	const char *name;
	unsigned int under; /* the kinds that a thread may have which waits for one of this kind */
	bool single;	    /* no thread has two */
	bool ascending;	    /* of two, the one with the lower number comes first */
	bool tried;	    /* no thread waits for it */
} order[] = {
	[SH_LOCK_REQUESTER] = {.name = "the requester's lock of QP", .single = true},
	[SH_LOCK_RESPONDER] = {.name = "the responder's lock of QP",
			       .under = BIT(SH_LOCK_REQUESTER),
			       .single = true},
	[SH_LOCK_SRQ] = {.name = "the lock of SRQ", .under = QP_LOCKS},
	[SH_LOCK_CQ] = {.name = "the lock of CQ", .under = TO_SRQ},
	[SH_LOCK_RECOVERY] = {.name = "the lock of recoveries", .under = TO_CQ},
	[SH_LOCK_EVQ] = {.name = "the lock of event queue",
			 .under = TO_CQ | BIT(SH_LOCK_RECOVERY),
			 .ascending = true},
	/* The locks beside the table: under them a thread takes no other. */
	[SH_LOCK_ATOMICS] = {.name = "the lock of atomic operations at", .under = QP_LOCKS},
	[SH_LOCK_MULTICAST] = {.name = "the lock of the multicast table"},
	[SH_LOCK_PORTS] = {.name = "the lock of ports"},
	[ENDING] = {.name = "the lock of a thread that is to be thrown, slot", .tried = true},
};

/* ---- what a thread has ---- */

#define MOST 16

struct taken {
	struct sh_lock *lock; /* NULL: nothing here */
	const struct sh_instance *inst;
	uint64_t word; /* of this thread */
	/* A test that is client and daemon in one thread is two threads in this. */
	uint32_t proc;
	unsigned int kind;
	uint32_t hca, number;
	void *from[ORDER_FRAMES];
};
static __thread struct taken mine[MOST];

/* What comes before in the stack, with frame pointers. */
struct frame {
	const struct frame *up;
	void *back;
};

/* Callers without frame pointers leave anything there, so only what is near is looked at. */
__attribute__((no_sanitize("address"))) static void walk(const struct frame *f,
							 void *from[ORDER_FRAMES])
{
	const uintptr_t near = 16384;

	for (unsigned int i = 0; i < ORDER_FRAMES; i++) {
		from[i] = f ? f->back : NULL;
		if (f && ((uintptr_t)f->up % sizeof(void *) || f->up <= f ||
			  (uintptr_t)f->up - (uintptr_t)f > near))
			f = NULL;
		else if (f)
			f = f->up;
	}
}

/* What the lock is. */
static void find(const struct sh_dev *dev, struct sh_lock *lock, struct taken *t)
{
	const uint64_t off = (uint64_t)((char *)lock - (char *)dev->inst), in = off - SH_EXEC_OFF;
	struct sh_held held;

	sh_lock_at(dev, off, &held);
	*t = (struct taken){.lock = lock,
			    .inst = dev->inst,
			    .proc = dev->proc,
			    .kind = held.kind,
			    .hca = held.hca,
			    .number = held.number};
	if (off < SH_EXEC_OFF || in / sizeof(struct sh_exec) >= SH_MAX_EXEC ||
	    in % sizeof(struct sh_exec) != offsetof(struct sh_exec, ending))
		return;
	t->kind = ENDING;
	t->number = (uint32_t)(in / sizeof(struct sh_exec));
}

/*
 * Does this thread still have it? Of another instance the memory may be gone, and the thread has no
 * slot there.
 */
static bool has(const struct sh_dev *dev, const struct taken *t)
{
	return t->lock && t->inst == dev->inst && t->word == sh_self.word &&
	       (__atomic_load_n(&t->lock->owner, __ATOMIC_RELAXED) & ~SH_OWNER_SLEEPERS) == t->word;
}

static void note(struct sh_dev *dev, struct sh_lock *lock, const struct frame *f)
{
	struct taken *to = NULL, new;

	for (unsigned int i = 0; i < MOST; i++)
		if (mine[i].lock == lock || (!to && !has(dev, &mine[i])))
			to = &mine[i];
	if (!to)
		abort(); /* no thread has so many */
	find(dev, lock, &new);
	new.word = sh_self.word;
	walk(f, new.from);
	*to = new;
}

void order_gives(struct sh_lock *lock)
{
	for (unsigned int i = 0; i < MOST; i++)
		if (mine[i].lock == lock)
			mine[i].lock = NULL;
}

/* ---- the check ---- */

static void name(const struct taken *t, struct order_lock *l)
{
	const unsigned int alone = BIT(SH_LOCK_RECOVERY),
			   in_instance = BIT(SH_LOCK_EVQ) | BIT(ENDING),
			   of_hca = BIT(SH_LOCK_MULTICAST) | BIT(SH_LOCK_PORTS),
			   kind = BIT(t->kind);
	const char *is = order[t->kind].name;

	memcpy(l->from, t->from, sizeof(l->from));
	if (t->kind == SH_LOCK_UNKNOWN)
		snprintf(l->name, sizeof(l->name), "a lock at %#tx",
			 (char *)t->lock - (char *)t->inst);
	else if (kind & alone)
		snprintf(l->name, sizeof(l->name), "%s", is);
	else if (kind & in_instance)
		snprintf(l->name, sizeof(l->name), "%s %u", is, t->number);
	else if (kind & of_hca)
		snprintf(l->name, sizeof(l->name), "%s of HCA %u", is, t->hca);
	else
		snprintf(l->name, sizeof(l->name), "%s %#x of HCA %u", is, t->number, t->hca);
}

/* May a thread that has a lock wait for this one? */
static bool comes_before(const struct taken *a, const struct taken *b)
{
	if (a->kind == b->kind && order[b->kind].ascending)
		return a->number < b->number;
	return order[b->kind].under & BIT(a->kind);
}

static void broken(enum order_broken how, const struct taken *wants, const struct taken *has)
{
	struct order_lock w, h;

	name(wants, &w);
	if (has)
		name(has, &h);
	order_on_break(how, &w, has ? &h : NULL);
}

/*
 * WAITS: this thread is about to take the lock. HAD: it has it, and would have waited. TRIED: it
 * has it.
 */
enum when { WAITS, HAD, TRIED };

static void check(struct sh_dev *dev, struct sh_lock *lock, enum when when, const struct frame *f)
{
	struct taken new;

	find(dev, lock, &new);
	walk(f, new.from);
	if (new.kind == SH_LOCK_UNKNOWN) {
		broken(ORDER_NAMELESS, &new, NULL);
		return;
	}
	if (when != TRIED && order[new.kind].tried)
		broken(ORDER_WAITS, &new, NULL);
	for (unsigned int i = 0; i < MOST; i++) {
		const struct taken *t = &mine[i];

		if (!has(dev, t) || t->proc != dev->proc || t->kind == SH_LOCK_UNKNOWN)
			continue;
		if (t->lock == lock) {
			if (when == WAITS)
				broken(ORDER_OWN, &new, t);
		} else if (t->kind == new.kind && order[new.kind].single) {
			broken(ORDER_TWO, &new, t);
		} else if (when != TRIED && !comes_before(t, &new)) {
			broken(ORDER_LATER, &new, t);
		}
	}
}

__attribute__((noinline)) bool order_took(struct sh_dev *dev, struct sh_lock *lock)
{
	const struct frame *f = __builtin_frame_address(0);

	check(dev, lock, HAD, f);
	note(dev, lock, f);
	return true;
}

int sh_hold(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait wait)
{
	const struct frame *f = __builtin_frame_address(0);
	int err;

	/* Before it waits, which may be for ever. */
	if (wait != SH_WAIT_NOT)
		check(dev, lock, WAITS, f);
	err = hold_unchecked(dev, lock, wait);
	if (err < 0)
		return err;
	if (wait == SH_WAIT_NOT)
		check(dev, lock, TRIED, f);
	note(dev, lock, f);
	return err;
}

/* ---- what is said of it ---- */

/* Where a function was called from, by the names that addr2line finds. */
static void print_place(int fd, void *back)
{
	char place[32], *argv[] = {"addr2line", "-fip", "-e", NULL, place, NULL};
	posix_spawn_file_actions_t to;
	Dl_info at;
	pid_t pid;
	int status = 1;

	/* The call is in front of where it returns to. */
	if (!dladdr(back, &at) || !at.dli_fname) {
		dprintf(fd, "  %p\n", back);
		return;
	}
	snprintf(place, sizeof(place), "%#tx",
		 (char *)back - 1 -
			 (((const ElfW(Ehdr) *)at.dli_fbase)->e_type == ET_EXEC
				  ? NULL
				  : (char *)at.dli_fbase));
	argv[3] = (char *)at.dli_fname;
	dprintf(fd, "  ");
	posix_spawn_file_actions_init(&to);
	posix_spawn_file_actions_adddup2(&to, fd, STDOUT_FILENO);
	if (!posix_spawnp(&pid, "addr2line", &to, NULL, argv, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&to);
	if (status)
		dprintf(fd, "%s %s\n", at.dli_fname, place);
}

static void print_places(int fd, const char *what, const struct order_lock *l)
{
	dprintf(fd, "%s %s:\n", l->name, what);
	for (unsigned int i = 0; i < ORDER_FRAMES && l->from[i]; i++)
		print_place(fd, l->from[i]);
}

void order_print(int fd, enum order_broken how, const struct order_lock *wants,
		 const struct order_lock *has)
{
	static const char *const says[] = {
		[ORDER_LATER] = "waits for a lock and has one that does not come before it",
		[ORDER_TWO] = "has two locks of a kind of which no thread has two",
		[ORDER_OWN] = "waits for a lock that it has",
		[ORDER_WAITS] = "waits for a lock that threads only try",
		[ORDER_NAMELESS] = "takes a lock that the order does not name",
	};

	dprintf(fd, "The order of locks (docs/memory-order.md) is broken. A thread %s:\n",
		says[how]);
	if (has)
		print_places(fd, "was taken here", has);
	print_places(fd, "is taken here", wants);
}

/* Shared with the children: how often the order was broken. */
static unsigned int *breaks;
static pid_t begun_by;

static void fail(enum order_broken how, const struct order_lock *wants,
		 const struct order_lock *has)
{
	if (breaks)
		__atomic_fetch_add(breaks, 1, __ATOMIC_RELAXED);
	order_print(STDERR_FILENO, how, wants, has);
	abort();
}

void (*order_on_break)(enum order_broken how, const struct order_lock *wants,
		       const struct order_lock *has) = fail;

__attribute__((constructor)) static void begin(void)
{
	void *at = mmap(NULL, sizeof(*breaks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);

	if (at != MAP_FAILED)
		breaks = at;
	begun_by = getpid();
}

__attribute__((destructor)) static void end(void)
{
	if (getpid() != begun_by || !breaks || !__atomic_load_n(breaks, __ATOMIC_RELAXED))
		return;
	dprintf(STDERR_FILENO,
		"The order of locks was broken in another process, as said above.\n");
	_exit(1);
}
