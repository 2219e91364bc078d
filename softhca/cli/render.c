// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Prints JSON for people. A value is one line, "name: value". An object is a heading with its
 * members. A list of objects is a table with one column for each member, as wide as its widest
 * cell. If the objects are too rich for a row, each is a part with a heading.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"

#define COLUMNS 32

/*
 * The text of a cell or line, which the caller frees. Lists are joined with commas, objects are
 * name=value, lists inside of those are in parentheses.
 */
static char *cell(const json_t *value)
{
	char *text = NULL, *part;
	size_t index, len = 0;
	const char *key;
	json_t *item;
	FILE *out;

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
	json_array_foreach(value, index, item) {
		part = cell(item);
		fprintf(out, "%s%s", index ? "," : "", part ? part : "?");
		free(part);
	}
	index = 0;
	json_object_foreach((json_t *)value, key, item) {
		bool list = json_is_array(item) && json_array_size(item);

		part = cell(item);
		fprintf(out, "%s%s=%s%s%s", index++ ? " " : "", key, list ? "(" : "", part ? part : "?", list ? ")" : "");
		free(part);
	}
	fclose(out);
	return text;
}

static void table(const json_t *rows, int indent)
{
	const char *name[COLUMNS];
	size_t width[COLUMNS], columns = 0, row;
	const char *key;
	json_t *value, *object;

	json_array_foreach(rows, row, object) {
		json_object_foreach(object, key, value) {
			size_t i = 0;

			while (i < columns && strcmp(name[i], key))
				i++;
			if (i < columns || columns == COLUMNS)
				continue;
			width[columns] = strlen(key);
			name[columns++] = key;
		}
	}
	json_array_foreach(rows, row, object) {
		for (size_t i = 0; i < columns; i++) {
			char *text = cell(json_object_get(object, name[i]));

			if (text && strlen(text) > width[i])
				width[i] = strlen(text);
			free(text);
		}
	}
	printf("%*s", indent, "");
	for (size_t i = 0; i < columns; i++)
		printf("  %-*s", i + 1 < columns ? (int)width[i] : 0, name[i]);
	putchar('\n');
	json_array_foreach(rows, row, object) {
		printf("%*s", indent, "");
		for (size_t i = 0; i < columns; i++) {
			json_t *at = json_object_get(object, name[i]);
			char *text = at ? cell(at) : strdup("-");

			printf("  %-*s", i + 1 < columns ? (int)width[i] : 0, text ? text : "?");
			free(text);
		}
		putchar('\n');
	}
}

/*
 * Is it too rich for a row? Then it has an object among its members, or such an object in one of
 * its lists.
 */
static bool rich(const json_t *object)
{
	const char *key;
	json_t *value, *item;
	size_t index;

	json_object_foreach((json_t *)object, key, value) {
		if (json_is_object(value))
			return true;
		json_array_foreach(value, index, item)
			if (rich(item))
				return true;
	}
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
	json_array_foreach(objects, index, object) {
		const char *first = json_object_iter_key(json_object_iter(object));
		char *name = first ? cell(json_object_get(object, first)) : NULL;

		printf("%*s%.*s %s\n", indent, "", len, list, name ? name : "");
		free(name);
		members(object, indent + 2, first);
	}
}

static void members(const json_t *object, int indent, const char *skip)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		char *text;

		if (skip && !strcmp(key, skip))
			continue;
		if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
			if (rich(json_array_get(value, 0))) {
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
		text = cell(value);
		printf("%*s%s: %s\n", indent, "", key, text ? text : "?");
		free(text);
	}
}

void render_text(const char *json, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(json, len, 0, &error);

	if (!root) {
		complain("the daemon's answer is no JSON: %s", error.text);
		return;
	}
	members(root, 0, NULL);
	json_decref(root);
}
