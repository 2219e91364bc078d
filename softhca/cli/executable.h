/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What an executable wants of a shared library, read from its file. */
#ifndef SOFTHCA_CLI_EXECUTABLE_H
#define SOFTHCA_CLI_EXECUTABLE_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* An executable of this machine's kind, mapped. All strings point into it. */
struct elf {
	const char *map;
	size_t size;
	const char *strings;		/* the dynamic string table */
	size_t strings_size;
	const char *rpath, *runpath;	/* NULL: it has none */
	const ElfW(Dyn) *dynamic;
	size_t ndynamic;
};

/* 0, or -errno; -ENOEXEC: something else than a dynamic executable of this machine. */
int elf_open(struct elf *elf, const char *path);
void elf_close(struct elf *elf);

bool elf_needs(const struct elf *elf, const char *library);

/*
 * Calls `each` with each symbol that the executable takes from the library under a version, weak ones aside, until
 * that returns false. False: it did, or the file's tables are damaged.
 */
bool elf_each_symbol(const struct elf *elf, const char *library,
		     bool (*each)(void *arg, const char *symbol, const char *version), void *arg);

#endif
