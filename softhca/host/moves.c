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
#define PATIENCE_NS 100000000		 /* for what other threads have begun */
#define TURN_NS	    10000000		 /* for threads that are to have their turn */
#define TURNS_NS    UINT64_C(2000000000) /* for what they do then */
#define LOOK_NS	    5000000		 /* until a thread looks whether the other one is stopped */
#define STOPPED_NS  UINT64_C(2000000000) /* for one that is stopped */
#define LINE_WORDS  8
#define CALL_SEGS   32 /* of a call of the program's; the stack may be small */

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
 * daemon can hear that its process has ended before the thread is a zombie. Returns 'X' for all of
 * these, or the state that the kernel tells, or '?' if it does not.
 */
static char state_of(uint32_t number)
{
	char path[40], text[512], state;
	unsigned int flags;
	struct sh_door *door;
	const char *at;
	int err;

	if (sh_sys(syscall(SYS_kill, (long)number, 0L)) == -ESRCH)
		return 'X';
	snprintf(path, sizeof(path), "/proc/%u/stat", number);
	door = sh_pin(); /* it has a descriptor open meanwhile */
	at = sh_proc_stat(path, text, sizeof(text), &err);
	sh_unpin(door);
	if (!at)
		return err == -ESRCH ? 'X' : '?';
	if (!sh_proc_state(at, &state, &flags))
		return '?';
	return state == 'Z' || flags & SH_PF_EXITING ? 'X' : state;
}

bool sh_thread_dead(uint32_t number)
{
	return state_of(number) == 'X';
}

/*
 * sure: what cannot be told counts as running. This process may have no descriptor left, or no
 * /proc.
 */
static bool is_stopped(uint32_t number, bool sure)
{
	char state = state_of(number);

	return state == 'T' || state == 't' || (state == '?' && !sure);
}

static uint32_t number_in(uint64_t word)
{
	return (uint32_t)(word >> 32) & SH_MOVES_NUMBER;
}

static uint32_t pid_in(uint64_t word)
{
	return (uint32_t)(word & ~SH_MOVES_MARK);
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
		if (pid_in(__atomic_load_n(&moves->moving[i], __ATOMIC_SEQ_CST)) == pid)
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

/* The number of a thread that reaches into the process; 0: there is none. */
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

static uint64_t bits(uint64_t word, unsigned int from, unsigned int to)
{
	return word >> from & ((UINT64_C(1) << (to - from)) - 1);
}

static bool overlaps(const uint64_t *at, const struct sh_reached *reached)
{
	/* After the word, which the thread that exchanges pages stored behind it: see commit(). */
	uint64_t piece = __atomic_load_n(at, __ATOMIC_SEQ_CST);
	uint64_t from = bits(piece, 0, SH_PIECE_PAGES) << SH_PIECE_PAGE,
		 len = bits(piece, SH_PIECE_PAGES, SH_PIECE_COMMIT) << SH_PIECE_PAGE;

	for (unsigned int i = 0; len && i < reached->nseg; i++)
		if (reached->seg[i].addr < from + len &&
		    from < reached->seg[i].addr + reached->seg[i].len)
			return true;
	return !len || !reached->nseg;
}

/*
 * The index of a word that holds off a thread which reaches that memory; -1: there is none. What it
 * reads of a piece that ends meanwhile does not matter: the next piece waits for this thread, which
 * has announced itself before.
 */
static int mover(struct sh_moves *moves, const struct sh_reached *reached, uint64_t *word)
{
	for (int i = 0; reached->pid && i < SH_MOVES; i++) {
		*word = __atomic_load_n(&moves->moving[i], __ATOMIC_SEQ_CST);
		if (!*word || pid_in(*word) != reached->pid)
			continue;
		if (*word & SH_MOVES_MARK && !overlaps(&moves->piece[i], reached))
			continue;
		if (!sh_thread_dead(number_in(*word)))
			return i;
		__atomic_compare_exchange_n(&moves->moving[i], word, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return -1;
}

/*
 * Is that thread stopped before it has begun to exchange a piece? Then its word is taken away, and
 * it begins anew when it goes on. So it does if it was not stopped at all.
 */
static bool stopped_early(struct sh_moves *moves, int i, uint64_t word, bool sure)
{
	return !(word & SH_MOVES_MARK) && is_stopped(number_in(word), sure) &&
	       __atomic_compare_exchange_n(&moves->moving[i], &word, 0, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/*
 * Is that thread stopped, and traced by a thread of this process, so that it may wait for this one?
 */
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

static inline bool has_words(const struct sh_reach *r, const uint64_t word[2])
{
	return (r->word[0] >= 0 || !word[0]) && (r->word[1] >= 0 || !word[1]);
}

/*
 * Sleeps for a moment. From now on the words hold off nothing, and tell that this thread is to be
 * let through. They tell it as well while the thread only looks whether it has to wait on: a
 * process that looks just then would go on with its exchange, and the two may well keep step.
 */
static void wait_turn(struct sh_moves *moves, struct sh_reach *r, const uint64_t word[2],
		      uint32_t pid)
{
	for (int i = 0; i < 2; i++)
		if (r->word[i] >= 0)
			__atomic_store_n(&moves->reaching[r->word[i]], word[i] | SH_MOVES_MARK,
					 __ATOMIC_RELEASE);
	a_moment(pid);
}

/*
 * The words hold off exchanges again. One that has begun meanwhile is seen by the next look only.
 */
static void end_wait(struct sh_moves *moves, struct sh_reach *r, const uint64_t word[2])
{
	for (int i = 0; i < 2; i++) {
		if (r->word[i] >= 0)
			__atomic_store_n(&moves->reaching[r->word[i]], word[i], __ATOMIC_SEQ_CST);
		else if (word[i])
			r->word[i] = take_reach(moves, word[i]);
	}
}

_Static_assert(sizeof(struct sh_seg) == sizeof(struct iovec), "a piece is an address and a length");

/*
 * What such a call of the program's reaches. If it cannot be read, or is in many pieces: anything.
 */
static struct sh_reached called_for(uint32_t pid, const struct iovec *remote, unsigned long nremote,
				    struct sh_seg seg[CALL_SEGS])
{
	if (nremote > CALL_SEGS || sh_peek(seg, (uintptr_t)remote, nremote * sizeof(*seg)))
		nremote = 0;
	return (struct sh_reached){pid, (unsigned int)nremote, seg};
}

void sh_reach_by_program(struct sh_moves *moves, struct sh_reach *r, uint32_t pid,
			 const struct iovec *remote, unsigned long nremote)
{
	/* Not thread_number(): a child of vfork() may call this, on its parent's memory. */
	uint32_t number = (uint32_t)syscall(SYS_gettid);
	uint64_t me = sh_reach_word(number, sh_self.word >> SH_OWNER_GENERATION),
		 word[2] = {me | pid, 0}, theirs;
	struct sh_reached what;
	struct sh_seg seg[CALL_SEGS];
	bool waits = false;

	r->word[0] = take_reach(moves, word[0]);
	r->word[1] = -1;
	/* Pairs with sh_move_begin(). */
	if (r->word[0] >= 0 && none(moves->moving))
		return;
	what = called_for(pid, remote, nremote, seg);
	for (;;) {
		int i = mover(moves, &what, &theirs);
		bool goes = i < 0 || traces(number_in(theirs));

		if (goes && waits) {
			end_wait(moves, r, word);
			waits = false;
			continue;
		}
		if (goes && (i >= 0 || r->word[0] >= 0))
			return;
		if (i >= 0 && stopped_early(moves, i, theirs, true))
			continue;
		wait_turn(moves, r, word, pid);
		waits = true;
	}
}

/* What a thread waits for. */
struct wait {
	uint64_t since, look; /* 0: it has not waited yet */
};

/* The word of a stopped thread that this one has waited for in vain. */
static __thread uint64_t in_vain;

/*
 * Waits for the thread that has that word, which holds off this one. False: it has been stopped in
 * the middle of a piece for long enough.
 */
static bool wait_for(struct sh_moves *moves, struct sh_reach *r, const uint64_t word[2], int i,
		     uint64_t theirs, struct wait *w)
{
	uint64_t now = sh_now();

	if (!w->since) {
		w->since = now;
		w->look = theirs == in_vain ? now : now + LOOK_NS;
	}
	if (now >= w->look) {
		bool late = theirs == in_vain || now >= w->since + STOPPED_NS;

		w->look = now + LOOK_NS;
		if (stopped_early(moves, i, theirs, !late))
			return true;
		if (late) {
			in_vain = is_stopped(number_in(theirs), true) ? theirs : 0;
			if (in_vain || is_stopped(number_in(theirs), false))
				return false;
		}
	}
	wait_turn(moves, r, word, pid_in(theirs));
	return true;
}

/* It has words, or has none because all are taken. */
SH_OUTLINE bool await_turn(struct sh_moves *moves, struct sh_reach *r, const uint64_t word[2],
			   const struct sh_reached *one, const struct sh_reached *other)
{
	struct wait w = {0};
	bool waits = false;

	for (;;) {
		uint64_t theirs;
		/* Pairs with sh_move_begin(). */
		int i = mover(moves, one, &theirs);

		if (i < 0)
			i = mover(moves, other, &theirs);
		if (i < 0 && waits) {
			end_wait(moves, r, word);
			waits = false;
			continue;
		}
		if (i < 0 && has_words(r, word))
			return true;
		if (i < 0)
			wait_turn(moves, r, word, one->pid ? one->pid : other->pid);
		else if (!wait_for(moves, r, word, i, theirs, &w))
			break;
		waits = true;
	}
	sh_reach_end(moves, r);
	return false;
}

bool sh_reach_begin(struct sh_moves *moves, struct sh_reach *r, const struct sh_reached *one,
		    const struct sh_reached *other)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION);
	const uint64_t word[2] = {one->pid ? me | one->pid : 0,
				  other->pid && other->pid != one->pid ? me | other->pid : 0};

	r->word[0] = word[0] ? take_reach(moves, word[0]) : -1;
	r->word[1] = word[1] ? take_reach(moves, word[1]) : -1;
	/* Pairs with sh_move_begin(). */
	if (has_words(r, word) && none(moves->moving))
		return true;
	return await_turn(moves, r, word, one, other);
}

bool sh_reach_try(struct sh_moves *moves, struct sh_reach *r, uint32_t pid)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION), theirs;
	const struct sh_reached all = {.pid = pid};

	r->word[0] = take_reach(moves, me | pid);
	r->word[1] = -1;
	/* Pairs with sh_move_begin(). */
	if (r->word[0] >= 0 && mover(moves, &all, &theirs) < 0)
		return true;
	sh_reach_end(moves, r);
	return false;
}

bool sh_reach_for(struct sh_moves *moves, struct sh_reach *r, uint32_t pid, uint32_t thread)
{
	uint64_t me = sh_reach_word(thread_number(), sh_self.word >> SH_OWNER_GENERATION), theirs;
	const struct sh_reached all = {.pid = pid};

	r->word[0] = take_reach(moves, me | pid);
	r->word[1] = -1;
	/*
	 * As long as that thread lives, an exchange that has begun to announce itself sees its
	 * word, and does not take place. Pairs with sh_move_begin(), which looks twice.
	 */
	if (r->word[0] >= 0 && (mover(moves, &all, &theirs) < 0 || !sh_thread_dead(thread)))
		return true;
	sh_reach_end(moves, r);
	return false;
}

void sh_reach_end(struct sh_moves *moves, const struct sh_reach *r)
{
	put(moves->reaching, r->word[0]);
	put(moves->reaching, r->word[1]);
}

/*
 * Another thread may have ended the life in which this one took a word, and take the word away at
 * the same time: then it may be someone else's by now.
 */
void sh_reach_forget(struct sh_moves *moves)
{
	uint32_t me = thread_number();

	for (unsigned int i = 0; i < sh_reaches(moves); i++) {
		uint64_t word = __atomic_load_n(&moves->reaching[i], __ATOMIC_RELAXED);

		if (number_in(word) == me)
			__atomic_compare_exchange_n(&moves->reaching[i], &word, 0, false,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

/* The piece that follows another one. What it has no room to say is all of the memory. */
static uint64_t piece_of(uint64_t from, uint64_t to, uint64_t before)
{
	uint64_t page = from >> SH_PIECE_PAGE, pages = ((to - 1) >> SH_PIECE_PAGE) - page + 1,
		 number = (before >> SH_PIECE_COMMIT) + 1;

	if (bits(page, 0, SH_PIECE_PAGES) != page ||
	    bits(pages, 0, SH_PIECE_COMMIT - SH_PIECE_PAGES) != pages)
		page = pages = 0;
	return number << SH_PIECE_COMMIT | pages << SH_PIECE_PAGES | page;
}

/*
 * From now on only threads that reach into the piece are held off. False: the word was taken away,
 * or a thread that has lost it wrote here just now.
 *
 * This thread can be stopped anywhere. Then its word is taken away, another thread takes the word,
 * and commits its own piece. If this one goes on behind its look at the word, it has loaded the
 * piece from before: that has changed since, or else the other thread has not exchanged it yet, and
 * then does not find there what it has loaded. If this one loads the piece when the other thread
 * has committed it, it finds behind that, that the word is not its own. So whoever has the mark has
 * its own piece, until it gives the mark back.
 *
 * Sequentially consistent, like the loads of mover().
 */
static bool commit(struct sh_moves *moves, int word, uint64_t mine, uint64_t from, uint64_t to)
{
	uint64_t piece = __atomic_load_n(&moves->piece[word], __ATOMIC_SEQ_CST);

	return __atomic_load_n(&moves->moving[word], __ATOMIC_SEQ_CST) == mine &&
	       __atomic_compare_exchange_n(&moves->piece[word], &piece, piece_of(from, to, piece),
					   false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	       __atomic_compare_exchange_n(&moves->moving[word], &mine, mine | SH_MOVES_MARK, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* How long the pieces of this exchange have taken, and the turns of others between them. */
static uint64_t worked, given, since;

/*
 * Announces a piece, with the word that this thread has or with a new one, and waits until no
 * thread reaches into this process. A thread that has had its turn may take long, unless it is
 * stopped.
 */
static int announce(struct sh_moves *moves, int word, bool turns, uint64_t from, uint64_t to)
{
	uint64_t begin = sh_now(), now;
	uint32_t pid = (uint32_t)getpid(), other = 0;
	uint64_t mine = (uint64_t)thread_number() << 32 | pid;

	/*
	 * Other exchanges may have all the words, or a thread reaches into this process. By the
	 * clock, because a moment may take long: meanwhile all signals are blocked.
	 */
	do {
		if (word >= 0 && __atomic_load_n(&moves->moving[word], __ATOMIC_SEQ_CST) != mine)
			word = -1;
		if (word < 0)
			word = take(moves->moving, SH_MOVES, mine);
		/*
		 * Pairs with sh_reach_begin(); the second look with sh_reach_for(): if the first
		 * one found the word of a thread that had just died, the daemon may have announced
		 * itself behind it.
		 */
		if (word >= 0 && !(other = any(moves->reaching, sh_reaches(moves), pid)) &&
		    !(other = any(moves->reaching, sh_reaches(moves), pid)) &&
		    commit(moves, word, mine, from, to))
			return word;
		a_moment(pid);
		now = sh_now();
	} while (now < begin + PATIENCE_NS ||
		 (turns && other && now < begin + TURNS_NS && !is_stopped(other, true)));
	/* Not put(): it may be another thread's by now. */
	if (word >= 0)
		__atomic_compare_exchange_n(&moves->moving[word], &mine, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	return -EBUSY;
}

int sh_move_begin(struct sh_moves *moves, uint64_t from, uint64_t to)
{
	int word = announce(moves, -1, false, from, to);

	worked = given = 0;
	since = sh_now();
	return word;
}

/* Does a thread that can go on wait to be let through? */
static bool awaited(const struct sh_moves *moves, uint32_t pid)
{
	for (unsigned int i = 0; i < sh_reaches(moves); i++) {
		uint64_t word = __atomic_load_n(&moves->reaching[i], __ATOMIC_SEQ_CST);
		char state;

		if (!(word & SH_MOVES_MARK) || pid_in(word) != pid)
			continue;
		state = state_of(number_in(word));
		if (state != 'X' && state != 'T' && state != 't')
			return true;
	}
	return false;
}

/*
 * Others have as much time as the exchange itself, so that one whose copies are large does not keep
 * it from coming to its end. Until they have used it up the word is free between two pieces.
 */
int sh_move_next(struct sh_moves *moves, int word, uint64_t from, uint64_t to)
{
	uint64_t now = sh_now(), until = now + TURN_NS;
	uint32_t pid = (uint32_t)getpid();

	worked += now - since;
	since = now;
	if (given <= worked) {
		put(moves->moving, word);
		word = -1;
		while (awaited(moves, pid) && sh_now() < until)
			a_moment(pid);
	} else {
		__atomic_store_n(&moves->moving[word], (uint64_t)thread_number() << 32 | pid,
				 __ATOMIC_SEQ_CST);
	}
	word = announce(moves, word, true, from, to);
	now = sh_now();
	given += now - since;
	since = now;
	return word;
}

void sh_move_end(struct sh_moves *moves, int word)
{
	put(moves->moving, word);
}
