// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: event records are counted when they are written, and spilled when the pipe is full.
 * A record that is lost is not counted. An object's records end with the object.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca_mock.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/cq.h"

#define CQN 130

struct fixture {
	struct mock *m;
	uint32_t ctx, evq, async;
	struct sh_cq *cq[2];
};

static void fixture_open(struct fixture *f)
{
	struct sh_cq_init init = {0};
	int i;

	f->m = mock_new(NULL);
	f->ctx = mock_ctx(f->m, 0);
	f->evq = mock_evq(f->m, f->ctx, 8);
	f->async = sh_ctx(&f->m->dev, f->ctx)->async_evq;
	init.ctx = f->ctx;
	init.log_size = 4;
	init.comp_evq = f->evq;
	for (i = 0; i < 2; i++) {
		init.user_handle = 0x5550 + (uint64_t)i;
		init.buf = mock_umem(f->m, f->ctx, 512, true);
		init.db = mock_umem(f->m, f->ctx, 8, true);
		assert_int_equal(sh_cq_create(&f->m->daemon, 0, CQN + i, &init), 0);
		f->cq[i] = sh_cq_get(&f->m->dev, 0, CQN + i);
	}
}

static void spills_and_catches_up_in_order(void **state)
{
	struct fixture f;
	unsigned int i;

	(void)state;
	fixture_open(&f);
	f.m->shared->room = 3;
	for (i = 0; i < 10; i++)
		sh_comp_event(&f.m->dev, 0, CQN + i % 2);
	assert_int_equal(mock_records(f.m, f.evq), 3);
	assert_int_equal(f.cq[0]->comp_events + f.cq[1]->comp_events, 10);
	assert_int_equal(sh_evq_spilled(&f.m->daemon, 0), f.evq);
	assert_int_equal(sh_evq_spilled(&f.m->daemon, f.evq), f.evq);
	assert_int_equal(sh_evq_spilled(&f.m->daemon, f.evq + 1), 0);
	assert_true(f.m->shared->wakes[0] > 0);
	/* The pipe has room again, but a new record does not overtake the spilled ones. */
	f.m->shared->room = 100;
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 3);
	f.m->shared->room = 2;
	assert_int_equal(sh_evq_flush(&f.m->daemon, f.evq), 6);
	assert_int_equal(sh_evq_spilled(&f.m->daemon, 0), f.evq);
	f.m->shared->room = 100;
	assert_int_equal(sh_evq_flush(&f.m->daemon, f.evq), 0);
	assert_int_equal(sh_evq_spilled(&f.m->daemon, 0), 0);
	assert_int_equal(mock_records(f.m, f.evq), 11);
	for (i = 0; i < 11; i++)
		assert_int_equal(mock_record(f.m, f.evq, i)->element, 0x5550 + i % 2);
	mock_free(f.m);
}

static void lost_records_are_not_counted(void **state)
{
	uint32_t comp, async;
	struct fixture f;
	unsigned int i;

	(void)state;
	fixture_open(&f);
	f.m->shared->room = 1;
	for (i = 0; i < SH_EVQ_SPILL + 5; i++)
		sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(f.cq[0]->comp_events, SH_EVQ_SPILL + 1);
	assert_int_equal(sh_evq(&f.m->dev, f.evq)->lost, 4);
	/* After the CQ is destroyed, only the record in the pipe counts as written. */
	assert_int_equal(sh_cq_destroy(&f.m->daemon, 0, CQN, &comp, &async), 0);
	assert_int_equal(comp, 1);
	assert_int_equal(sh_evq(&f.m->dev, f.evq)->spilled, 0);
	mock_free(f.m);
}

static void the_end_of_a_cq_leaves_other_records(void **state)
{
	uint32_t comp, async;
	struct fixture f;
	unsigned int i;

	(void)state;
	fixture_open(&f);
	f.m->shared->room = 0;
	for (i = 0; i < 6; i++) {
		sh_comp_event(&f.m->dev, 0, CQN + i % 2);
		sh_affiliated_event(&f.m->dev, 0, 0, CQN + i % 2);
	}
	assert_int_equal(sh_async_event(&f.m->dev, f.ctx, 1, 10), 0);
	assert_int_equal(sh_cq_destroy(&f.m->daemon, 0, CQN, &comp, &async), 0);
	assert_int_equal(comp, 0);
	assert_int_equal(async, 0);
	f.m->shared->room = 100;
	assert_int_equal(sh_evq_flush(&f.m->daemon, f.evq), 0);
	assert_int_equal(sh_evq_flush(&f.m->daemon, f.async), 0);
	assert_int_equal(mock_records(f.m, f.evq), 3);
	assert_int_equal(mock_records(f.m, f.async), 4);
	assert_int_equal(mock_record(f.m, f.async, 3)->type, 10);
	assert_int_equal(mock_record(f.m, f.async, 3)->element, 1);
	for (i = 0; i < 3; i++) {
		assert_int_equal(mock_record(f.m, f.evq, i)->element, 0x5551);
		assert_int_equal(mock_record(f.m, f.async, i)->element, 0x5551);
	}
	/* Late events for the destroyed CQ are dropped. */
	sh_comp_event(&f.m->dev, 0, CQN);
	sh_affiliated_event(&f.m->dev, 0, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 3);
	assert_int_equal(mock_records(f.m, f.async), 4);
	mock_free(f.m);
}

static void unknown_addressees_are_ignored(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f);
	sh_comp_event(&f.m->dev, 0, 9999);
	sh_comp_event(&f.m->dev, 7, CQN);
	sh_comp_event(&f.m->dev, 0, UINT32_MAX);
	sh_affiliated_event(&f.m->dev, 0, 14, 9999);
	assert_int_equal(sh_async_event(&f.m->dev, 0, 1, 10), -EINVAL);
	assert_int_equal(sh_async_event(&f.m->dev, SH_MAX_CTX, 1, 10), -EINVAL);
	assert_int_equal(sh_async_event(&f.m->dev, 1234, 1, 10), 0);
	f.cq[0]->comp_evq = 0xffffffff;
	sh_comp_event(&f.m->dev, 0, CQN);
	f.cq[0]->comp_evq = f.evq + 50; /* never made */
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(f.m->shared->nrecords, 0);
	assert_int_equal(sh_evq_flush(&f.m->daemon, f.evq + 50), 0);
	/* The slot of the event queue has been freed. */
	f.cq[0]->comp_evq = f.evq;
	assert_int_equal(sh_evq_init(&f.m->daemon, f.evq, f.ctx, 8, 0), 0);
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(f.m->shared->nrecords, 0);
	assert_int_equal(sh_evq_init(&f.m->daemon, f.evq, f.ctx, 12, 1), -EINVAL);
	mock_free(f.m);
}

static void damage_is_repaired_or_refused(void **state)
{
	struct fixture f;
	struct sh_evq *q;

	(void)state;
	fixture_open(&f);
	q = sh_evq(&f.m->dev, f.evq);
	q->spilled = 100000;
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 1);
	q->flight_off = 12345678901234;
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 2);
	q->flight_off = 8; /* the header */
	sh_comp_event(&f.m->dev, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 3);
	assert_int_equal(f.m->shared->complaints, 3);
	mock_free(f.m);
}

static void a_record_in_flight_is_settled_once(void **state)
{
	struct fixture f;
	struct sh_evq *q;

	(void)state;
	fixture_open(&f);
	q = sh_evq(&f.m->dev, f.evq);
	q->flight_count = 5;
	q->flight_spilled = 0;
	q->flight_off = (uint64_t)((char *)&f.cq[0]->comp_events - (char *)f.m->inst);
	f.cq[0]->comp_events = 6;
	assert_int_equal(sh_evq_hold(&f.m->daemon, f.evq), 0);
	sh_evq_release(&f.m->daemon, f.evq);
	assert_int_equal(f.cq[0]->comp_events, 5);
	f.cq[0]->comp_events = 9;
	assert_int_equal(sh_evq_hold(&f.m->daemon, f.evq), 0);
	sh_evq_release(&f.m->daemon, f.evq);
	assert_int_equal(f.cq[0]->comp_events, 9);
	mock_free(f.m);
}

/* A thread that has counted the sixth completion event was thrown. Returns what the counter says when that is settled. */
static uint32_t settled(struct fixture *f, bool piped, bool tells)
{
	struct sh_evq *q = sh_evq(&f->m->dev, f->evq);

	q->tells = tells;
	q->flight_piped = piped;
	q->flight_count = 5;
	q->flight_log = 0;
	q->flight_off = (uint64_t)((char *)&f->cq[0]->comp_events - (char *)f->m->inst);
	f->cq[0]->comp_events = 6;
	assert_int_equal(sh_evq_hold(&f->m->daemon, f->evq), 0);
	sh_evq_release(&f->m->daemon, f->evq);
	assert_int_equal(q->flight_off, 0);
	return f->cq[0]->comp_events;
}

static void a_record_that_was_written_counts(void **state)
{
	struct fixture f;
	uint32_t wakes;

	(void)state;
	fixture_open(&f);
	/* The mock says that a record was written since event_begin() was called. */
	f.m->shared->room = 3;
	sh_comp_event(&f.m->dev, 0, CQN + 1);
	wakes = f.m->shared->wakes[0];
	assert_int_equal(settled(&f, true, true), 6);
	/* That was an older record: this one was not to go into the pipe. */
	assert_int_equal(settled(&f, false, true), 5);
	/* Nobody knows: one record too many is allowed. */
	assert_int_equal(settled(&f, true, false), 5);
	assert_int_equal(f.m->shared->wakes[0], wakes);
	mock_free(f.m);
}

/* The thread has put the record into the spill, and has not told the daemon. */
static void a_record_that_was_spilled_counts(void **state)
{
	struct fixture f;
	struct sh_evq *q;
	uint32_t wakes, attention;

	(void)state;
	fixture_open(&f);
	f.m->shared->room = 0;
	sh_comp_event(&f.m->dev, 0, CQN + 1);
	q = sh_evq(&f.m->dev, f.evq);
	assert_int_equal(q->spilled, 1);
	wakes = f.m->shared->wakes[0];
	attention = sh_proc(&f.m->dev, 0)->attention;
	q->flight_spilled = 0;
	assert_int_equal(settled(&f, false, true), 6);
	assert_true(f.m->shared->wakes[0] > wakes);
	assert_int_not_equal(sh_proc(&f.m->dev, 0)->attention, attention);
	/* The spill has another one. */
	q->flight_spilled = 1;
	assert_int_equal(settled(&f, false, true), 5);
	mock_free(f.m);
}

/*
 * A client keeps the queue's lock. The daemon does not wait: it writes the record later, and none
 * is missing.
 */
static void the_daemon_does_not_wait(void **state)
{
	int hello[2], bye[2], status;
	struct fixture f;
	char c;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	assert_int_equal(pipe(hello), 0);
	assert_int_equal(pipe(bye), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves no child behind */
		sh_lock(&f.m->dev, &sh_evq(&f.m->dev, f.evq)->lock);
		if (write(hello[1], "x", 1) != 1 || read(bye[0], &c, 1) != 1)
			_exit(1);
		sh_unlock(&f.m->dev, &sh_evq(&f.m->dev, f.evq)->lock);
		_exit(0);
	}
	assert_int_equal(read(hello[0], &c, 1), 1);
	sh_comp_event(&f.m->daemon, 0, CQN);
	assert_int_equal(mock_records(f.m, f.evq), 0);
	assert_int_equal(f.m->ndefers, 1);
	assert_int_equal(write(bye[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mock_advance(f.m, 1000000000);
	assert_int_equal(mock_records(f.m, f.evq), 1);
	assert_int_equal(f.cq[0]->comp_events, 1);
	close(hello[0]);
	close(hello[1]);
	close(bye[0]);
	close(bye[1]);
	mock_free(f.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spills_and_catches_up_in_order),
		cmocka_unit_test(lost_records_are_not_counted),
		cmocka_unit_test(the_end_of_a_cq_leaves_other_records),
		cmocka_unit_test(unknown_addressees_are_ignored),
		cmocka_unit_test(damage_is_repaired_or_refused),
		cmocka_unit_test(a_record_in_flight_is_settled_once),
		cmocka_unit_test(a_record_that_was_written_counts),
		cmocka_unit_test(a_record_that_was_spilled_counts),
		cmocka_unit_test(the_daemon_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
