// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel for one process. The program has a write() of its own, which the linker finds before the
 * C library's. So the bytes that libibverbs writes to fake.fd, or to another open /dev/null, arrive
 * here as a whole, and the response is in place when the call returns. Include this in one file of
 * a program. One thread at a time may issue commands.
 */
#ifndef FAKE_UVERBS_H
#define FAKE_UVERBS_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../libmlx4/tests/fields.h"

struct fake_uverbs {
	int fd;
	unsigned int commands;	/* that arrived, the refused ones included */
	uint8_t command[16384]; /* the last one */
	size_t command_len;
	uint8_t response[512]; /* to the next ones */
	size_t response_len;
	int refuse;	    /* errno that the next command gets */
	void (*hook)(void); /* runs when a command has arrived */
	int shorten;	    /* by so much less than its length does the next write return */
};

static struct fake_uverbs fake = {.fd = -1};

/* Every device node that a test opens is /dev/null, so that closing it is nothing special. */
static int fake_is_node(int fd)
{
	struct stat st;

	return fake.fd >= 0 && (fd == fake.fd || (!fstat(fd, &st) && S_ISCHR(st.st_mode) &&
						  st.st_rdev == makedev(1, 3)));
}

ssize_t write(int fd, const void *buf, size_t len)
{
	size_t room;
	int err;

	if (!fake_is_node(fd))
		return syscall(SYS_write, fd, buf, len);

	++fake.commands;
	if (len > sizeof(fake.command) || len < 8) {
		errno = EINVAL;
		return -1;
	}
	memset(fake.command, 0, sizeof(fake.command));
	memcpy(fake.command, buf, len);
	fake.command_len = len;

	if (fake.hook)
		fake.hook();

	/*
	 * A kernel may write a response to a command that it refuses: POST_SEND and its kin say
	 * where they stopped.
	 */
	room = field_get(buf, 6, 2) * 4;
	if (room && fake.response_len)
		memcpy((void *)(uintptr_t)field_get(buf, 8, 8), fake.response,
		       fake.response_len < room ? fake.response_len : room);

	err = fake.refuse;
	fake.refuse = 0;
	if (err) {
		errno = err;
		return -1;
	}

	len -= fake.shorten;
	fake.shorten = 0;
	return len;
}

/*
 * Leaves garbage where the next call will build its commands, on the stack and on the heap, so that
 * a byte which the library forgets to set is not right by luck. The arguments are garbage for the
 * first bytes of the next frame.
 */
static __attribute__((noinline)) void
fake_dirty_(unsigned long a1, unsigned long a2, unsigned long a3, unsigned long a4,
	    unsigned long a5, unsigned long a6, unsigned long a7, unsigned long a8,
	    unsigned long a9, unsigned long a10, unsigned long a11, unsigned long a12,
	    unsigned long a13, unsigned long a14, unsigned long a15, unsigned long a16,
	    unsigned long a17, unsigned long a18)
{
	volatile unsigned long sum = a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 +
				     a13 + a14 + a15 + a16 + a17 + a18;
	volatile uint8_t rubbish[4096], *chunk;
	size_t i, j;

	(void)sum;
	for (i = 0; i < sizeof(rubbish); ++i)
		rubbish[i] = 0xee;
	for (i = 32; i < 512; i += 16) {
		chunk = malloc(i);
		for (j = 0; chunk && j < i; ++j)
			chunk[j] = 0xee;
		free((void *)chunk);
	}
}

#define FAKE_RUBBISH ((unsigned long)0xeeeeeeeeeeeeeeee)
#define FAKE_RUBBISH_6                                                                             \
	FAKE_RUBBISH, FAKE_RUBBISH, FAKE_RUBBISH, FAKE_RUBBISH, FAKE_RUBBISH, FAKE_RUBBISH
#define fake_dirty() fake_dirty_(0, 0, 0, 0, 0, 0, FAKE_RUBBISH_6, FAKE_RUBBISH_6)

static inline void fake_reset(void)
{
	if (fake.fd >= 0)
		close(fake.fd);
	memset(&fake, 0, sizeof(fake));
	fake.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(fake.fd >= 0);
	fake_dirty();
}

/* Sets what the kernel answers, as an array of {offset, size, value}. */
struct field {
	size_t offset;
	size_t size;
	uint64_t value;
};

static inline void fake_answer_(size_t len, const struct field *fields, size_t n)
{
	size_t i;

	assert_true(len <= sizeof(fake.response));
	memset(fake.response, 0, sizeof(fake.response));
	fake.response_len = len;
	for (i = 0; i < n; ++i)
		field_put(fake.response, fields[i].offset, fields[i].size, fields[i].value);
	fake_dirty();
}

#define fake_answer(len, ...)                                                                      \
	fake_answer_(len, (const struct field[]){__VA_ARGS__},                                     \
		     sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field))

/*
 * Checks that the last command has this number, these lengths and these fields, and that each byte
 * that no field covers is zero. If the command asks for a response, its address must not be zero;
 * any other value passes.
 */
static inline void fake_expect_(unsigned int number, size_t in_len, size_t out_len,
				const struct field *fields, size_t n)
{
	uint8_t covered[sizeof(fake.command)] = {0};
	size_t i;

	assert_int_equal(field_get(fake.command, 0, 4), number);
	assert_int_equal(fake.command_len, in_len);
	assert_int_equal(field_get(fake.command, 4, 2) * 4, in_len);
	assert_int_equal(field_get(fake.command, 6, 2) * 4, out_len);
	memset(covered, 1, 8);

	if (out_len) {
		assert_true(field_get(fake.command, 8, 8) != 0);
		memset(covered + 8, 1, 8);
	}

	for (i = 0; i < n; ++i) {
		uint64_t is = field_get(fake.command, fields[i].offset, fields[i].size);

		assert_true(fields[i].offset + fields[i].size <= in_len);
		if (is != fields[i].value)
			fail_msg("command %u, offset %zu: 0x%llx, must be 0x%llx", number,
				 fields[i].offset, (unsigned long long)is,
				 (unsigned long long)fields[i].value);
		memset(covered + fields[i].offset, 1, fields[i].size);
	}

	for (i = 0; i < in_len; ++i)
		if (!covered[i] && fake.command[i])
			fail_msg("command %u, offset %zu: 0x%x, must be zero", number, i,
				 fake.command[i]);
	fake_dirty();
}

#define fake_expect(number, in_len, out_len, ...)                                                  \
	fake_expect_(number, in_len, out_len, (const struct field[]){__VA_ARGS__},                 \
		     sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field))

/* No fields but the header. */
#define NOTHING                                                                                    \
	{                                                                                          \
		0, 4, field_get(fake.command, 0, 4)                                                \
	}

/*
 * The library finds out whether a kernel has XRC by a command about a domain that does not exist.
 * This function answers as an OFED kernel does; use it as the hook, or call it from one.
 */
static inline int fake_refuse_probe(void)
{
	if (field_get(fake.command, 0, 4) != 40 || fake.command_len != 56 ||
	    field_get(fake.command, 24, 4) != 0xffffffff)
		return 0;
	fake.refuse = EINVAL;
	return 1;
}

static inline void fake_ofed(void)
{
	fake_refuse_probe();
}

#define PTR(p) ((uint64_t)(uintptr_t)(p))

#endif
