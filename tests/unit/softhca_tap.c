// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the tap, which takes copies of packets. Records come out as they went in, round the
 * end of the ring, too. What does not fit is counted, and no sender waits. A sender that is killed
 * after any instruction, or stands still in the middle of a record, leaves a ring that others can
 * use, in which no slot is lost.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/lock.h"
#include "softhca/device/memory/tap.h"
#include "softhca_mock.h"
#include "softhca_step.h"

#define PATIENCE 1000

static struct mock *m;
static struct sh_tap_reader reader;
static struct sh_tapped got;
static unsigned char payload[SH_TAP_PAYLOAD];
static uint64_t now;

static void open_tap(void)
{
	m = mock_new(NULL);
	assert_int_equal(sh_tap_begin(&m->daemon, SH_TAP_PAYLOAD, SH_TAP_ANY, SH_TAP_ANY), 0);
	sh_tap_open(&reader, sh_tap(&m->dev), (struct sh_exec *)sh_at(&m->dev, SH_EXEC_OFF));
	now = 1;
}

/* A record whose every byte follows from its PSN. False: there was no room. */
static bool put(uint32_t psn, uint32_t len)
{
	struct sh_tapped *t = sh_tap_take(&m->dev, len);
	struct sh_seg seg[2];
	uint32_t at = 0;

	if (!t)
		return false;
	t->len = (uint16_t)len;
	t->psn = psn;
	t->when = psn;
	for (unsigned int i = 0, n = sh_tap_payload(&m->dev, t, seg); i < n; i++)
		for (uint64_t k = 0; k < seg[i].len; k++)
			((unsigned char *)(uintptr_t)seg[i].addr)[k] = (unsigned char)(psn + at++);
	assert_int_equal(at, len);
	sh_tap_put(&m->dev, t);
	return true;
}

static bool next(void)
{
	return sh_tap_next(&reader, now, PATIENCE, &got, payload);
}

static void is_right(void)
{
	assert_int_equal(got.have, got.len);
	for (uint32_t i = 0; i < got.have; i++)
		assert_int_equal(payload[i], (unsigned char)(got.psn + i));
}

static void there_and_back(void **state)
{
	uint32_t written = 0, read = 0;

	(void)state;
	open_tap();
	assert_true(sh_enter(&m->dev));
	/* Three times round the ring, with records of all sizes. */
	while (reader.at < 3 * (uint64_t)SH_TAP_SLOTS) {
		for (unsigned int i = 0; i < 37; i++, written++)
			assert_true(put(written, written * 331 % (SH_TAP_PAYLOAD + 1)));
		for (; next(); read++) {
			assert_int_equal(got.psn, read);
			assert_int_equal(got.len, read * 331 % (SH_TAP_PAYLOAD + 1));
			is_right();
		}
		assert_int_equal(read, written);
	}
	assert_int_equal(reader.tap->lost, 0);
	sh_leave(&m->dev);
	mock_free(m);
}

static void full(void **state)
{
	uint32_t n = 0, more;

	(void)state;
	open_tap();
	assert_true(sh_enter(&m->dev));
	while (put(n, 0))
		n++;
	assert_int_equal(n, SH_TAP_SLOTS);
	assert_int_equal(reader.tap->lost, 1);
	assert_false(put(0, SH_TAP_PAYLOAD));
	assert_int_equal(reader.tap->lost, 2);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(next());
		assert_int_equal(got.psn, i);
	}
	assert_false(next());
	for (more = 0; put(more, SH_TAP_PAYLOAD); more++)
		;
	assert_int_equal(more, SH_TAP_SLOTS / SH_TAP_LARGEST);
	for (uint32_t i = 0; i < more; i++) {
		assert_true(next());
		is_right();
	}
	sh_leave(&m->dev);
	mock_free(m);
}

/* A record that is given up takes no room. Records of an earlier capture are nobody's. */
static void given_up(void **state)
{
	struct sh_tapped *t;

	(void)state;
	open_tap();
	assert_true(sh_enter(&m->dev));
	t = sh_tap_take(&m->dev, 1000);
	assert_non_null(t);
	assert_true(put(1, 3000));
	sh_tap_drop(&m->dev, t);
	assert_true(next());
	assert_int_equal(got.psn, 1);
	is_right();
	assert_false(next());
	assert_true(put(2, 10));
	assert_int_equal(sh_tap_begin(&m->daemon, 0, SH_TAP_ANY, SH_TAP_ANY), 0);
	sh_tap_open(&reader, sh_tap(&m->dev), reader.exec);
	assert_true(put(3, 20));
	assert_true(next());
	assert_int_equal(got.psn, 3);
	assert_false(next());
	assert_false(sh_tap_late(&reader, &got, payload));
	assert_int_equal(reader.tap->owner[1], 0);
	sh_leave(&m->dev);
	mock_free(m);
}

/*
 * A record that is none: its numbers lead nowhere, its slots become free, and the next one comes.
 */
static void scribbled(void **state)
{
	static const struct {
		uint32_t have, slots;
	} wrong[] = {
		/* What the slots of the largest record hold, and is longer than a payload. */
		{SH_TAP_PAYLOAD + 1, SH_TAP_LARGEST},
		{4100, 17},
		{SH_TAP_LARGEST * SH_TAP_SLOT - sizeof(struct sh_tapped), SH_TAP_LARGEST},
		{SH_TAP_LARGEST * SH_TAP_SLOT, SH_TAP_LARGEST + 1},
		{UINT16_MAX, SH_TAP_COUNT_MASK},
		{SH_TAP_PAYLOAD, 1},
		{0, 0},
	};
	struct {
		unsigned char payload[SH_TAP_PAYLOAD], behind[128];
	} out;
	struct sh_tap *tap;

	(void)state;
	open_tap();
	tap = reader.tap;
	assert_true(sh_enter(&m->dev));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint32_t slot = reader.at % SH_TAP_SLOTS;

		memset(&out, 0x5a, sizeof(out));
		assert_true(put(1, SH_TAP_PAYLOAD));
		((struct sh_tapped *)tap->slot[slot])->have = (uint16_t)wrong[i].have;
		tap->owner[slot] = sh_self_word(&m->dev) | SH_TAP_READY |
				   (uint64_t)wrong[i].slots << SH_TAP_COUNT_SHIFT;
		assert_true(put(2, 100));
		/* What it has left of its slots is passed over. */
		while (!sh_tap_next(&reader, now, PATIENCE, &got, out.payload))
			now += PATIENCE;
		assert_int_equal(got.psn, 2);
		assert_int_equal(reader.damaged, i + 1);
		for (uint32_t k = 0; k < sizeof(out.behind); k++)
			assert_int_equal(out.behind[k], 0x5a);
	}
	sh_leave(&m->dev);
	mock_free(m);
}

/* Nobody waits for a sender that stands still; its record comes when it goes on. */
static void stands_still(void **state)
{
	struct sh_tapped *slow;

	(void)state;
	open_tap();
	assert_true(sh_enter(&m->dev));
	slow = sh_tap_take(&m->dev, 1000);
	assert_non_null(slow);
	slow->len = 1000;
	slow->psn = 7;
	assert_true(put(1, 100));
	assert_false(next());
	now += PATIENCE - 1;
	assert_false(next());
	now++;
	assert_true(next());
	assert_int_equal(got.psn, 1);
	/* Others go round it, and lose at most what would have been in its slots. */
	for (uint32_t i = 0; i < 3 * SH_TAP_SLOTS; i++) {
		(void)put(i, 100);
		now += PATIENCE + 1;
		while (next())
			is_right();
	}
	assert_in_range(reader.tap->lost, 1, 3 * SH_TAP_LARGEST);
	sh_tap_put(&m->dev, slow);
	while (sh_tap_late(&reader, &got, payload))
		if (got.psn == 7)
			slow = NULL;
	assert_null(slow);
	for (uint32_t i = 0; i < SH_TAP_SLOTS; i++)
		assert_int_equal(reader.tap->owner[i], 0);
	sh_leave(&m->dev);
	mock_free(m);
}

/* ---- killed ---- */

static pid_t child(void (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		m->dev.proc = 5;
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGTRAP))
			_exit(1);
		what();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void victim(void)
{
	struct sh_tapped *t;

	if (!sh_enter(&m->dev))
		_exit(1);
	/* From here on it is stopped after each instruction. */
	raise(SIGTRAP);
	t = sh_tap_take(&m->dev, 600);
	if (!t)
		_exit(1);
	t->len = 600;
	t->psn = 9;
	sh_tap_put(&m->dev, t);
	raise(SIGTRAP);
}

/* Fills the ring, and sees that each slot is free for that. */
static void survivor(void)
{
	uint32_t n = 0;

	if (!sh_enter(&m->dev))
		_exit(1);
	while (put(n, 0))
		n++;
	if (n != SH_TAP_SLOTS)
		_exit(2);
	_exit(0);
}

static bool in_raise(pid_t pid)
{
	siginfo_t info;

	return !ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) && info.si_code <= 0;
}

/* Takes out what there is, and waits in vain for the rest. */
static unsigned int drain(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 2; i++, now += PATIENCE)
		while (next()) {
			assert_int_equal(got.psn, 9);
			n++;
		}
	while (sh_tap_late(&reader, &got, payload))
		n++;
	assert_false(next());
	return n;
}

static void killed(void **state)
{
	unsigned int steps = 0, deaths = 0, seen = 0;
	bool ended = false;
	int status;
	pid_t pid;

	(void)state;
	open_tap();
	for (; !ended; steps += 3, deaths++) {
		pid = child(victim);
		assert_true(until_trap(pid, PTRACE_CONT));
		for (unsigned int i = 0; i < steps && !ended; i++)
			ended = !until_trap(pid, PTRACE_SINGLESTEP) || (i > 20 && in_raise(pid));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		sh_proc_gone(&m->daemon, 5, true);
		seen += drain();
		for (uint32_t i = 0; i < SH_TAP_SLOTS; i++)
			assert_int_equal(reader.tap->owner[i], 0);
	}
	print_message("# killed at %u places, the record was ready at %u of them\n", deaths, seen);
	assert_true(deaths > 20 && seen > 0 && seen < deaths);
	pid = child(survivor);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < SH_TAP_SLOTS; i++)
		assert_true(next());
	mock_free(m);
}

/*
 * A sender is stopped after any instruction, and others fill and empty the ring meanwhile. There is
 * room, so nothing is lost.
 */
static void overtaken(void **state)
{
	bool ended = false, seen;
	unsigned int steps = 0;
	int status;
	pid_t pid;

	(void)state;
	open_tap();
	for (; !ended; steps += 3) {
		pid = child(victim);
		assert_true(until_trap(pid, PTRACE_CONT));
		for (unsigned int i = 0; i < steps && !ended; i++)
			ended = !until_trap(pid, PTRACE_SINGLESTEP) || (i > 20 && in_raise(pid));
		assert_true(sh_enter(&m->dev));
		for (uint32_t i = 0; i < 3; i++)
			assert_true(put(i, SH_TAP_PAYLOAD));
		sh_leave(&m->dev);
		seen = false;
		for (unsigned int i = 0; i < 2; i++, now += PATIENCE)
			while (next())
				seen |= got.psn == 9;
		if (!ended) {
			assert_true(until_trap(pid, PTRACE_CONT));
			assert_false(until_trap(pid, PTRACE_CONT));
		} else {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
		}
		sh_proc_gone(&m->daemon, 5, true);
		while (next() || sh_tap_late(&reader, &got, payload))
			seen |= got.psn == 9;
		assert_true(seen);
		assert_int_equal(reader.tap->lost, 0);
	}
	print_message("# overtaken at %u places\n", steps / 3);
	assert_true(steps > 60);
	mock_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back), cmocka_unit_test(full),
		cmocka_unit_test(given_up),	  cmocka_unit_test(stands_still),
		cmocka_unit_test(scribbled),	  cmocka_unit_test(killed),
		cmocka_unit_test(overtaken),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
