// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: one thread at a time has a lock. The next thread gets it when its holder has
 * released it or has died, even if the dead holder's slot belongs to another thread by then.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca_mock.h"

/* An object with a lock. An SRQ slot serves as one. */
static struct sh_srq *object(struct mock *m)
{
	struct sh_srq *srq = (struct sh_srq *)sh_hca_table(&m->dev, 0, SH_HCA_SRQS) + 100;

	sh_lock_init(&srq->lock);
	return srq;
}

static void hold(void *arg)
{
	struct mock *m = arg;

	sh_lock(&m->dev, &object(m)->lock);
}

static void get_slot(void *arg)
{
	struct mock *m = arg;

	sh_exec_prepare(&m->dev);
}

static uint64_t slot_of(uint64_t owner)
{
	return owner & SH_OWNER_SLOT;
}

/* By the time another thread looks, the dead holder's slot belongs to a living thread. */
static void new_thread_in_a_slot_is_not_the_dead_holder(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	pid_t dead, heir;
	uint64_t owner;

	(void)state;
	dead = mock_child(hold, m);
	owner = o->lock.owner;
	assert_int_equal(sh_trylock(&m->dev, &o->lock), -EBUSY);
	mock_kill(dead);
	heir = mock_child(get_slot, m);
	assert_int_equal(
		((struct sh_exec *)sh_at(&m->dev, SH_EXEC_OFF))[slot_of(owner) - 1].generation,
		(owner >> SH_OWNER_GENERATION) + 1);
	assert_int_equal(
		pthread_mutex_trylock(
			&((struct sh_exec *)sh_at(&m->dev, SH_EXEC_OFF))[slot_of(owner) - 1].owner),
		EBUSY);
	assert_int_equal(o->lock.owner, owner);
	assert_int_equal(sh_trylock(&m->dev, &o->lock), 0);
	sh_unlock(&m->dev, &o->lock);
	assert_int_equal(o->lock.owner, 0);
	mock_kill(heir);
	assert_int_equal(m->shared->complaints, 0);
	mock_free(m);
}

/* The daemon has cleaned up after the dead process, and the next thread gets its slot. */
static void lock_is_free_after_the_daemon_cleaned_up(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);

	(void)state;
	mock_kill(mock_child(hold, m));
	sh_proc_gone(&m->daemon, 1, false);
	assert_int_equal(sh_lock_bounded(&m->daemon, &o->lock), 0);
	sh_unlock(&m->daemon, &o->lock);
	mock_free(m);
}

/*
 * Dies with more robust mutexes than the kernel goes through. The mutex of its slot is the oldest.
 */
static void hold_much(void *arg)
{
	enum { MANY = 2100 };
	static pthread_mutex_t mutex[MANY];
	struct mock *m = arg;
	struct sh_dev other = m->dev;
	pthread_mutexattr_t attr;

	other.proc = 2;
	if (!sh_enter(&other))
		_exit(1);
	sh_lock(&other, &object(m)->lock);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < MANY; i++)
		if (pthread_mutex_init(&mutex[i], &attr) || pthread_mutex_lock(&mutex[i]))
			_exit(1);
}

static void daemon_frees_what_the_kernel_leaves_locked(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	uint32_t ctx = mock_ctx(m, 0);

	(void)state;
	assert_int_equal(sh_mr_create(&m->daemon, 0, 0x1100, ctx, 4, 0, 100, 0), 0);
	mock_kill(mock_child(hold_much, m));
	/* fails if a later kernel goes through all mutexes */
	assert_int_equal(sh_trylock(&m->dev, &o->lock), -EBUSY);
	sh_proc_gone(&m->daemon, 2, false);
	assert_int_equal(sh_trylock(&m->dev, &o->lock), -EBUSY);
	sh_proc_gone(&m->daemon, 2, true);
	assert_int_equal(sh_trylock(&m->dev, &o->lock), 0);
	sh_unlock(&m->dev, &o->lock);
	assert_int_equal(o->lock.owner, 0);
	/* Nor does the daemon wait for the dead thread to leave the device. */
	assert_int_equal(sh_mr_destroy(&m->daemon, 0, 0x1100), 0);
	mock_free(m);
}

/* A child that was forked while its parent held the lock executes the unlock, too. */
static void only_the_holder_unlocks(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	uint64_t owner;
	int status;
	pid_t pid;

	(void)state;
	sh_lock(&m->dev, &o->lock);
	owner = o->lock.owner;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		sh_unlock(&m->dev, &o->lock);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(o->lock.owner, owner);
	sh_unlock(&m->dev, &o->lock);
	assert_int_equal(o->lock.owner, 0);
	mock_free(m);
}

/* Starts a child that takes the lock, releases it and ends. */
static pid_t taker(struct mock *m, struct sh_srq *o)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		sh_lock(&m->dev, &o->lock);
		sh_unlock(&m->dev, &o->lock);
		_exit(0);
	}
	return pid;
}

/* Returns whether the process sleeps. */
static bool sleeps(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/*
 * The thread that was woken has died, and a thread that had the lock meanwhile knew of no sleepers.
 */
static void sleeper_goes_on_without_its_wake_up(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	int status, i;
	uint64_t *word, mine;
	pid_t pid, got = 0;

	(void)state;
	word = &o->lock.owner;
	sh_lock(&m->dev, &o->lock);
	mine = *word;
	pid = taker(m, o);
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == mine || !sleeps(pid))
		usleep(100);
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	for (i = 0; i < 3000 && !got; i++) {
		usleep(10000);
		got = waitpid(pid, &status, WNOHANG);
	}
	if (!got) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	assert_int_equal(got, pid);
	assert_int_equal(status, 0);
	mock_free(m);
}

/* A process sleeps on the lock, and the holder dies without waking it. */
static void sleeper_gets_the_lock_of_a_dead_holder(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	pid_t holder, sleeper;
	int status;

	(void)state;
	holder = mock_child(hold, m);
	sleeper = taker(m, o);
	while (!(__atomic_load_n(&o->lock.owner, __ATOMIC_SEQ_CST) & SH_OWNER_SLEEPERS))
		usleep(100);
	mock_kill(holder);
	assert_int_equal(waitpid(sleeper, &status, 0), sleeper);
	assert_int_equal(status, 0);
	assert_int_equal(o->lock.owner, 0);
	mock_free(m);
}

/*
 * The kernel disarms a thread that sleeps. It can be thrown afterwards all the same, or others would wait for it
 * where it is stopped next.
 */
static void sleeper_is_armed_again(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	int status;
	pid_t pid;

	(void)state;
	sh_lock(&m->dev, &o->lock);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct sh_srq *other = o + 1;
		struct sh_door door;
		uint64_t kernels = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		sh_lock_init(&other->lock);
		sh_lock(&m->dev, &other->lock); /* which gives the thread its slot */
		sh_unlock(&m->dev, &other->lock);
		sh_self.cs = &kernels;
		sh_self.armed = &door;
		sh_lock(&m->dev, &o->lock);
		_exit(kernels != (uintptr_t)&door);
	}
	while (!(__atomic_load_n(&o->lock.owner, __ATOMIC_SEQ_CST) & SH_OWNER_SLEEPERS) ||
	       !sleeps(pid))
		usleep(100);
	sh_unlock(&m->dev, &o->lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mock_free(m);
}

/* ---- threads that find no slot ---- */

struct hog {
	struct mock *m;
	pthread_barrier_t both;
};

/* Takes every slot that a thread can have for itself. */
static void *take_all(void *arg)
{
	struct hog *h = arg;
	struct sh_exec *e = sh_at(&h->m->dev, SH_EXEC_OFF);

	for (unsigned int i = 0; i < SH_MAX_EXEC - 1; i++)
		pthread_mutex_lock(&e[i].owner);
	pthread_barrier_wait(&h->both);
	pthread_barrier_wait(&h->both);
	for (unsigned int i = 0; i < SH_MAX_EXEC - 1; i++)
		pthread_mutex_unlock(&e[i].owner);
	return NULL;
}

static void enter_and_hold(void *arg)
{
	struct mock *m = arg;

	if (!sh_enter(&m->dev))
		_exit(1);
	hold(m);
}

static void without_a_slot_one_at_a_time(void **state)
{
	struct hog h = {.m = mock_new(NULL)};
	struct mock *m = h.m;
	struct sh_srq *o = object(m);
	pthread_t hog;

	(void)state;
	sh_exec_release();
	pthread_barrier_init(&h.both, NULL, 2);
	assert_int_equal(pthread_create(&hog, NULL, take_all, &h), 0);
	pthread_barrier_wait(&h.both);

	/* A thread without a slot that is not in device code has no name to put into a lock. */
	assert_int_equal(sh_trylock(&m->dev, &o->lock), -EBUSY);
	assert_int_equal(sh_lock_bounded(&m->daemon, &o->lock), -EBUSY);
	assert_int_equal(o->lock.owner, 0);
	assert_true(sh_enter(&m->dev));
	sh_lock(&m->dev, &o->lock);
	assert_int_equal(slot_of(o->lock.owner), SH_MAX_EXEC);
	sh_unlock(&m->dev, &o->lock);
	sh_leave(&m->dev);
	assert_int_equal(sh_trylock(&m->dev, &o->lock), -EBUSY);

	/*
	 * A thread dies inside. The next thread has the same slot, and is not taken for the dead
	 * one.
	 */
	mock_kill(mock_child(enter_and_hold, m));
	assert_int_equal(slot_of(o->lock.owner), SH_MAX_EXEC);
	assert_true(sh_enter(&m->dev));
	sh_lock(&m->dev, &o->lock);
	sh_unlock(&m->dev, &o->lock);
	sh_leave(&m->dev);

	pthread_barrier_wait(&h.both);
	assert_int_equal(pthread_join(hog, NULL), 0);
	pthread_barrier_destroy(&h.both);
	assert_int_equal(sh_trylock(&m->dev, &o->lock), 0);
	sh_unlock(&m->dev, &o->lock);
	mock_free(m);
}

/* ---- many ---- */

enum { COUNTERS = 4, ROUNDS = 20000 };

static void *count(void *arg)
{
	struct mock *m = arg;
	struct sh_srq *o = object(m);

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t seen;

		sh_lock(&m->dev, &o->lock);
		seen = *(volatile uint32_t *)&o->pdn;
		if (!(i & 0xff))
			usleep(1); /* so that the others have time to fall asleep */
		*(volatile uint32_t *)&o->pdn = seen + 1;
		sh_unlock(&m->dev, &o->lock);
	}
	return NULL;
}

/* Threads of this process and of another one count. No increment is lost or doubled. */
static void one_at_a_time(void **state)
{
	struct mock *m = mock_new(NULL);
	struct sh_srq *o = object(m);
	pthread_t t[COUNTERS];
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	for (int i = 0; i < COUNTERS / 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, m), 0);
	for (int i = 0; i < COUNTERS / 2; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(o->pdn, COUNTERS * ROUNDS);
	assert_int_equal(o->lock.owner, 0);
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_thread_in_a_slot_is_not_the_dead_holder),
		cmocka_unit_test(lock_is_free_after_the_daemon_cleaned_up),
		cmocka_unit_test(daemon_frees_what_the_kernel_leaves_locked),
		cmocka_unit_test(only_the_holder_unlocks),
		cmocka_unit_test(sleeper_goes_on_without_its_wake_up),
		cmocka_unit_test(sleeper_gets_the_lock_of_a_dead_holder),
		cmocka_unit_test(sleeper_is_armed_again),
		cmocka_unit_test(without_a_slot_one_at_a_time),
		cmocka_unit_test(one_at_a_time),
	};

	alarm(300); /* a lock that no thread gets is a failure too */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
