// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the text that `softhca show` prints has at most 100 columns, whatever the instance
 * holds, and leaves nothing out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "softhca/cli/softhca.h"

#define COLUMNS 100

void complain(const char *format, ...)
{
	fail_msg("render_text() complained: %s", format);
}

/* Returns the text for a value, and checks that no line is too long. The caller frees the text. */
static char *rendered(json_t *value)
{
	FILE *before = stdout;
	char *json = json_dumps(value, 0), *text = NULL;
	size_t len = 0;

	assert_non_null(json);
	stdout = open_memstream(&text, &len);
	render_text(json, strlen(json));
	fclose(stdout);
	stdout = before;
	free(json);
	json_decref(value);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > COLUMNS)
			fail_msg("a line has %zu columns: %.*s", strcspn(line, "\n"),
				 (int)strcspn(line, "\n"), line);
	return text;
}

static void has(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("\"%s\" is not in:\n%s", wanted, text);
}

static size_t count(const char *text, const char *wanted)
{
	size_t n = 0;

	while ((text = strstr(text, wanted))) {
		n++;
		text += strlen(wanted);
	}
	return n;
}

static json_t *from(const char *json)
{
	json_t *value = json_loads(json, 0, NULL);

	assert_non_null(value);
	return value;
}

static void small(void **state)
{
	char *text = rendered(from(
		"{\"version\": 1, \"a\": 5, \"list\": [], \"none\": null, \"o\": {\"b\": true},"
		"\"rows\": [{\"x\": 1, \"y\": [\"P\", \"Q\"]}, {\"x\": 22, \"z\": \"last\"}]}"));

	(void)state;
	assert_string_equal(text, "a: 5\nlist: -\nnone: -\no\n  b: true\nrows (2)\n"
				  "  x   y    z\n  1   P,Q  -\n  22  -    last\n");
	free(text);
}

/* A wide table is printed as several, each with the first column. */
static void many_columns(void **state)
{
	json_t *row = json_object(), *rows = json_array();
	char key[32], *text;

	(void)state;
	for (int i = 0; i < 25; i++) {
		snprintf(key, sizeof(key), "column_%d", i);
		json_object_set_new(row, key, json_integer(INT64_MAX - i));
	}
	for (int i = 0; i < 3; i++)
		json_array_append(rows, row);
	json_decref(row);
	text = rendered(json_pack("{s:{s:{s:o}}}", "outer", "inner", "rows", rows));
	for (int i = 0; i < 25; i++) {
		snprintf(key, sizeof(key), "column_%d ", i);
		if (i)
			key[strlen(key) - 1] = '\0';
		has(text, key);
		snprintf(key, sizeof(key), "%lld", (long long)INT64_MAX - i);
		assert_true(count(text, key) >= 3);
	}
	assert_true(count(text, "column_0 ") > 1);
	assert_int_equal(count(text, "column_24"), 1);
	free(text);
}

/* A cell of many parts gets lines of its own, which break between the parts. */
static void crowded_cells(void **state)
{
	json_t *parts = json_array(), *keys = json_array();
	char wanted[64], *text;

	(void)state;
	for (int i = 0; i < 64; i++)
		json_array_append_new(
			parts, json_pack("{s:i, s:i}", "context", 100 + i, "pid", 4000000 + i));
	for (int i = 0; i < 128; i++)
		json_array_append_new(keys, json_pack("{s:i, s:s}", "index", i, "pkey", "0xffff"));
	text = rendered(json_pack("{s:[{s:i, s:o, s:o, s:s}]}", "qps", "qpn", 8388681,
				  "registrations", parts, "pkeys", keys, "last", "here"));
	for (int i = 0; i < 64; i++) {
		snprintf(wanted, sizeof(wanted), "context=%d pid=%d", 100 + i, 4000000 + i);
		has(text, wanted);
	}
	has(text, "index=127 pkey=0xffff");
	has(text, "here");
	free(text);
}

static void long_words(void **state)
{
	char name[65], path[4000], joined[16000], *text, *to = joined;
	char both[sizeof(path) + 16];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(path, 'p', sizeof(path) - 1);
	for (size_t i = 0; i < 2000; i += 37)
		path[i] = '/';
	path[sizeof(path) - 1] = '\0';
	text = rendered(json_pack("{s:s, s:[{s:s, s:i, s:I, s:s}]}", "instance", path, "instances",
				  "name", name, "hosts", 256, "pid", (json_int_t)INT64_MAX, "where",
				  path));
	has(text, name);
	for (const char *from = text; *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	*to = '\0';
	snprintf(both, sizeof(both), "instance:%s", path);
	has(joined, both);
	free(text);
}

/* A list of objects that hold lists: each object gets a paragraph of its own. */
static void nested(void **state)
{
	json_t *domains = json_array();
	char *text;

	(void)state;
	json_array_append_new(domains, from("{\"xrcd\": 1, \"receive_qps\": []}"));
	json_array_append_new(domains, from("{\"xrcd\": 2, \"receive_qps\": [{\"qpn\": 72, "
					    "\"registrations\": [{\"pid\": 5}]}]}"));
	text = rendered(json_pack("{s:o}", "xrc_domains", domains));
	assert_string_equal(text,
			    "xrc_domain 1\n  receive_qps: -\nxrc_domain 2\n  receive_qps (1)\n"
			    "    qpn       registrations\n    0x000048  pid=5\n");
	free(text);
}

/* As ibv_ tools print them, wherever they stand. What is no number of a queue is decimal. */
static void queues(void **state)
{
	char *text = rendered(from(
		"{\"qps\": [{\"qpn\": 72, \"pd\": 72, \"send_cq\": 129, \"srq\": 0, \"dest_qpn\": "
		"8388682}],"
		"\"cqs\": [{\"cqn\": 129}], \"srqs\": [{\"srqn\": 64, \"cq\": 129, \"xrcd\": 64}],"
		"\"faults\": [{\"qp\": null, \"from\": 12}, {\"qp\": 16777215, \"from\": 12}],"
		"\"lists\": [{\"of\": [{\"qpn\": 73}]}]}"));

	(void)state;
	assert_string_equal(text, "qps (1)\n"
				  "  qpn       pd  send_cq   srq  dest_qpn\n"
				  "  0x000048  72  0x000081  -    0x80004a\n"
				  "cqs (1)\n  cqn\n  0x000081\n"
				  "srqs (1)\n  srqn      cq        xrcd\n  0x000040  0x000081  64\n"
				  "faults (2)\n  qp        from\n  -         12\n  0xffffff  12\n"
				  "lists (1)\n  of\n  qpn=0x000049\n");
	free(text);
}

/*
 * A count of commands that ended in an error, such as a probe of a library, is no error of the
 * daemon's.
 */
static void refused(void **state)
{
	char *text = rendered(from(
		"{\"daemon\": {\"commands\": 24, \"failed\": 2}, \"other\": {\"failed\": 1}}"));

	(void)state;
	assert_string_equal(text,
			    "daemon\n  commands: 24\n  commands_refused: 2\nother\n  failed: 1\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small),	 cmocka_unit_test(many_columns),
		cmocka_unit_test(crowded_cells), cmocka_unit_test(long_words),
		cmocka_unit_test(nested),	 cmocka_unit_test(queues),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
