// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Before the C library's realloc(): it calls mremap() unseen, for a chunk that it has mapped by
 * itself. If such a chunk, or what is left of one, is a single mapping of device memory, it would
 * grow into the pages of other regions. So its pages become private first, as they do in mremap().
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "softhca/shim/interpose.h"
#include "memory.h"
#include "share.h"

/* glibc has the size of a chunk before it, and in the size a bit for chunks that are mapped. */
#define HEADER	  (2 * sizeof(size_t))
#define IS_MAPPED ((size_t)2)

/*
 * Can this be such a chunk? Other allocators are asked for nothing: what stands before their memory
 * only decides whether the table of regions is looked into. A chunk at the beginning of a page has
 * its header in the page before, which may not be readable.
 */
static bool may_be_mapped(const void *chunk)
{
	uintptr_t at = (uintptr_t)chunk;
	size_t size;

	if (at % SHIM_PAGE < HEADER)
		return true;
	memcpy(&size, (const char *)chunk - sizeof(size), sizeof(size));
	return size & IS_MAPPED;
}

/* False: the pages of the chunk are device memory, and stay so. */
static bool made_private(const void *chunk, size_t usable)
{
	uint64_t start = ((uintptr_t)chunk - HEADER) & ~(uint64_t)(SHIM_PAGE - 1),
		 end = (uintptr_t)chunk + usable;
	bool done = true;

	if (shim_control_mine())
		return true;
	shim_control_reach();
	if (shim_shares(start, end - start))
		done = !shim_privatize(start, end - start);
	shim_control_put();
	return done;
}

EXPORT void *realloc(void *old, size_t len)
{
	int before = errno;
	size_t usable;
	void *made;

	if (likely(!old || !shim_may_share((uintptr_t)old - HEADER, HEADER + 1)) ||
	    !may_be_mapped(old))
		return REAL(realloc)(old, len);
	usable = malloc_usable_size(old);
	if (made_private(old, usable) || !len) {
		errno = before;
		return REAL(realloc)(old, len);
	}
	errno = before;
	if (len <= usable)
		return old;
	made = malloc(len);
	if (made) {
		memcpy(made, old, usable);
		free(old);
	}
	return made;
}
