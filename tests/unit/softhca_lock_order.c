// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the check of the order of locks (softhca_order.h), which other unit tests run with.
 * Each pair of locks is taken in each order, and the wrong ones are reported: as
 * docs/memory-order.md has them. Threads that try, die, are forked or begin a new life break no
 * order. A program fails if one of its children has broken it.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca_mock.h"

/*
 * Two locks of each kind, in the order of the document; behind them those that are beside its
 * table.
 */
enum kind {
	REQUESTER,
	RESPONDER,
	SRQ,
	CQ,
	RECOVERY, /* there is one */
	EVQ,
	ATOMICS,
	MULTICAST,
	PORTS,
	KINDS
};

static struct sh_lock *lock_of(struct mock *m, enum kind kind, uint32_t which)
{
	struct sh_hca *hca = sh_hca(&m->dev, which);

	switch (kind) {
	case REQUESTER:
		return &sh_qp_slot(&m->dev, 0, 0x40 + which)->lock;
	case RESPONDER:
		return &sh_qp_slot(&m->dev, 0, 0x40 + which)->rlock;
	case SRQ:
		return &((struct sh_srq *)sh_hca_table(&m->dev, 0, SH_HCA_SRQS))[0x50 + which].lock;
	case CQ:
		return &((struct sh_cq *)sh_hca_table(&m->dev, 0, SH_HCA_CQS))[0x60 + which].lock;
	case RECOVERY:
		return &m->inst->recovery;
	case EVQ:
		return &sh_evq(&m->dev, 7 + which)->lock;
	case ATOMICS:
		return &hca->atomic_lock[3];
	case MULTICAST:
		return &hca->mcg_lock;
	default:
		return &hca->port_lock;
	}
}

static struct sh_lock *ending_of(struct mock *m, uint32_t slot)
{
	return &((struct sh_exec *)sh_at(&m->dev, SH_EXEC_OFF))[slot].ending;
}

static struct mock *begin(void)
{
	struct mock *m = mock_new(&(struct mock_config){.hosts = 2});

	for (enum kind k = 0; k < KINDS; k++)
		for (uint32_t which = 0; which < 2; which++)
			sh_lock_init(lock_of(m, k, which));
	return m;
}

/* ---- what was reported ---- */

static unsigned int breaks;
static enum order_broken last;
static char wanted[80], had[80];

static void keep(enum order_broken how, const struct order_lock *wants,
		 const struct order_lock *has)
{
	breaks++;
	last = how;
	strcpy(wanted, wants->name);
	strcpy(had, has ? has->name : "");
}

static int watch(void **state)
{
	(void)state;
	order_on_break = keep;
	breaks = 0;
	return 0;
}

/* Was one reported since the last look? */
static bool reported(void)
{
	const bool was = breaks;

	breaks = 0;
	return was;
}

/* ---- pairs ---- */

/*
 * What may be waited for with a lock of each kind: '.' may, 'x' may not, '2' nobody has two, '<' if
 * it has the higher number. Of one kind the lock that is had is the first, so '<' may here.
 */
static const char rules[KINDS][KINDS + 1] = {
	/* clang-format off */
	[REQUESTER] = "2......xx",
	[RESPONDER] = "x2.....xx",
	[SRQ] =       "xxx...xxx",
	[CQ] =        "xxxx..xxx",
	[RECOVERY] =  "xxxx-.xxx",
	[EVQ] =       "xxxxx<xxx",
	[ATOMICS] =   "xxxxxxxxx",
	[MULTICAST] = "xxxxxxxxx",
	[PORTS] =     "xxxxxxxxx",
	/* clang-format on */
};

static bool may(enum kind first, enum kind second)
{
	return strchr(".<", rules[first][second]);
}

/* Not even without waiting. */
static bool never_two(enum kind first, enum kind second)
{
	return rules[first][second] == '2';
}

static void take(struct mock *m, struct sh_lock *lock, bool bounded)
{
	if (bounded)
		assert_int_equal(sh_lock_bounded(&m->daemon, lock), 0);
	else
		sh_lock(&m->dev, lock);
}

static void test_pairs(void **state)
{
	struct mock *m = begin();

	(void)state;
	for (enum kind first = 0; first < KINDS; first++)
		for (enum kind second = 0; second < KINDS; second++)
			for (int bounded = 0; bounded < 2; bounded++) {
				struct sh_lock *a = lock_of(m, first, 0);
				struct sh_lock *b = lock_of(m, second, 1);

				if (a == b)
					continue;
				take(m, a, bounded);
				assert_false(reported());
				take(m, b, bounded);
				if (reported() == may(first, second))
					fail_msg("%u, then %u", first, second);
				sh_unlock(&m->dev, b);
				sh_unlock(&m->dev, a);
			}
	mock_free(m);
}

/* The report names both locks, and what is wrong. */
static void test_names(void **state)
{
	struct mock *m = begin();

	(void)state;
	sh_qp_slot(&m->dev, 0, 0x41)->qpn = 0x41;
	sh_lock(&m->dev, lock_of(m, CQ, 0));
	sh_lock(&m->dev, lock_of(m, REQUESTER, 1));
	assert_int_equal(breaks, 1);
	assert_int_equal(last, ORDER_LATER);
	assert_string_equal(wanted, "the requester's lock of QP 0x41 of HCA 0");
	assert_string_equal(had, "the lock of CQ 0x60 of HCA 0");
	sh_lock(&m->dev, lock_of(m, EVQ, 1));
	assert_int_equal(breaks, 1);
	sh_lock(&m->dev, lock_of(m, EVQ, 0));
	assert_int_equal(breaks, 2);
	assert_string_equal(wanted, "the lock of event queue 7");
	assert_string_equal(had, "the lock of event queue 8");
	mock_free(m);
}

static void test_all_in_order(void **state)
{
	static const enum kind kinds[] = {REQUESTER, RESPONDER, SRQ, CQ, RECOVERY, EVQ};
	struct mock *m = begin();

	(void)state;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sh_lock(&m->dev, lock_of(m, kinds[i], 0));
	sh_lock(&m->dev, lock_of(m, EVQ, 1));
	assert_int_equal(breaks, 0);
	/* Once they are let go, in whatever order, they do not count. */
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sh_unlock(&m->dev, lock_of(m, kinds[i], 0));
	sh_unlock(&m->dev, lock_of(m, EVQ, 1));
	for (enum kind k = KINDS; k-- > 0;) {
		sh_lock(&m->dev, lock_of(m, k, 0));
		sh_unlock(&m->dev, lock_of(m, k, 0));
	}
	assert_int_equal(breaks, 0);
	mock_free(m);
}

/* ---- others ---- */

static void test_tries(void **state)
{
	struct mock *m = begin();

	(void)state;
	for (enum kind first = 0; first < KINDS; first++)
		for (enum kind second = 0; second < KINDS; second++) {
			struct sh_lock *a = lock_of(m, first, 0), *b = lock_of(m, second, 1);

			if (a == b)
				continue;
			sh_lock(&m->dev, a);
			assert_int_equal(sh_trylock(&m->dev, b), 0);
			if (reported() != never_two(first, second))
				fail_msg("%u, then %u", first, second);
			sh_unlock(&m->dev, b);
			sh_unlock(&m->dev, a);
		}
	/* The lock that it has got so is held like any other. */
	sh_lock(&m->dev, lock_of(m, CQ, 0));
	assert_int_equal(sh_trylock(&m->dev, lock_of(m, RESPONDER, 0)), 0);
	assert_false(reported());
	sh_unlock(&m->dev, lock_of(m, CQ, 0));
	sh_lock(&m->dev, lock_of(m, SRQ, 0));
	assert_false(reported());
	sh_unlock(&m->dev, lock_of(m, SRQ, 0));
	sh_lock(&m->dev, lock_of(m, REQUESTER, 0));
	assert_true(reported());
	mock_free(m);
}

/* It is tried under any lock, and nothing is taken under it. */
static void test_ending(void **state)
{
	struct mock *m = begin();

	(void)state;
	for (uint32_t slot = 0; slot < 2; slot++) {
		sh_lock(&m->dev, lock_of(m, EVQ, 0));
		assert_int_equal(sh_hold(&m->dev, ending_of(m, slot), SH_WAIT_NOT), 0);
		assert_false(reported());
		sh_unlock(&m->dev, lock_of(m, EVQ, 0));
		sh_lock(&m->dev, lock_of(m, EVQ, 1));
		assert_true(reported());
		sh_unlock(&m->dev, lock_of(m, EVQ, 1));
		sh_let_go(ending_of(m, slot));
	}
	assert_int_equal(sh_hold(&m->dev, ending_of(m, 0), SH_WAIT_BOUNDED), 0);
	assert_int_equal(last, ORDER_WAITS);
	mock_free(m);
}

static void test_its_own(void **state)
{
	struct mock *m = begin();

	(void)state;
	sh_lock(&m->dev, lock_of(m, SRQ, 0));
	assert_int_equal(sh_trylock(&m->dev, lock_of(m, SRQ, 0)), -EBUSY);
	assert_false(reported());
	/* A test that plays the daemon in the same thread means another one. */
	assert_int_equal(sh_lock_bounded(&m->daemon, lock_of(m, SRQ, 0)), -EBUSY);
	assert_false(reported());
	/* Without a bound it would wait for ever. */
	assert_int_equal(sh_lock_bounded(&m->dev, lock_of(m, SRQ, 0)), -EBUSY);
	assert_int_equal(breaks, 1);
	assert_int_equal(last, ORDER_OWN);
	mock_free(m);
}

/*
 * By code that is compiled without the check: nothing is known of that, nor what was known before.
 */
static void test_taken_unseen(void **state)
{
	struct mock *m = begin();
	struct sh_lock *lock = lock_of(m, SRQ, 0);

	(void)state;
	sh_lock(&m->dev, lock);
	sh_unlock(&m->dev, lock);
	__atomic_store_n(&lock->owner, sh_self_word(&m->dev), __ATOMIC_SEQ_CST);
	assert_int_equal(sh_lock_bounded(&m->dev, lock), -EBUSY);
	assert_int_equal(breaks, 0);
	mock_free(m);
}

static void test_unknown_place(void **state)
{
	struct mock *m = begin();
	struct sh_lock *lock = sh_at(&m->dev, m->dev.pool_off + 64);

	(void)state;
	sh_lock_init(lock);
	sh_lock(&m->dev, lock);
	assert_int_equal(breaks, 1);
	assert_int_equal(last, ORDER_NAMELESS);
	assert_string_equal(had, "");
	mock_free(m);
}

/* ---- threads that end ---- */

/* Dies with a transition of the CQ that raises an event, and has reported nothing. */
static void die_with_event(void *arg)
{
	struct mock *m = arg;
	struct sh_cq *cq = sh_cq_get(&m->dev, 0, 0x60);
	struct sh_txn_open t;

	sh_lock(&m->dev, lock_of(m, SRQ, 0));
	sh_lock(&m->dev, &cq->lock);
	sh_txn_begin(&t, &m->dev, &cq->txn, &cq->lock);
	sh_txn_comp_event(&t, 0, 0x60);
	__atomic_store_n(&cq->txn.commit, 1, __ATOMIC_RELEASE);
	if (breaks)
		_exit(1);
}

/* Recovery takes its own lock, then the event queue's. */
static void test_recovery(void **state)
{
	struct mock *m = begin();
	uint32_t ctx = mock_ctx(m, 0), evq = mock_evq(m, ctx, 16);
	struct sh_cq *cq = sh_cq_get(&m->dev, 0, 0x60);

	(void)state;
	cq->live = 1;
	cq->comp_evq = evq;
	mock_kill(mock_child(die_with_event, m));
	sh_lock(&m->dev, lock_of(m, REQUESTER, 0));
	sh_lock(&m->dev, &cq->lock);
	assert_int_equal(cq->txn.commit, 0);
	assert_int_equal(mock_records(m, evq), 1);
	assert_int_equal(breaks, 0);
	/* What was taken over is held. */
	sh_lock(&m->dev, lock_of(m, RESPONDER, 0));
	assert_true(reported());
	sh_unlock(&m->dev, lock_of(m, RESPONDER, 0));
	sh_lock(&m->dev, lock_of(m, SRQ, 0));
	assert_true(reported());
	mock_free(m);
}

static void test_next_life(void **state)
{
	struct mock *m = begin();

	(void)state;
	sh_lock(&m->dev, lock_of(m, CQ, 0));
	sh_exec_release();
	sh_lock(&m->dev, lock_of(m, REQUESTER, 0));
	assert_int_equal(breaks, 0);
	mock_free(m);
}

/* The memory of the one before is gone. */
static void test_next_instance(void **state)
{
	struct mock *m = begin(), *next;

	(void)state;
	sh_lock(&m->dev, lock_of(m, CQ, 0));
	next = begin();
	mock_free(m);
	sh_lock(&next->dev, lock_of(next, REQUESTER, 0));
	assert_int_equal(breaks, 0);
	mock_free(next);
}

static void test_forked(void **state)
{
	struct mock *m = begin();
	int status;
	pid_t pid;

	(void)state;
	sh_lock(&m->dev, lock_of(m, CQ, 0));
	pid = fork();
	if (!pid) {
		sh_lock(&m->dev, lock_of(m, REQUESTER, 0));
		_exit(breaks);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mock_free(m);
}

/* ---- the report ---- */

/*
 * Behind the call there is something left to do: else the compiler makes a jump of it, and the
 * caller is not seen.
 */
#define STAY __asm__ volatile("")

static __attribute__((noinline)) void takes_evq(struct mock *m)
{
	sh_lock(&m->dev, lock_of(m, EVQ, 0));
	STAY;
}

static __attribute__((noinline)) void takes_srq(struct mock *m)
{
	sh_lock(&m->dev, lock_of(m, SRQ, 0));
	STAY;
}

/*
 * The program as another test would be: a child breaks the order, and is killed as if nothing were.
 */
static int other_test(void)
{
	const struct rlimit none = {0};
	struct mock *m = begin();
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		takes_evq(m);
		takes_srq(m);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	mock_free(m);
	return 0;
}

static void assert_says(const char *text, const char *what)
{
	if (strstr(text, what))
		return;
	fputs(text, stderr);
	fail_msg("it does not say: %s", what);
}

static const char *program;

static void test_fails(void **state)
{
	char text[8192];
	size_t n;
	int status;
	FILE *f;

	(void)state;
	assert_int_equal(setenv("SELF", program, 1), 0);
	f = popen("\"$SELF\" other 2>&1", "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	status = pclose(f);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_says(text, "the lock of event queue 7 was taken here");
	assert_says(text, "the lock of SRQ 0x50 of HCA 0 is taken here");
	if (system("command -v addr2line >/dev/null"))
		return;
	assert_says(text, "takes_evq");
	assert_says(text, "takes_srq");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pairs, watch),
		cmocka_unit_test_setup(test_names, watch),
		cmocka_unit_test_setup(test_all_in_order, watch),
		cmocka_unit_test_setup(test_tries, watch),
		cmocka_unit_test_setup(test_ending, watch),
		cmocka_unit_test_setup(test_its_own, watch),
		cmocka_unit_test_setup(test_taken_unseen, watch),
		cmocka_unit_test_setup(test_unknown_place, watch),
		cmocka_unit_test_setup(test_recovery, watch),
		cmocka_unit_test_setup(test_next_life, watch),
		cmocka_unit_test_setup(test_next_instance, watch),
		cmocka_unit_test_setup(test_forked, watch),
		cmocka_unit_test_setup(test_fails, watch),
	};

	program = argv[0];
	if (argc > 1)
		return other_test();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
