// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: uverbs between two other rooms. What is one room's reaches that room alone, and what
 * one room leaves for another try keeps no other from its part.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/uverbs/room.h"
#include "softhca_kernel.h"

static struct {
	int silenced, ready;
	uint32_t value;
	bool busy; /* it has QPs that are not silent yet */
} first, last;

static int first_silence(struct kernel *k, uint32_t hca)
{
	(void)k;
	(void)hca;
	first.silenced++;
	return first.busy ? -EINPROGRESS : 0;
}

static int last_silence(struct kernel *k, uint32_t hca)
{
	(void)k;
	(void)hca;
	last.silenced++;
	return 0;
}

static void first_ready(struct kernel *k, uint32_t value)
{
	(void)k;
	first.ready++;
	first.value = value;
}

static void last_ready(struct kernel *k, uint32_t value)
{
	(void)k;
	last.ready++;
	last.value = value;
}

static const struct room first_room = {.silence = first_silence, .ready = first_ready};
static const struct room last_room = {.silence = last_silence, .ready = last_ready};
const struct room *const rooms[] = {&first_room, &uverbs_room, &last_room, NULL};

static void one_loud_room_stops_no_other(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct sh_port_msg m = {.port = 1, .what = SH_PORT_FATAL};
	struct sh_status st;

	(void)state;
	first.busy = true;
	assert_true(port_change(&t->k, &m, true, &st));
	assert_int_equal(st.error, 0);
	assert_int_equal(last.silenced, 1);
	assert_int_equal(t->k.loud, 1);
	assert_true(t->k.hcas[0].loud);
	first.busy = false;
	hcas_retry(&t->k);
	assert_int_equal(t->k.loud, 0);
	assert_int_equal(first.silenced, 2);
	assert_int_equal(last.silenced, 2);
	kt_stop(t);
}

static void a_descriptor_has_one_owner(void **state)
{
	struct kt *t = kt_start(SH_FACE_MAINLINE, 1, 1);
	struct server s = {.k = &t->k, .again = -1};

	(void)state;
	server_serve(&s, server_room_event(&last_room, 7));
	assert_int_equal(last.ready, 1);
	assert_int_equal(last.value, 7);
	assert_int_equal(first.ready, 0);
	server_serve(&s, server_room_event(&first_room, 8));
	assert_int_equal(first.value, 8);
	assert_int_equal(last.ready, 1);
	/* A queue that does not exist. */
	server_serve(&s, server_room_event(&uverbs_room, 9));
	assert_int_equal(first.ready + last.ready, 2);
	kt_stop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_loud_room_stops_no_other),
		cmocka_unit_test(a_descriptor_has_one_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
