/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What an executable takes from a shared library, read from its file. */
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
	const char *strings; /* the dynamic string table */
	size_t strings_size;
	const char *rpath, *runpath; /* NULL: the file has no such path */
	const ElfW(Dyn) * dynamic;
	size_t ndynamic;
};

/* Returns 0 or -errno. -ENOEXEC: the file is not a dynamic executable of this machine's kind. */
int elf_open(struct elf *elf, const char *path);
void elf_close(struct elf *elf);

bool elf_needs(const struct elf *elf, const char *library);

/*
 * Calls `each` with each symbol that the executable takes from the library under a version, except
 * weak ones, until `each` returns false. Returns false if it did, or if the file's tables are
 * damaged.
 */
bool elf_each_symbol(const struct elf *elf, const char *library,
		     bool (*each)(void *arg, const char *symbol, const char *version), void *arg);

/* Why the loader does not preload softhca's library into a program. */
enum elf_reach {
	ELF_REACHED, /* it does, or the file is no executable, such as a script */
	ELF_STATIC, /* no loader runs for it; it has the words of a program that looks for an HCA */
	ELF_32,	    /* it is of 32 bits, and this softhca of 64 */
	ELF_MACHINE, /* it is of another machine */
};

enum elf_reach elf_reach(const char *path);

#endif
