// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: the sizes, offsets and constants of the headers are those of the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>

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
#define B(type, size)  {"body of " #type, sizeof(struct type) - 8, size},
#define C(type, field, offset)                                                                     \
	{"offset of " #type "." #field " in the body", offsetof(struct type, field) - 8, offset},

/* The public structures have pointers, so their table is for one kind of machine. */
#ifdef __LP64__
static const struct row public_rows[] = {
#include "rdma_cma.tbl"
};
#endif

static const struct row abi_rows[] = {
#include "rdma_cma_abi.tbl"
};

static void check(const struct row *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (rows[i].is != rows[i].must)
			fail_msg("%s is %lld, must be %lld", rows[i].what, rows[i].is,
				 rows[i].must);
}

static void layout_of_public(void **state)
{
	(void)state;
#ifdef __LP64__
	check(public_rows, sizeof(public_rows) / sizeof(public_rows[0]));
#endif
}

static void layout_of_commands(void **state)
{
	(void)state;
	check(abi_rows, sizeof(abi_rows) / sizeof(abi_rows[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_of_public),
		cmocka_unit_test(layout_of_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
