// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See descriptors.h: a mark for each number, which is a bit. A *section* is the time between
 * sh_section_begin() and sh_section_end(), in which a thread makes or closes descriptors of
 * softhca's. A number gets its mark before the thread leaves the section in which the descriptor
 * was made, and loses it in the section in which the descriptor is closed. So a number that is
 * open, and has no mark while no thread is in a section, is the program's, and stays so until the
 * program closes it. A program that makes the system call itself may have closed a marked number,
 * and opened another file under it: so a mark also says which file it was made for. A *sweep* is a
 * call of the program that takes many numbers away: sweeps wait for sections, and sections for
 * sweeps.
 *
 * There is no lock that a signal handler, a stopped thread or a child of vfork() could find taken.
 * A thread waits here for some milliseconds at most, and then goes on. Later callers do not wait
 * for the same threads again.
 */
#include <sys/resource.h>

#include "softhca/device/memory/life.h"
#include "descriptors.h"
#include "sys.h"

#define MOST  16384 /* numbers beyond are not protected */
#define BITS  64
#define TURNS 300 /* of sh_give_way(): some 20 ms */

#define TLS __thread __attribute__((tls_model("initial-exec")))

#define INSIDE UINT64_C(0xffff)	 /* threads in a section */
#define CHANGE UINT64_C(0x10000) /* sections that have ended */

static uint64_t own[MOST / BITS];
static uint32_t file[MOST]; /* print() of what a marked number meant */
static int end;		    /* behind the highest number that was ever marked */
static uint64_t changes;
static uint32_t sweeps;
static int here; /* the process; its children by other ways than fork() have a table of their own */
static uint32_t stuck_inside, stuck_sweeps; /* how many threads were waited for in vain */
static TLS unsigned int inside, sweeping;
static void (*after)(void);    /* called by a thread that leaves both; NULL: no handlers wait */
static TLS void (*then)(void); /* the same for this thread, which is in */
static TLS struct sh_door *door;

/* ---- sections ---- */

void sh_section_guard(void (*fn)(void))
{
	__atomic_store_n(&after, fn, __ATOMIC_RELEASE);
}

bool sh_section_guarded(void)
{
	return then != NULL;
}

/*
 * Before a thread counts itself in. If handlers did not wait at that time, one may have jumped
 * away. The thread then never leaves, so its handlers must not wait until it does.
 */
static void guard(void)
{
	if (!inside && !sweeping)
		then = __atomic_load_n(&after, __ATOMIC_ACQUIRE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Last of all: a handler that this lets run may jump away. */
static void unguard(void)
{
	void (*fn)(void) = then;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (inside || sweeping || !fn)
		return;
	then = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	fn();
}

/* Does the count include a thread for which no caller has yet waited in vain? */
static bool some(uint32_t number, uint32_t *stuck)
{
	uint32_t were = __atomic_load_n(stuck, __ATOMIC_RELAXED);

	/* The others were late, and not stuck. */
	if (number < were)
		__atomic_store_n(stuck, number, __ATOMIC_RELAXED);
	return number > were;
}

/*
 * The same, for each turn of a loop that waits for these threads. *least: the lowest count of all
 * turns.
 */
static bool wait_for(uint32_t number, uint32_t *stuck, uint32_t *least, unsigned int turn)
{
	if (!some(number, stuck))
		return false;
	if (!turn || number < *least)
		*least = number;
	if (turn < TURNS)
		return true;
	__atomic_store_n(stuck, *least, __ATOMIC_RELAXED);
	return false;
}

/* A thread in a section is not thrown (life.h). */
void sh_section_begin(void)
{
	struct sh_door *was;
	uint32_t least = 0;

	guard();
	if (inside++)
		return;
	was = sh_pin();
	for (unsigned int turn = 0;; turn++) {
		__atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
		/* Pairs with sh_sweep_begin(). */
		if (sweeping || !wait_for(__atomic_load_n(&sweeps, __ATOMIC_SEQ_CST), &stuck_sweeps,
					  &least, turn))
			break;
		__atomic_fetch_sub(&changes, 1, __ATOMIC_SEQ_CST);
		sh_give_way(turn);
	}
	door = was;
}

void sh_section_end(void)
{
	/* A child that a handler has made in the middle of a section begins anew. */
	if (!inside || --inside)
		return;
	some(__atomic_add_fetch(&changes, CHANGE - 1, __ATOMIC_SEQ_CST) & INSIDE, &stuck_inside);
	sh_unpin(door);
	unguard();
}

void sh_sweep_begin(void)
{
	uint32_t least = 0;

	if (getpid() != here)
		return;
	guard();
	sweeping++;
	__atomic_fetch_add(&sweeps, 1, __ATOMIC_SEQ_CST);
	/* Pairs with sh_section_begin(). */
	for (unsigned int turn = 0;
	     !inside && wait_for(__atomic_load_n(&changes, __ATOMIC_SEQ_CST) & INSIDE,
				 &stuck_inside, &least, turn);
	     turn++)
		sh_give_way(turn);
}

void sh_sweep_end(void)
{
	if (!sweeping)
		return;
	sweeping--;
	some(__atomic_sub_fetch(&sweeps, 1, __ATOMIC_SEQ_CST), &stuck_sweeps);
	unguard();
}

void sh_descriptors_here(void)
{
	here = getpid();
	inside = sweeping = 0;
	then = NULL;
	sweeps = stuck_sweeps = stuck_inside = 0;
	changes = sh_number_own_from(0) < 0 ? 0 : changes & ~INSIDE;
}

/* ---- marks ---- */

/* Tells files apart; 0: there is none. */
static uint32_t print(int fd)
{
	struct sh_ident id;
	uint64_t both;

	if (!sh_ident_take(fd, &id))
		return 0;
	both = ((uint64_t)id.ino ^ (uint64_t)id.dev << 40) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(both >> 32) | 1;
}

static void mark(int fd)
{
	int top = __atomic_load_n(&end, __ATOMIC_RELAXED);

	if (fd < 0 || fd >= MOST)
		return;
	__atomic_store_n(&file[fd], print(fd), __ATOMIC_RELAXED);
	while (fd >= top && !__atomic_compare_exchange_n(&end, &top, fd + 1, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	__atomic_fetch_or(&own[fd / BITS], UINT64_C(1) << fd % BITS, __ATOMIC_SEQ_CST);
}

static bool is_marked(int fd)
{
	return fd >= 0 && fd < MOST &&
	       __atomic_load_n(&own[fd / BITS], __ATOMIC_SEQ_CST) >> fd % BITS & 1;
}

static bool is_own(int fd)
{
	return is_marked(fd) && print(fd) == __atomic_load_n(&file[fd], __ATOMIC_RELAXED);
}

enum sh_number sh_number_is(int fd)
{
	enum sh_number is = SH_NUMBER_OTHER;
	uint32_t least = 0;

	for (unsigned int turn = 0; turn <= TURNS; turn++) {
		uint64_t before = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);

		/* This process has never had a section: this saves it the call below. */
		if (!before)
			return SH_NUMBER_OTHER;
		if (is_own(fd))
			is = SH_NUMBER_OWN;
		else
			is = sh_fcntl(fd, F_GETFD, 0) < 0 ? SH_NUMBER_FREE : SH_NUMBER_OTHER;
		if (inside || (!wait_for(before & INSIDE, &stuck_inside, &least, turn) &&
			       __atomic_load_n(&changes, __ATOMIC_SEQ_CST) == before))
			break;
		if (getpid() != here)
			return SH_NUMBER_OTHER;
		sh_give_way(turn);
	}
	return is == SH_NUMBER_OWN && getpid() != here ? SH_NUMBER_OTHER : is;
}

int sh_number_own_from(unsigned int fd)
{
	int top = __atomic_load_n(&end, __ATOMIC_SEQ_CST);

	while (fd < (unsigned int)top) {
		uint64_t word = __atomic_load_n(&own[fd / BITS], __ATOMIC_SEQ_CST) >> fd % BITS;

		if (!word) {
			fd = (fd / BITS + 1) * BITS;
			continue;
		}
		if (getpid() != here)
			return -1;
		fd += (unsigned int)__builtin_ctzll(word);
		if (is_own((int)fd))
			return (int)fd;
		fd++;
	}
	return -1;
}

/* ---- descriptors ---- */

int sh_close(int fd)
{
	int err = -EBADF;

	if (!is_marked(fd))
		return sh_sys(syscall(SYS_close, fd));
	sh_section_begin();
	/*
	 * The program may have put a file of its own there. The mark stays then: another thread's
	 * table may still have under the number what was marked.
	 */
	if (is_own(fd)) {
		__atomic_fetch_and(&own[fd / BITS], ~(UINT64_C(1) << fd % BITS), __ATOMIC_SEQ_CST);
		err = sh_sys(syscall(SYS_close, fd));
	}
	sh_section_end();
	return err;
}

int sh_fd_twin(int fd)
{
	struct rlimit limit;
	long floor = 900;
	int twin;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024)
		floor = (long)limit.rlim_cur * 3 / 4;
	sh_section_begin();
	twin = sh_fcntl(fd, F_DUPFD_CLOEXEC, floor);
	mark(twin);
	sh_section_end();
	return twin;
}

int sh_fd_high(int fd)
{
	int high;

	sh_section_begin();
	high = sh_fd_twin(fd);
	if (high < 0) {
		sh_fcntl(fd, F_SETFD, FD_CLOEXEC);
		mark(fd);
		high = fd;
	} else {
		sh_close(fd);
	}
	sh_section_end();
	return high;
}

int sh_open_own(const char *path, int flags)
{
	int fd;

	sh_section_begin();
	fd = sh_open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		fd = sh_fd_high(fd);
	sh_section_end();
	return fd;
}
