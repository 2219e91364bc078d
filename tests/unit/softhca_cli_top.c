// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the tables of `softhca top`: rates of two looks, whatever came, went or began again
 * at 0 in between; rows in order; what a row is made of; lines of at most 79 columns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/cli/top.h"

static struct top_look before, after;
static struct top_table t;

static json_t *counted(const char *type, int qpn, int pid, int xrcd, json_int_t sent,
		       json_int_t received)
{
	json_t *qp = json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:i, s:I}",
			       "type", type, "qpn", qpn, "state", "RTS", "port", 1,
			       "send_outstanding", 3, "dest_qpn", 9, "messages_sent", sent,
			       "messages_received", received, "xmit_data", 10 * sent, "rcv_data",
			       10 * received, "retries", 0, "drops", received / 2);

	assert_non_null(qp);
	if (pid)
		json_object_set_new(qp, "pid", json_integer(pid));
	if (xrcd)
		json_object_set_new(qp, "xrcd", json_integer(xrcd));
	return qp;
}

/* An instance of one host with the QPs of a list, which it takes over. */
static json_t *instance(json_t *qps, json_int_t packets, json_int_t drops)
{
	json_t *root = json_pack(
		"{s:s, s:{s:i}, s:[{s:i, s:s, s:i}, {s:i, s:s, s:i}], s:[{s:i, s:[{s:s, s:[{s:i, "
		"s:s, s:i, "
		"s:I, s:I, s:I, s:I, s:i, s:i, s:i}], s:o, s:[{s:i, s:i}], s:[{s:i, s:i, "
		"s:i}], "
		"s:{s:I, s:I, s:i, s:i, s:i, s:i, s:I, s:i}}]}]}",
		"instance", "/dev/shm/lab", "daemon", "commands", 5, "processes", "pid", 11,
		"command", "rping", "host", 0, "pid", 12, "command", "x\x1by", "host", 0, "hosts",
		"host", 0, "hcas", "device", "mlx4_0", "ports", "port", 1, "state", "ACTIVE", "lid",
		4, "xmit_packets", packets, "rcv_packets", packets, "xmit_data", packets,
		"rcv_data", packets, "xmit_discards", 0, "rcv_errors", 0, "rcv_constraint", 0,
		"qps", qps, "srqs", "xrcd", 1, "pid", 12, "xrc_domains", "xrcd", 1, "inode", 77,
		"opens", 2, "counters", "messages_sent", packets, "messages_received", packets,
		"xmit_data", 0, "rcv_data", 0, "retries", 0, "rnr_retries", 0, "drops_memory",
		drops, "drops_lid", 0);

	assert_non_null(root);
	return root;
}

/* Two looks, 2 s apart. */
static void look(json_t *first, json_t *second)
{
	assert_true(top_look_init(&before, first, 100));
	assert_true(top_look_init(&after, second, 102));
}

static void make(enum top_view view, const char *filter, const char *sort, bool reversed)
{
	struct top_filter f = {0};
	int column = sort ? top_column(view, sort) : (int)top_column_first(view);

	assert_true(column >= 0);
	snprintf(f.key, sizeof(f.key), "%s", filter ? filter : "");
	top_table_drop(&t);
	assert_true(top_table_make(&t, &before, &after, view, &f, (unsigned int)column, reversed));
}

static const char *cell(size_t row, const char *title)
{
	int column = top_column(t.view, title);

	assert_true(column >= 0 && row < t.rows);
	return t.row[row].text[column];
}

static int done(void **state)
{
	(void)state;
	top_table_drop(&t);
	top_look_drop(&before);
	top_look_drop(&after);
	return 0;
}

static void test_rates(void **state)
{
	(void)state;
	/* QP 1 goes on, 2 is new, 3 is another QP of that number, 4 has counted past 2^32. */
	look(instance(json_pack("[o, o, o]", counted("RC", 1, 11, 0, 100, 7),
				counted("RC", 3, 12, 0, 5000, 0),
				counted("RC", 4, 12, 0, 4294967290, 0)),
		      1000, 3),
	     instance(json_pack("[o, o, o, o]", counted("RC", 1, 11, 0, 2100, 7),
				counted("RC", 2, 11, 0, 50, 0), counted("RC", 3, 12, 0, 40, 0),
				counted("RC", 4, 12, 0, 14, 0)),
		      3001000, 5));
	make(TOP_QPS, NULL, "QP", false);
	assert_int_equal(t.rows, 4);
	assert_string_equal(cell(0, "SENT/s"), "1.00k");
	assert_string_equal(cell(0, "out b/s"), "10.0k");
	assert_string_equal(cell(0, "RECV/s"), "0");
	assert_string_equal(cell(1, "SENT/s"), "25");
	assert_string_equal(cell(2, "SENT/s"), "20");
	assert_string_equal(cell(3, "SENT/s"), "10");
	make(TOP_PROCESSES, NULL, NULL, false);
	assert_int_equal(t.rows, 2);
	assert_string_equal(cell(0, "PID"), "11");
	assert_string_equal(cell(0, "QPS"), "2");
	assert_string_equal(cell(0, "SENT/s"), "1.02k");
	assert_string_equal(cell(1, "SENT/s"), "30");
	make(TOP_PORTS, NULL, NULL, false);
	assert_string_equal(cell(0, "PORT"), "host0/mlx4_0:1");
	assert_string_equal(cell(0, "PKT OUT"), "1.50M");
	make(TOP_HCAS, NULL, NULL, false);
	assert_string_equal(cell(0, "DROP/s"), "1");
	assert_string_equal(cell(0, "QPS"), "4");
}

/* Of a QP, and of a process the sum of its QPs. */
static void test_drops(void **state)
{
	(void)state;
	look(instance(json_pack("[o]", counted("UD", 1, 11, 0, 0, 100)), 0, 0),
	     instance(json_pack("[o, o, o]", counted("UD", 1, 11, 0, 0, 500),
				counted("XRC_TGT", 2, 11, 0, 0, 40), counted("RC", 3, 12, 0, 0, 1)),
		      0, 0));
	make(TOP_QPS, NULL, "DROP/s", false);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x000001");
	assert_string_equal(cell(0, "DROP/s"), "100");
	assert_string_equal(cell(1, "DROP/s"), "10");
	assert_string_equal(cell(1, "TYPE"), "TGT");
	assert_string_equal(cell(2, "DROP/s"), "0");
	make(TOP_PROCESSES, NULL, "DROP/s", false);
	assert_string_equal(cell(0, "PID"), "11");
	assert_string_equal(cell(0, "DROP/s"), "110");
	assert_string_equal(cell(1, "DROP/s"), "0");
}

static void test_order(void **state)
{
	(void)state;
	look(instance(json_pack("[]"), 0, 0),
	     instance(json_pack("[o, o, o]", counted("RC", 9, 11, 0, 10, 0),
				counted("UD", 10, 11, 0, 30, 0), counted("RC", 11, 12, 0, 30, 0)),
		      0, 0));
	make(TOP_QPS, NULL, NULL, false);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x00000a");
	assert_string_equal(cell(1, "QP"), "0/mlx4_0/0x00000b");
	assert_string_equal(cell(2, "QP"), "0/mlx4_0/0x000009");
	make(TOP_QPS, NULL, NULL, true);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x000009");
	/* Numbers in text as numbers. */
	make(TOP_QPS, NULL, "QP", false);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x000009");
	assert_string_equal(cell(2, "QP"), "0/mlx4_0/0x00000b");
	assert_int_equal(top_column(TOP_QPS, "LID"), -1);
}

/* Digits of hexadecimal numbers are no numbers: a sort that knows versions would put them wrong. */
static void test_order_of_numbers(void **state)
{
	(void)state;
	look(instance(json_pack("[]"), 0, 0),
	     instance(json_pack("[o, o, o, o]", counted("RC", 0x80104a, 11, 0, 1, 0),
				counted("RC", 0x800112, 11, 0, 1, 0),
				counted("RC", 0x80000a, 11, 0, 1, 0),
				counted("RC", 0x800009, 11, 0, 1, 0)),
		      0, 0));
	make(TOP_QPS, NULL, "QP", false);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x800009");
	assert_string_equal(cell(1, "QP"), "0/mlx4_0/0x80000a");
	assert_string_equal(cell(2, "QP"), "0/mlx4_0/0x800112");
	assert_string_equal(cell(3, "QP"), "0/mlx4_0/0x80104a");
	/* Nor do rows that are equal change places. */
	make(TOP_QPS, NULL, "SENT/s", false);
	assert_string_equal(cell(2, "QP"), "0/mlx4_0/0x800112");
	make(TOP_QPS, NULL, "QP", true);
	assert_string_equal(cell(0, "QP"), "0/mlx4_0/0x80104a");
}

/* Enters the row of this key. */
static void drill(const char *key)
{
	struct top_filter f;
	enum top_view view;

	for (size_t i = 0; i < t.rows; i++)
		if (!strcmp(t.row[i].key, key)) {
			assert_true(top_drill(&t, &t.row[i], &view, &f));
			assert_non_null(strstr(f.title, key));
			make(view, f.key, NULL, false);
			return;
		}
	fail_msg("no row %s", key);
}

static void test_drill(void **state)
{
	struct top_filter f;
	enum top_view view;

	(void)state;
	look(instance(json_pack("[]"), 0, 0),
	     instance(json_pack("[o, o, o, o]", counted("RC", 1, 11, 0, 1, 0),
				counted("XRC_INI", 2, 12, 1, 1, 0), counted("RC", 110, 12, 0, 0, 0),
				counted("XRC_TGT", 3, 0, 1, 0, 8)),
		      0, 0));
	make(TOP_PROCESSES, NULL, NULL, false);
	drill("12");
	assert_int_equal(t.view, TOP_QPS);
	assert_int_equal(t.rows, 2);
	make(TOP_HCAS, NULL, NULL, false);
	drill("host0/mlx4_0");
	assert_int_equal(t.view, TOP_PORTS);
	drill("host0/mlx4_0:1");
	assert_int_equal(t.view, TOP_QPS);
	assert_int_equal(t.rows, 4);
	assert_false(top_drill(&t, &t.row[0], &view, &f));
	make(TOP_DOMAINS, NULL, NULL, false);
	assert_int_equal(t.rows, 1);
	assert_string_equal(cell(0, "INODE"), "77");
	assert_string_equal(cell(0, "QPS"), "2");
	assert_string_equal(cell(0, "SRQS"), "1");
	assert_string_equal(cell(0, "RECV/s"), "4");
	/*
	 * Once, although it has an SRQ and a QP there. What others wrote does not reach the
	 * terminal.
	 */
	assert_string_equal(cell(0, "PROCESSES"), "x?y:12");
	drill("host0/mlx4_0/xrcd1");
	assert_int_equal(t.rows, 2);
	make(TOP_PROCESSES, "12", NULL, false);
	assert_int_equal(t.rows, 1);
	assert_string_equal(cell(0, "COMMAND"), "x?y");
}

static const char *end_of(const char *text)
{
	return strlen(text) > 12 ? text + strlen(text) - 12 : text;
}

/* However large the numbers are. */
static void test_width(void **state)
{
	char line[TOP_WIDTH + 1];

	(void)state;
	look(instance(json_pack("[]"), 0, 0),
	     instance(json_pack("[o]", counted("XRC_TGT", 16777215, 12, 1, INT64_MAX / 20,
					       INT64_MAX / 20)),
		      INT64_MAX / 2, INT64_MAX / 2));
	for (unsigned int view = 0; view < TOP_VIEWS; view++) {
		make(view, NULL, NULL, false);
		assert_true(t.rows >= 1);
		memset(line, 'x', sizeof(line));
		top_heading(view, line);
		assert_true(strlen(line) <= 79);
		for (unsigned int c = 0; c < top_columns(view); c++)
			assert_non_null(strstr(line, top_column_title(view, c)));
		for (size_t i = 0; i < t.rows; i++) {
			top_line(&t, &t.row[i], line);
			assert_true(strlen(line) <= 79);
			for (unsigned int c = 0; c < top_columns(view); c++)
				assert_non_null(strstr(line, c ? t.row[i].text[c]
							       : end_of(t.row[i].text[c])));
		}
	}
	top_summary(&before, &after, line);
	assert_true(strlen(line) <= 79);
	assert_memory_equal(line, "lab: 2 processes, 1 QP;", 23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_rates, done),
		cmocka_unit_test_teardown(test_drops, done),
		cmocka_unit_test_teardown(test_order, done),
		cmocka_unit_test_teardown(test_order_of_numbers, done),
		cmocka_unit_test_teardown(test_drill, done),
		cmocka_unit_test_teardown(test_width, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
