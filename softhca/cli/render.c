// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JSON for people. A value is one line, "name: value"; an object is a heading and its members; a list of objects is
 * a table, one column per member, as wide as its widest cell.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"

#define COLUMNS 32

/* What a cell or line shows: caller frees. Lists are joined with commas, objects as name=value. */
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
		part = cell(item);
		fprintf(out, "%s%s=%s", index++ ? " " : "", key, part ? part : "?");
		free(part);
	}
	fclose(out);
	return text;
}

static void table(const json_t *rows)
{
	const char *name[COLUMNS];
	size_t width[COLUMNS], columns = 0, row;
	const char *key;
	json_t *value, *object;

	json_object_foreach(json_array_get(rows, 0), key, value) {
		if (columns == COLUMNS)
			break;
		width[columns] = strlen(key);
		name[columns++] = key;
	}
	json_array_foreach(rows, row, object) {
		for (size_t i = 0; i < columns; i++) {
			char *text = cell(json_object_get(object, name[i]));

			if (text && strlen(text) > width[i])
				width[i] = strlen(text);
			free(text);
		}
	}
	for (size_t i = 0; i < columns; i++)
		printf("  %-*s", i + 1 < columns ? (int)width[i] : 0, name[i]);
	putchar('\n');
	json_array_foreach(rows, row, object) {
		for (size_t i = 0; i < columns; i++) {
			json_t *at = json_object_get(object, name[i]);
			char *text = at ? cell(at) : strdup("-");

			printf("  %-*s", i + 1 < columns ? (int)width[i] : 0, text ? text : "?");
			free(text);
		}
		putchar('\n');
	}
}

static void members(const json_t *object, const char *indent)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		char *text;

		if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
			printf("%s%s (%zu)\n", indent, key, json_array_size(value));
			table(value);
			continue;
		}
		if (json_is_object(value)) {
			printf("%s%s\n", indent, key);
			members(value, "  ");
			continue;
		}
		text = cell(value);
		printf("%s%s: %s\n", indent, key, text ? text : "?");
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
	members(root, "");
	json_decref(root);
}
