/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JSON, written while what it is about is looked up, since there can be too much of it to keep in
 * memory. Elements of an array have no names (NULL).
 */
#ifndef SOFTHCA_KERNEL_OUT_H
#define SOFTHCA_KERNEL_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct out {
	FILE *f;
	unsigned int depth;
	bool begun; /* the innermost object or array has something in it */
};

void out_int(struct out *o, const char *name, uint64_t value);
/* Text of the daemon's own, in which nothing needs escaping. */
void out_text(struct out *o, const char *name, const char *value);
/* A number in the form that the field writes it in. */
void out_hex(struct out *o, const char *name, const char *format, uint64_t value)
	__attribute__((format(printf, 3, 0)));
/* Text that others chose; left out if it is not valid text. */
void out_path(struct out *o, const char *name, const char *value);
/* true, false or null. */
void out_word(struct out *o, const char *name, const char *word);
void out_begin_array(struct out *o, const char *name);
void out_end_array(struct out *o);
void out_begin_object(struct out *o, const char *name);
void out_end_object(struct out *o);

#endif
