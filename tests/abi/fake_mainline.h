// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A mainline kernel behind the fake device file, with as much as XRC needs: it has the commands
 * under mainline's numbers, gives out handles, and keeps a copy of each command. All of its state
 * is in struct mainline.
 */
#ifndef FAKE_MAINLINE_H
#define FAKE_MAINLINE_H

#include "cmd.h"

#include <pthread.h>

enum {
	QUERY_QP = 25,
	CREATE_QP = 24,
	MODIFY_QP = 26,
	DESTROY_QP = 27,
	DESTROY_SRQ = 35,
	OPEN_XRCD = 37,
	CLOSE_XRCD = 38,
	CREATE_XSRQ = 39,
	OPEN_QP = 40,
	PROBE_1 = 40,
	PROBE_2 = 44
};

enum { MAX_COMMANDS = 32 };

static struct mainline {
	int probe_1, probe_2; /* errnos; 0: success */
	unsigned int probes;
	int refuse_number, refuse; /* what the next command of a number gets */

	/* Commands that are not probes. */
	unsigned int commands;
	int number[MAX_COMMANDS];
	uint8_t bytes[MAX_COMMANDS][128];
	size_t len[MAX_COMMANDS];

	uint32_t next_handle;
	uint32_t qpn; /* that the next CREATE_QP gives */
	int open_qps; /* handles of target QPs */
} mainline;

static void mainline_answer(size_t offset, uint32_t value)
{
	field_put(fake.response, offset, 4, value);
	if (fake.response_len < offset + 4)
		fake.response_len = offset + 4;
}

static void mainline_note(int number)
{
	unsigned int i = mainline.commands++ % MAX_COMMANDS;

	mainline.number[i] = number;
	mainline.len[i] = fake.command_len;
	memcpy(mainline.bytes[i], fake.command, sizeof(mainline.bytes[i]));
}

static void mainline_obey(void)
{
	int number = field_get(fake.command, 0, 4);
	int probe = fake.command_len == 56 && field_get(fake.command, 24, 4) == 0xffffffff;

	fake.response_len = 0;
	memset(fake.response, 0, sizeof(fake.response));

	if (probe && (number == PROBE_1 || number == PROBE_2)) {
		++mainline.probes;
		fake.refuse = number == PROBE_1 ? mainline.probe_1 : mainline.probe_2;
		fake_expect(number, 56, number == PROBE_1 ? 8 : 0, U32(24, 0xffffffff));
		return;
	}

	mainline_note(number);
	if (mainline.refuse_number == number && mainline.refuse) {
		fake.refuse = mainline.refuse;
		mainline.refuse = 0;
	}
	if (fake.refuse)
		return;

	switch (number) {
	case OPEN_XRCD:
		mainline_answer(0, ++mainline.next_handle);
		break;
	case CREATE_XSRQ:
		mainline_answer(0, ++mainline.next_handle);
		mainline_answer(4, 127);
		mainline_answer(8, 4);
		mainline_answer(12, 0x5151);
		mainline_answer(16, 0x7777);
		break;
	case CREATE_QP:
	case OPEN_QP:
		mainline_answer(0, ++mainline.next_handle);
		mainline_answer(4, mainline.qpn);
		mainline_answer(8, 63);
		mainline_answer(28, 0);
		mainline.open_qps += number == OPEN_QP || fake.command[61] == 10;
		break;
	case QUERY_QP:
		mainline_answer(88, 0x999);
		fake.response[108] = 2;
		fake.response[122] = 1;
		fake.response_len = 128;
		break;
	case DESTROY_QP:
		/* More events than any test acknowledges. */
		mainline_answer(0, 3);
		--mainline.open_qps;
		break;
	}
}

static struct ibv_device mainline_device;

static void mainline_free_context(struct ibv_context *ctx)
{
	(void)ctx;
}

static int mainline_setup(void **state)
{
	int ret = cmd_setup(state);

	memset(&mainline, 0, sizeof(mainline));
	mainline.probe_1 = ENOSPC;
	mainline.probe_2 = EINVAL;
	mainline.next_handle = 0x100;
	mainline.qpn = 0x800123;
	fake.hook = mainline_obey;
	mainline_device.ops.free_context = mainline_free_context;
	strcpy(mainline_device.name, "mlx4_7");
	context.device = &mainline_device;
	return ret;
}

/* Closes the context as a program does, so the library forgets what it keeps about the context. */
static int mainline_teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_close_device(&context), 0);
	fake.fd = -1;
	return 0;
}

/* Forgets the commands so far: the next one is number 0. */
static void mainline_forget(void)
{
	mainline.commands = 0;
}

/* As fake_expect(), for the command of this index. */
#define mainline_expect(i, number, in_len, out_len, ...)                                           \
	do {                                                                                       \
		assert_true((i) < mainline.commands);                                              \
		memcpy(fake.command, mainline.bytes[i], sizeof(mainline.bytes[i]));                \
		fake.command_len = mainline.len[i];                                                \
		fake_expect(number, in_len, out_len, __VA_ARGS__);                                 \
	} while (0)

/* The commands since the last look, by their numbers: mainline_commands(37, 38). */
static inline void mainline_commands_(const int *numbers, size_t n)
{
	size_t i;

	assert_int_equal(mainline.commands, n);
	for (i = 0; i < n; ++i)
		assert_int_equal(mainline.number[i], numbers[i]);
	mainline_forget();
}

#define mainline_commands(...)                                                                     \
	mainline_commands_((const int[]){__VA_ARGS__},                                             \
			   sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static inline void mainline_silent(void)
{
	assert_int_equal(mainline.commands, 0);
}

static inline int mainline_open(struct ibv_xrc_domain *d, int fd, int oflag)
{
	struct ibv_open_xrc_domain_resp resp;
	int ret;

	d->context = &context;
	ret = ibv_cmd_open_xrc_domain(&context, fd, oflag, d, &resp, sizeof(resp));
	mainline_forget();
	return ret;
}

#endif
