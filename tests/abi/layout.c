// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the sizes, offsets and constants of every installed header are those of the tables.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>
#include <infiniband/opcode.h>
#include <infiniband/sa-kern-abi.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "../../libibverbs/compat-1_0.h"

struct row {
	const char *what;
	long long is;
	long long must;
};

#define S(type, size) {"sizeof " #type, sizeof(struct type), size},
#define F(type, field, offset, size)                                                               \
	{"offset of " #type "." #field, offsetof(struct type, field), offset},                     \
		{"size of " #type "." #field, sizeof(((struct type *)0)->field), size},
#define E(name, value) {#name, (long long)(name), value},

/*
 * The public structures have pointers and pthread objects, so their table is for one machine only.
 */
#ifdef __x86_64__
static const struct row verbs_rows[] = {
#include "verbs.tbl"
	{"sizeof union ibv_gid", sizeof(union ibv_gid), 16},
	{"offset of ibv_gid.global.interface_id", offsetof(union ibv_gid, global.interface_id), 8},
};

static const struct row old_rows[] = {
#include "verbs_1_0.tbl"
};
#endif

static const struct row sa_rows[] = {
#include "sa.tbl"
};

static const struct row kern_abi_rows[] = {
#include "kern_abi.tbl"
};

static const struct row enums_rows[] = {
#include "enums.tbl"
};

static const struct row opcodes_rows[] = {
#include "opcodes.tbl"
};

static const struct row commands_rows[] = {
#include "commands.tbl"
	{"IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL_V2", IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL_V2, -1},
};

static void check(const struct row *rows, size_t n)
{
	unsigned int wrong = 0;
	size_t i;

	for (i = 0; i < n; ++i)
		if (rows[i].is != rows[i].must) {
			print_error("%s is %lld, must be %lld\n", rows[i].what, rows[i].is,
				    rows[i].must);
			++wrong;
		}
	assert_int_equal(wrong, 0);
}

#define CHECK(name)                                                                                \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		check(name##_rows, sizeof(name##_rows) / sizeof(name##_rows[0]));                  \
	}

#ifdef __x86_64__
CHECK(verbs)
CHECK(old)
#endif
CHECK(sa)
CHECK(kern_abi)
CHECK(enums)
CHECK(opcodes)
CHECK(commands)

int main(void)
{
	static const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(verbs),   cmocka_unit_test(old),
#endif
		cmocka_unit_test(sa),	   cmocka_unit_test(kern_abi), cmocka_unit_test(enums),
		cmocka_unit_test(opcodes), cmocka_unit_test(commands),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
