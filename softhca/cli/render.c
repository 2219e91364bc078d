// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Prints JSON for people, in lines of at most 100 columns. A value is one line, "name: value". An
 * object is a heading with its members. A list of objects is a table with one column for each
 * member, as wide as its widest cell. If the objects are too rich for a row, each is a part with a
 * heading. A table that is too wide becomes several tables, one below the other, each of which
 * begins with the first column. A cell that is too wide takes several lines.
 *
 * Numbers of QPs, SRQs and CQs are in the hexadecimal of the ibv_ tools, of captures and traces.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"

#define COLUMNS	     32
#define WIDTH	     100 /* of a line */
#define WIDEST_FIRST 64	 /* of a table's columns; the name of an instance has no more */
#define BLANKS	     2	 /* before each column */

/* Members that are the number of a QP, an SRQ or a CQ, and 0 where there is none. */
static bool names_queue(const char *key)
{
	static const char *const keys[] = {"qpn", "dest_qpn", "qp",	 "srqn",   "srq",
					   "cqn", "cq",	      "send_cq", "recv_cq"};

	for (size_t i = 0; key && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

/*
 * The text of a cell or line, which the caller frees: that of the member `key`, or of one of a list
 * (NULL). Lists are joined with commas, objects are name=value, lists inside of those are in
 * parentheses.
 */
static char *cell(const char *key, const json_t *value)
{
	char *text = NULL, *part;
	size_t index, len = 0;
	const char *inner;
	json_t *item;
	FILE *out;

	if (json_is_integer(value) && names_queue(key)) {
		json_int_t number = json_integer_value(value);

		if (!number)
			return strdup("-");
		return asprintf(&text, "0x%06llx", (unsigned long long)number) < 0 ? NULL : text;
	}
	if (json_is_string(value))
		return strdup(json_string_value(value));
	if (json_is_null(value))
		return strdup("-");
	if (!json_is_array(value) && !json_is_object(value))
		return json_dumps(value, JSON_ENCODE_ANY);
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	if (json_is_array(value) && !json_array_size(value))
		fputs("-", out);
	json_array_foreach(value, index, item)
	{
		part = cell(NULL, item);
		fprintf(out, "%s%s", index ? "," : "", part ? part : "?");
		free(part);
	}
	index = 0;
	json_object_foreach((json_t *)value, inner, item)
	{
		bool list = json_is_array(item) && json_array_size(item);

		part = cell(inner, item);
		fprintf(out, "%s%s=%s%s%s", index++ ? " " : "", inner, list ? "(" : "",
			part ? part : "?", list ? ")" : "");
		free(part);
	}
	fclose(out);
	return text;
}

/* ---- lines ---- */

/* How much of the text fits into the room: up to the last place where a reader would break it. */
static size_t fitting(const char *text, size_t room)
{
	size_t blank = 0, slash = 0, len = strnlen(text, room + 1);

	if (len <= room)
		return len;
	for (size_t i = room; i > 0; i--) {
		if (text[i - 1] == ',' && text[i] != ' ')
			return i;
		if (!blank && text[i] == ' ')
			blank = i;
		if (!slash && text[i - 1] == '/')
			slash = i;
	}
	return blank ? blank : slash ? slash : room;
}

void print_wrapped(int indent, int hang, const char *text)
{
	do {
		size_t len = fitting(text, (size_t)(WIDTH - indent));

		printf("%*s%.*s\n", indent, "", (int)len, text);
		text += len + (text[len] == ' ');
		indent = hang;
	} while (*text);
}

/* ---- tables ---- */

struct table {
	const json_t *rows;
	int indent;
	size_t columns, width[COLUMNS];
	const char *name[COLUMNS];
};

static void find_columns(struct table *t)
{
	const char *key;
	json_t *value, *object;
	size_t row;

	json_array_foreach(t->rows, row, object)
	{
		json_object_foreach(object, key, value)
		{
			size_t i = 0;

			while (i < t->columns && strcmp(t->name[i], key))
				i++;
			if (i < t->columns || t->columns == COLUMNS)
				continue;
			t->width[t->columns] = strlen(key);
			t->name[t->columns++] = key;
		}
	}
}

static char *cell_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return value ? cell(name, value) : strdup("-");
}

static void find_widths(struct table *t)
{
	size_t room = (size_t)(WIDTH - t->indent - BLANKS), row;
	json_t *object;

	json_array_foreach(t->rows, row, object) for (size_t i = 0; i < t->columns; i++)
	{
		char *text = cell_of(object, t->name[i]);

		if (text && strlen(text) > t->width[i])
			t->width[i] = strlen(text);
		free(text);
	}
	for (size_t i = 0; i < t->columns; i++) {
		size_t widest = i ? room - BLANKS - t->width[0] : WIDEST_FIRST;

		if (t->width[i] > widest)
			t->width[i] = widest;
	}
}

/* The end of the columns from `from` that fit beside the first one: one at least. */
static size_t beside_first(const struct table *t, size_t from)
{
	size_t used = (size_t)t->indent + BLANKS + t->width[0], i;

	for (i = from; i < t->columns; i++) {
		used += BLANKS + t->width[i];
		if (used > WIDTH && i > from)
			break;
	}
	return i;
}

/* The first column and those of [from, end): one line, and more while a cell has something left. */
static void print_row(const struct table *t, size_t from, size_t end,
		      const char *const text[COLUMNS])
{
	const char *left[COLUMNS];
	bool more;

	for (size_t i = 0; i < end; i++)
		left[i] = text[i] ? text[i] : "?";
	do {
		size_t blanks = (size_t)t->indent;

		more = false;
		for (size_t i = 0; i < end; i = i ? i + 1 : from) {
			size_t len = fitting(left[i], t->width[i]);

			blanks += BLANKS;
			if (len) {
				printf("%*s%.*s", (int)blanks, "", (int)len, left[i]);
				blanks = 0;
			}
			blanks += t->width[i] - len;
			left[i] += len + (left[i][len] == ' ');
			more |= *left[i];
		}
		putchar('\n');
	} while (more);
}

static void print_columns(const struct table *t, size_t from, size_t end)
{
	char *text[COLUMNS] = {NULL};
	json_t *object;
	size_t row;

	print_row(t, from, end, t->name);
	json_array_foreach(t->rows, row, object)
	{
		for (size_t i = 0; i < end; i = i ? i + 1 : from)
			text[i] = cell_of(object, t->name[i]);
		print_row(t, from, end, (const char *const *)text);
		for (size_t i = 0; i < end; i = i ? i + 1 : from)
			free(text[i]);
	}
}

static void table(const json_t *rows, int indent)
{
	struct table t = {.rows = rows, .indent = indent};
	size_t from = 1, end;

	find_columns(&t);
	find_widths(&t);
	do {
		end = beside_first(&t, from);
		print_columns(&t, from, end);
		from = end;
	} while (from < t.columns);
}

/*
 * Too rich for a row: it has an object among its members, or lists of objects within lists of
 * objects.
 */
static bool rich(const json_t *object)
{
	const char *key, *inner;
	json_t *value, *item, *list;
	size_t index;

	json_object_foreach((json_t *)object, key, value)
	{
		if (json_is_object(value))
			return true;
		json_array_foreach(value, index, item) json_object_foreach(
			item, inner, list) if (json_is_object(list) ||
					       json_is_object(json_array_get(list, 0))) return true;
	}
	return false;
}

static bool any_rich(const json_t *list)
{
	json_t *object;
	size_t index;

	json_array_foreach(list, index, object) if (rich(object)) return true;
	return false;
}

static void members(const json_t *object, int indent, const char *skip);

/*
 * Prints one part for each object. The list and the object's first member name it: "hosts" of
 * {"host": 0, ...} is "host 0".
 */
static void parts(const char *list, const json_t *objects, int indent)
{
	int len = (int)strlen(list);
	json_t *object;
	size_t index;

	if (len > 1 && list[len - 1] == 's')
		len--;
	json_array_foreach(objects, index, object)
	{
		const char *first = json_object_iter_key(json_object_iter(object));
		char *name = first ? cell_of(object, first) : NULL;

		printf("%*s%.*s %s\n", indent, "", len, list, name ? name : "");
		free(name);
		members(object, indent + 2, first);
	}
}

/* What people are shown for the name of a member of this object. */
static const char *shown(const json_t *object, const char *key)
{
	/* Of the daemon: refusals are among what it is for, and "failed: 2" looks like an error. */
	return !strcmp(key, "failed") && json_object_get(object, "commands") ? "commands_refused"
									     : key;
}

static void members(const json_t *object, int indent, const char *skip)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		char *text, *line = NULL;

		if (skip && !strcmp(key, skip))
			continue;
		if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
			if (any_rich(value)) {
				parts(key, value, indent);
				continue;
			}
			printf("%*s%s (%zu)\n", indent, "", key, json_array_size(value));
			table(value, indent);
			continue;
		}
		if (json_is_object(value)) {
			printf("%*s%s\n", indent, "", key);
			members(value, indent + 2, NULL);
			continue;
		}
		text = cell(key, value);
		if (text && asprintf(&line, "%s: %s", shown(object, key), text) >= 0)
			print_wrapped(indent, indent + 4, line);
		free(line);
		free(text);
	}
}

void render_text(const char *json, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(json, len, 0, &error);

	if (!root) {
		complain("cannot show the instance: the daemon's answer is not valid JSON (%s); "
			 "the daemon may be of another "
			 "version of softhca",
			 error.text);
		return;
	}
	/* The version is that of the JSON. */
	members(root, 0, "version");
	json_decref(root);
}
