/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The mappings and pages of this process as files in /proc list them, read without malloc(). */
#ifndef SOFTHCA_SHIM_MAPS_H
#define SOFTHCA_SHIM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

struct maps {
	int fd;
	size_t have, at;
	char buf[4096];
};

struct mapping {
	uint64_t start, end, off;
	char perms[5];	   /* "rw-p" */
	uint64_t dev, ino; /* 0, 0: anonymous */
	bool stack;	   /* grows by itself */
	bool rings;	   /* of asynchronous I/O, which goes on without a thread */
	bool uring;	   /* such a ring, and one that children inherit */
};

static inline int mapping_prot(const struct mapping *m)
{
	return (m->perms[0] == 'r' ? PROT_READ : 0) | (m->perms[1] == 'w' ? PROT_WRITE : 0) |
	       (m->perms[2] == 'x' ? PROT_EXEC : 0);
}

int maps_open(struct maps *m);			     /* 0 or -errno */
bool maps_next(struct maps *m, struct mapping *out); /* false: there are no more */
void maps_close(struct maps *m);

/* Copies memory of this process, also where it may not be read. 0 or -errno. */
int maps_copy(void *to, uint64_t from, size_t len);
/*
 * Gives memory that is readable and writable the protection that other memory has, and what is
 * longer that of its last page. 0 or -errno. Without /proc it remains as it is.
 */
int maps_protect_as(uint64_t to, size_t len, uint64_t from, size_t from_len);

/* Returns the next line of an open file without its newline, cut to the buffer; NULL at the end. */
char *maps_line(struct maps *m);

/* The page map, a file of one word per page. A descriptor or -errno; sh_close() closes it. */
#define PAGEMAP_MOST 256
int pagemap_open(void);
/*
 * Reads the entries of the pages of the range from its beginning on, as far as there is room.
 * Returns how many; 0: they cannot be read.
 */
size_t pagemap_read(int fd, uint64_t addr, uint64_t len, uint64_t entry[PAGEMAP_MOST]);

#endif
