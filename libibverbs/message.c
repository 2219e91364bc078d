// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Prints the library's messages: whole lines on stderr, each of which tells the user what to do. No
 * other file prints. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ibverbs.h"

static void say(const char *kind, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;

	/* One call, so that lines of several processes stay whole. */
	fprintf(stderr, "libibverbs: %s: %s\n", kind, text);
	free(text);
}

void ibverbs_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("Warning", format, args);
	va_end(args);
}

void ibverbs_fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("Fatal", format, args);
	va_end(args);
}
