// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See moves.h. A thread stores its own word before it reads those of the other kind, so at least
 * one of the two threads sees the other. The one that reaches steps back. Allocates no memory and
 * holds no lock. The word of a thread that has ended is free again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/life.h"
#include "softhca/device/memory/lock.h"
#include "moves.h"
#include "process.h"
#include "procstat.h"
#include "status.h"
#include "sys.h"

#define MOMENT_NS   50000
#define PATIENCE_NS 100000000 /* for what other threads have begun */
#define LINE_WORDS  8

/* Sleeps for a moment on account of a process: of its exchange, or of copies into it. */
static void a_moment(uint32_t pid)
{
	static const struct timespec moment = {.tv_nsec = MOMENT_NS};

	/* There is no device while an instance is being made, or in tests of this file. */
	if (sh_process.dev)
		sh_wait_begin(sh_process.dev, SH_WAITS_PAGES, pid, 0);
	syscall(SYS_nanosleep, &moment, NULL);
	if (sh_process.dev)
		sh_wait_end(sh_process.dev);
}

static __thread uint32_t number; /* 0: the kernel has not been asked yet */

static uint32_t thread_number(void)
{
	if (!number)
		number = (uint32_t)syscall(SYS_gettid);
	return number;
}

void sh_moves_forked(void)
{
	number = 0;
}

/*
 * A process that was killed in the middle is dead from then on, but keeps its number until its
 * parent asks for its status. The parent may never do so. A thread in do_exit() is dead, too: the
 * daemon can hear that its process has ended before the thread is a zombie.
 */
bool sh_thread_dead(uint32_t number)
{
	char path[40], text[512], state;
	unsigned int flags;
	struct sh_door *door;
	const char *at;
	int err;

	if (sh_sys(syscall(SYS_kill, (long)number, 0L)) == -ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%u/stat", number);
	door = sh_pin(); /* it has a descriptor open meanwhile */
	at = sh_proc_stat(path, text, sizeof(text), &err);
	sh_unpin(door);
	if (!at)
		return err == -ESRCH;
	return sh_proc_state(at, &state, &flags) &&
	       (state == 'Z' || state == 'X' || flags & SH_PF_EXITING);
}

static uint32_t number_in(uint64_t word)
{
	return (uint32_t)(word >> 32) & SH_MOVES_NUMBER;
}

/*
 * Takes a free one of these words, or one whose thread has ended. -1: all are taken. Threads begin
 * at different cache lines, so that those of two processors seldom write to the same one.
 */
static int take(uint64_t *words, unsigned int count, uint64_t value)
{
	unsigned int first = number_in(value) * LINE_WORDS % SH_MOVES;

	for (int pass = 0; pass < 2; pass++) {
		for (unsigned int n = 0; n < count; n++) {
			unsigned int i = first + n < count ? first + n : first + n - count;
			uint64_t old = __atomic_load_n(&words[i], __ATOMIC_SEQ_CST);

			if (old && (!pass || !sh_thread_dead(number_in(old))))
				continue;
			if (__atomic_compare_exchange_n(&words[i], &old, value, false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				return (int)i;
		}
	}
	return -1;
}

/*
 * The same for a thread that reaches. If stopped threads have all of the words that are in use,
 * more words come into use. That happens before one of them is taken: a thread that exchanges
 * pages, and does not look at the new words yet, is then seen by the thread that takes one.
 */
static int take_reach(struct sh_moves *moves, uint64_t value)
{
	for (;;) {
		unsigned int count = sh_reaches(moves);
		int i = take(moves->reaching, count, value);
		uint32_t more = count - SH_MOVES;

		if (i >= 0 || count == SH_REACHES)
			return i;
		__atomic_compare_exchange_n(&moves->more, &more, more + SH_MOVES, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}

/*
 * A thread that finds the word free also finds done what it was taken for: pairs with the loads of
 * any().
 */
static void put(uint64_t *words, int i)
{
	if (i >= 0)
		__atomic_store_n(&words[i], 0, __ATOMIC_RELEASE);
}

void sh_moves_begin(struct sh_moves *moves)
{
	uint32_t pid = (uint32_t)getpid();

	for (int i = 0; i < SH_MOVES; i++)
		if ((uint32_t)__atomic_load_n(&moves->moving[i], __ATOMIC_SEQ_CST) == pid)
			put(moves->moving, i);
}

static void sweep(uint64_t *words, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_SEQ_CST);

		if (word && sh_thread_dead(number_in(word)))
			__atomic_compare_exchange_n(&words[i], &word, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
}

void sh_moves_sweep(struct sh_moves *moves)
{
	sweep(moves->moving, SH_MOVES);
	sweep(moves->reaching, sh_reaches(moves));
}

/* Are all words free? They nearly always are: exchanges of pages are rare. */
static bool none(const uint64_t *words)
{
	uint64_t seen = 0;

	for (const uint64_t *w = words; w < words + SH_MOVES; w += 4)
		seen |= __atomic_load_n(&w[0], __ATOMIC_SEQ_CST) |
			__atomic_load_n(&w[1], __ATOMIC_SEQ_CST) |
			__atomic_load_n(&w[2], __ATOMIC_SEQ_CST) |
			__atomic_load_n(&w[3], __ATOMIC_SEQ_CST);
	return !seen;
}

/* The number of a thread that has such a word for the process; 0: there is none. */
static uint32_t any(uint64_t *words, unsigned int count, uint32_t pid)
{
	for (unsigned int i = 0; pid && i < count; i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_SEQ_CST);

		if (!word || (uint32_t)word != pid)
			continue;
		if (!sh_thread_dead(number_in(word)))
			return number_in(word);
		__atomic_compare_exchange_n(&words[i], &word, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return 0;
}

/* Is that thread stopped, and traced by a thread of this process, so that it may wait for this one? */
static bool traces(uint32_t number)
{
	struct sh_status_field field[] = {{.name = "State:"}, {.name = "TracerPid:"}};
	char path[40];
	long tid;

	snprintf(path, sizeof(path), "/proc/%u/status", number);
	if (sh_status_read(path, field, 2) || (field[0].value[0] | ' ') != 't')
		return false;
	tid = strtol(field[1].value, NULL, 10);
	return tid > 0 && !sh_sys(syscall(SYS_tgkill, (long)getpid(), tid, 0L));
}

void sh_reach_by_program(struct sh_moves *moves, struct sh_reach *r, uint32_t pid)
{
	/* Not thread_number(): a child of vfork() may call this, on its parent's memory. */
	uint32_t number = (uint32_t)syscall(SYS_gettid), mover;
	uint64_t me = sh_reach_word(number, sh_self.word >> SH_OWNER_GENERATION);

	r->word[1] = -1;
	for (;;) {
		r->word[0] = take_reach(moves, me | pid);
		/* Pairs with sh_move_begin(). */
		mover = any(moves->moving, SH_MOVES, pid);
		if ((r->word[0] >= 0 && !mover) || (mover && traces(mover)))
			return;
		sh_reach_end(moves, r);
		a_moment(pid);
	}
}

void sh_reach_begin(struct sh_moves *moves, struct sh_reach *r, uint32_t pid, uint32_t other)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION);

	if (other == pid)
		other = 0;
	for (;;) {
		r->word[0] = pid ? take_reach(moves, me | pid) : -1;
		r->word[1] = other ? take_reach(moves, me | other) : -1;
		/* Pairs with sh_move_begin(). */
		if ((r->word[0] >= 0 || !pid) && (r->word[1] >= 0 || !other) &&
		    (none(moves->moving) ||
		     (!any(moves->moving, SH_MOVES, pid) && !any(moves->moving, SH_MOVES, other))))
			return;
		sh_reach_end(moves, r);
		a_moment(other ? other : pid);
	}
}

bool sh_reach_try(struct sh_moves *moves, struct sh_reach *r, uint32_t pid)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION);

	r->word[0] = take_reach(moves, me | pid);
	r->word[1] = -1;
	/* Pairs with sh_move_begin(). */
	if (r->word[0] >= 0 && !any(moves->moving, SH_MOVES, pid))
		return true;
	sh_reach_end(moves, r);
	return false;
}

bool sh_reach_for(struct sh_moves *moves, struct sh_reach *r, uint32_t pid, uint32_t thread)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION);

	r->word[0] = take_reach(moves, me | pid);
	r->word[1] = -1;
	/*
	 * As long as that thread lives, an exchange that has begun to announce itself sees its word,
	 * and does not take place. Pairs with sh_move_begin(), which looks twice.
	 */
	if (r->word[0] >= 0 && (!any(moves->moving, SH_MOVES, pid) || !sh_thread_dead(thread)))
		return true;
	sh_reach_end(moves, r);
	return false;
}

void sh_reach_end(struct sh_moves *moves, const struct sh_reach *r)
{
	put(moves->reaching, r->word[0]);
	put(moves->reaching, r->word[1]);
}

void sh_reach_forget(struct sh_moves *moves)
{
	uint32_t me = thread_number();

	for (unsigned int i = 0; i < sh_reaches(moves); i++)
		if (number_in(__atomic_load_n(&moves->reaching[i], __ATOMIC_RELAXED)) == me)
			put(moves->reaching, (int)i);
}

int sh_move_begin(struct sh_moves *moves)
{
	uint64_t until = sh_now() + PATIENCE_NS;
	uint32_t pid = (uint32_t)getpid();
	int word = -1;

	/*
	 * Other exchanges may have all the words, or a thread reaches into this process. By the
	 * clock, because a moment may take long: meanwhile all signals are blocked.
	 */
	do {
		if (word < 0)
			word = take(moves->moving, SH_MOVES, (uint64_t)thread_number() << 32 | pid);
		/*
		 * Pairs with sh_reach_begin(); the second look with sh_reach_for(): if the first one
		 * found the word of a thread that had just died, the daemon may have announced itself
		 * behind it.
		 */
		if (word >= 0 && !any(moves->reaching, sh_reaches(moves), pid) &&
		    !any(moves->reaching, sh_reaches(moves), pid))
			return word;
		a_moment(pid);
	} while (sh_now() < until);
	put(moves->moving, word);
	return -EBUSY;
}

void sh_move_end(struct sh_moves *moves, int word)
{
	put(moves->moving, word);
}
