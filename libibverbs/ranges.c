// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ranges of equal count in a treap: a search tree by start that is also a heap by random
 * priorities, which keeps it balanced without bookkeeping. A list links the ranges in order, and
 * each range ends where the next starts. Between two calls adjacent ranges have different
 * counts. */

#include <errno.h>
#include <stdlib.h>

#include "ranges.h"

struct range {
	struct range *left, *right;
	struct range *prev, *next;
	uint64_t priority;
	uintptr_t start;
	unsigned int count;
};

/* xorshift: the priorities only need to be well spread. */
static uint64_t next_priority(struct ranges *ranges)
{
	ranges->seed ^= ranges->seed << 13;
	ranges->seed ^= ranges->seed >> 7;
	ranges->seed ^= ranges->seed << 17;

	return ranges->seed;
}

int ranges_init(struct ranges *ranges)
{
	ranges->seed = 0x9e3779b97f4a7c15;
	ranges->root = ranges->first = calloc(1, sizeof(*ranges->root));
	if (!ranges->root)
		return -ENOMEM;

	ranges->root->priority = next_priority(ranges);
	return 0;
}

void ranges_destroy(struct ranges *ranges)
{
	struct range *range;

	while ((range = ranges->first)) {
		ranges->first = range->next;
		free(range);
	}
	ranges->root = NULL;
}

static uintptr_t last_of(const struct range *range)
{
	return range->next ? range->next->start - 1 : UINTPTR_MAX;
}

static struct range *find(const struct ranges *ranges, uintptr_t address)
{
	struct range *range = ranges->root, *found = NULL;

	while (range)
		if (range->start <= address) {
			found = range;
			range = range->right;
		} else {
			range = range->left;
		}

	/* There is always one: the first range starts at 0. */
	return found;
}

/* Inserts node, which starts within range, after range. */
static void insert(struct ranges *ranges, struct range *range, struct range *node)
{
	struct range **link = &ranges->root, **low, **high, *rest;

	while (*link && (*link)->priority >= node->priority)
		link = node->start < (*link)->start ? &(*link)->left : &(*link)->right;

	/* Split the subtree that was there between the two sides of the new node. */
	rest = *link;
	*link = node;
	low = &node->left;
	high = &node->right;
	while (rest)
		if (rest->start < node->start) {
			*low = rest;
			low = &rest->right;
			rest = rest->right;
		} else {
			*high = rest;
			high = &rest->left;
			rest = rest->left;
		}
	*low = *high = NULL;

	node->prev = range;
	node->next = range->next;
	if (node->next)
		node->next->prev = node;
	range->next = node;
}

/* Removes a range. The range before it grows to cover it. */
static void delete (struct ranges *ranges, struct range *range)
{
	struct range **link = &ranges->root, *low, *high;

	while (*link != range)
		link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;

	low = range->left;
	high = range->right;
	while (low && high)
		if (low->priority >= high->priority) {
			*link = low;
			link = &low->right;
			low = low->right;
		} else {
			*link = high;
			link = &high->left;
			high = high->left;
		}
	*link = low ? low : high;

	range->prev->next = range->next;
	if (range->next)
		range->next->prev = range->prev;
	free(range);
}

/* Makes a range start at the address. If a new range is needed, uses *spare and sets it to NULL. */
static struct range *split(struct ranges *ranges, uintptr_t address, struct range **spare)
{
	struct range *range = find(ranges, address), *node;

	if (range->start == address)
		return range;

	node = *spare;
	*spare = NULL;
	node->start = address;
	node->count = range->count;
	node->priority = next_priority(ranges);
	insert(ranges, range, node);

	return node;
}

static void merge_if_equal(struct ranges *ranges, struct range *range)
{
	if (range && range->prev && range->prev->count == range->count)
		delete (ranges, range);
}

/* Does the change take the count of the range from 0 or to 0? */
static bool at_edge(const struct range *range, bool cover)
{
	return range->count == (cover ? 0 : 1);
}

int ranges_change(struct ranges *ranges, uintptr_t start, uintptr_t last, bool cover,
		  ranges_edge edge)
{
	struct range *spare_start, *spare_end, *first, *end, *range, *next, *end_of_undo;
	int ret = 0;

	spare_start = calloc(1, sizeof(*spare_start));
	spare_end = calloc(1, sizeof(*spare_end));
	if (!spare_start || !spare_end) {
		free(spare_start);
		free(spare_end);
		return -ENOMEM;
	}

	first = split(ranges, start, &spare_start);
	end = last == UINTPTR_MAX ? NULL : split(ranges, last + 1, &spare_end);

	/* First everything that can fail. */
	for (range = first; range != end; range = range->next)
		if (at_edge(range, cover)) {
			ret = edge(range->start, last_of(range), cover);
			if (ret)
				break;
		}

	if (ret) {
		/* Undo the part that failed, too: it may be half done. */
		for (end_of_undo = range->next; first != end_of_undo; first = first->next)
			if (at_edge(first, cover))
				edge(first->start, last_of(first), !cover);
		first = find(ranges, start);
	} else {
		for (range = first; range != end; range = range->next) {
			if (cover)
				++range->count;
			else if (range->count)
				--range->count;
		}
	}

	for (range = first; range != end; range = next) {
		next = range->next;
		merge_if_equal(ranges, range);
	}
	merge_if_equal(ranges, end);

	free(spare_start);
	free(spare_end);
	return ret;
}

unsigned int ranges_count(const struct ranges *ranges, uintptr_t address)
{
	return find(ranges, address)->count;
}

unsigned int ranges_size(const struct ranges *ranges)
{
	const struct range *range;
	unsigned int n = 0;

	for (range = ranges->first; range; range = range->next)
		++n;

	return n;
}
