// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JSON as `softhca show` prints it.
 */
#include <inttypes.h>

#include <jansson.h>

#include "out.h"

static void new_line(struct out *o)
{
	fprintf(o->f, "\n%*s", (int)o->depth * 2, "");
}

/* Precedes each value. The elements of an array have no names. */
static void item(struct out *o, const char *name)
{
	if (o->begun)
		fputc(',', o->f);
	if (o->depth)
		new_line(o);
	if (name)
		fprintf(o->f, "\"%s\": ", name);
	o->begun = true;
}

void out_int(struct out *o, const char *name, uint64_t value)
{
	item(o, name);
	fprintf(o->f, "%" PRId64, (int64_t)value);
}

void out_text(struct out *o, const char *name, const char *value)
{
	item(o, name);
	fprintf(o->f, "\"%s\"", value);
}

void out_hex(struct out *o, const char *name, const char *format, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	out_text(o, name, text);
}

void out_path(struct out *o, const char *name, const char *value)
{
	json_t *string = json_string(value);

	if (!string)
		return;
	item(o, name);
	json_dumpf(string, o->f, JSON_ENCODE_ANY);
	json_decref(string);
}

void out_word(struct out *o, const char *name, const char *word)
{
	item(o, name);
	fputs(word, o->f);
}

static void begin(struct out *o, const char *name, char bracket)
{
	item(o, name);
	fputc(bracket, o->f);
	o->depth++;
	o->begun = false;
}

static void end(struct out *o, char bracket)
{
	o->depth--;
	if (o->begun)
		new_line(o);
	fputc(bracket, o->f);
	o->begun = true;
}

void out_begin_array(struct out *o, const char *name)
{
	begin(o, name, '[');
}

void out_end_array(struct out *o)
{
	end(o, ']');
}

void out_begin_object(struct out *o, const char *name)
{
	begin(o, name, '{');
}

void out_end_object(struct out *o)
{
	end(o, '}');
}
