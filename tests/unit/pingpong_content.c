// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the ping-pongs' check of contents accepts a message exactly as it was sent. It
 * notices every wrong bit, and every byte written beside the message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pingpong.h"

/* These replace the library's functions, so that the test needs no device. */
static struct ibv_mr fake_mr = {.lkey = 0x1234};

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	return &fake_mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return mr == &fake_mr ? 0 : EINVAL;
}

#define STREAM 0x80004c00123456ull

static struct pp_content make(uint32_t size, uint32_t headroom, bool verify)
{
	struct pp_options opt = PP_DEFAULTS;
	struct pp_content content = {};

	opt.size = size;
	opt.verify = verify;
	assert_int_equal(pp_content_init(&content, NULL, &opt, headroom, 2, 3, 8), 0);
	return content;
}

/* Carries send buffer SEND into a slot, as a device would, and returns the slot. */
static int carry(struct pp_content *content, int send)
{
	struct ibv_sge from, to;
	int slot = pp_take_slot(content);

	pp_send_sge(content, send, &from);
	pp_slot_sge(content, slot, &to);
	assert_int_equal(from.lkey, 0x1234);
	assert_int_equal(to.length, from.length + content->headroom);
	memset((void *)(uintptr_t)to.addr, 0x11, content->headroom);
	memcpy((char *)(uintptr_t)to.addr + content->headroom, (void *)(uintptr_t)from.addr,
	       from.length);
	return slot;
}

static const uint32_t sizes[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 4 << 20};

static void sent_messages_pass(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		struct pp_content content = make(sizes[s], 40, true);

		/* There are more messages than slots, so each slot is used again. */
		for (uint64_t iter = 0; iter < 20; iter++) {
			pp_write_message(&content, iter & 1, STREAM, iter);
			assert_int_equal(pp_check_message(&content, carry(&content, iter & 1),
							  STREAM, iter, sizes[s] + 40),
					 0);
		}
		assert_int_equal(content.verified, 20);
		assert_int_equal(pp_content_free(&content), 0);
	}
}

static void every_bit_counts(void **state)
{
	struct ibv_sge sge;

	(void)state;
	for (uint32_t bit = 0; bit < 8 * 33; bit++) {
		struct pp_content content = make(33, 0, true);
		int slot;

		pp_write_message(&content, 0, STREAM, 5);
		slot = carry(&content, 0);
		pp_slot_sge(&content, slot, &sge);
		((uint8_t *)(uintptr_t)sge.addr)[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(pp_check_message(&content, slot, STREAM, 5, 33), -EBADMSG);
		assert_int_equal(content.verified, 0);
		assert_int_equal(pp_content_free(&content), 0);
	}
}

static void bytes_beside_the_message_are_checked(void **state)
{
	static const int at[] = {-1, -64, 100 + 40, 100 + 40 + 63};
	struct ibv_sge sge;

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct pp_content content = make(100, 40, true);
		int slot;

		pp_write_message(&content, 0, STREAM, 0);
		slot = carry(&content, 0);
		pp_slot_sge(&content, slot, &sge);
		((uint8_t *)(uintptr_t)sge.addr)[at[i]] ^= 0x80;
		assert_int_equal(pp_check_message(&content, slot, STREAM, 0, 140), -EBADMSG);
		assert_int_equal(pp_content_free(&content), 0);
	}
}

static void other_messages_do_not_pass(void **state)
{
	(void)state;
	for (size_t s = 1; s < sizeof sizes / sizeof *sizes; s++) {
		struct pp_content content = make(sizes[s], 0, true);
		const uint32_t size = sizes[s];

		pp_write_message(&content, 0, STREAM, 7);
		assert_int_equal(pp_check_message(&content, carry(&content, 0), STREAM, 6, size),
				 -EBADMSG);
		assert_int_equal(
			pp_check_message(&content, carry(&content, 0), STREAM, 7, size - 1),
			-EBADMSG);
		if (size >= 64)
			assert_int_equal(
				pp_check_message(&content, carry(&content, 0), STREAM + 1, 7, size),
				-EBADMSG);
		assert_int_equal(pp_content_free(&content), 0);
	}
}

static void stale_memory_does_not_pass(void **state)
{
	(void)state;
	for (size_t s = 1; s < sizeof sizes / sizeof *sizes; s++) {
		struct pp_content content = make(sizes[s], 0, true);
		int slot;

		pp_write_message(&content, 0, STREAM, 3);
		slot = carry(&content, 0);
		assert_int_equal(pp_check_message(&content, slot, STREAM, 3, sizes[s]), 0);
		/* In no slot may the check find the old message in place of the next one. */
		for (int i = 0; i < content.slots; i++)
			assert_int_equal(pp_check_message(&content, pp_take_slot(&content), STREAM,
							  3, sizes[s]),
					 -EBADMSG);
		assert_int_equal(pp_content_free(&content), 0);
	}
}

static void consecutive_messages_differ_in_the_first_byte(void **state)
{
	struct pp_content content = make(64, 0, true);
	const uint8_t *message;
	struct ibv_sge sge;
	int last = 0;

	(void)state;
	pp_send_sge(&content, 0, &sge);
	message = (const uint8_t *)(uintptr_t)sge.addr;
	for (uint64_t iter = 0; iter < 1000; iter++) {
		pp_write_message(&content, 0, STREAM, iter);
		assert_int_not_equal(message[0], last);
		last = message[0];
		/* Bytes of a message are odd. Bytes of a slot that waits for a message are even. */
		for (int i = 0; i < 64; i++)
			assert_int_equal(message[i] & 1, 1);
	}
	assert_int_equal(pp_content_free(&content), 0);
}

static void memory_limits_the_number_of_slots(void **state)
{
	struct pp_content big = make(60 << 20, 0, true), small = make(1, 0, true),
			  plain = make(4096, 0, false);

	(void)state;
	assert_int_equal(pp_content_depth(&big, 500), 3);
	assert_int_equal(pp_content_depth(&small, 500), 8);
	assert_int_equal(pp_content_depth(&small, 2), 2);
	assert_int_equal(pp_content_depth(&plain, 500), 500);
	assert_int_equal(pp_content_free(&big), 0);
	assert_int_equal(pp_content_free(&small), 0);
	assert_int_equal(pp_content_free(&plain), 0);
}

static void unverified_messages_suit_later_generations(void **state)
{
	struct pp_content content = make(10000, 0, false);
	struct ibv_sge sge;
	const uint8_t *message;

	(void)state;
	pp_write_message(&content, 1, STREAM, 9);
	pp_send_sge(&content, 1, &sge);
	message = (const uint8_t *)(uintptr_t)sge.addr;
	assert_int_equal(message[0], 0);
	assert_int_equal(message[4096], 0);
	assert_int_equal(message[1], 0x7b);
	assert_int_equal(pp_check_message(&content, pp_take_slot(&content), STREAM, 9, 1), 0);
	assert_int_equal(content.verified, 0);
	assert_int_equal(pp_content_free(&content), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_messages_pass),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(bytes_beside_the_message_are_checked),
		cmocka_unit_test(other_messages_do_not_pass),
		cmocka_unit_test(stale_memory_does_not_pass),
		cmocka_unit_test(consecutive_messages_differ_in_the_first_byte),
		cmocka_unit_test(memory_limits_the_number_of_slots),
		cmocka_unit_test(unverified_messages_suit_later_generations),
	};

	/*
	 * The test provokes hundreds of failures, and what the tools print about them on standard
	 * error is of no interest. In TAP, cmocka prints failed tests on standard output.
	 */
	if (getenv("CMOCKA_MESSAGE_OUTPUT") && !freopen("/dev/null", "w", stderr))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
