// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Doorbell records: pages divided into records of one type, with a bitmap of the free ones. Pages
 * with free records are in a list. A hash table finds a page by its address; the page itself
 * contains no link to its struct, because the device may have destroyed its content. db_mutex of
 * the context protects everything here. A page is freed with its last record. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "mlx4.h"

enum { BITS = 8 * sizeof(unsigned long) };

struct mlx4_db_page {
	struct mlx4_db_page *prev, *next; /* of pages with free records */
	struct mlx4_db_page *chain;	  /* of pages in the same bucket */
	struct mlx4_buf buf;
	unsigned int records;
	unsigned int used;
	unsigned long free[]; /* 1: free */
};

static const size_t record_size[MLX4_DB_TYPES] = {
	[MLX4_DB_CQ] = sizeof(struct mlx4_cq_dbrec),
	[MLX4_DB_RQ] = sizeof(struct mlx4_rq_dbrec),
};

static struct mlx4_db_page **bucket_of(struct mlx4_context *ctx, uintptr_t base)
{
	return &ctx->db_hash[base / ctx->page_size % MLX4_DB_BUCKETS];
}

static void link_page(struct mlx4_context *ctx, enum mlx4_db_type type, struct mlx4_db_page *page)
{
	page->prev = NULL;
	page->next = ctx->db_pages[type];
	if (page->next)
		page->next->prev = page;
	ctx->db_pages[type] = page;
}

static void unlink_page(struct mlx4_context *ctx, enum mlx4_db_type type, struct mlx4_db_page *page)
{
	if (page->prev)
		page->prev->next = page->next;
	else
		ctx->db_pages[type] = page->next;
	if (page->next)
		page->next->prev = page->prev;
}

/* Adds a page at the head of the list. NULL with errno set. */
static struct mlx4_db_page *add_page(struct mlx4_context *ctx, enum mlx4_db_type type)
{
	unsigned int records = ctx->page_size / record_size[type];
	unsigned int words = (records + BITS - 1) / BITS;
	struct mlx4_db_page *page, **bucket;
	unsigned int i;
	int err;

	page = calloc(1, sizeof(*page) + words * sizeof(page->free[0]));
	if (!page)
		return NULL;

	err = mlx4_alloc_buf(ctx, &page->buf, ctx->page_size);
	if (err) {
		free(page);
		errno = -err;
		return NULL;
	}

	page->records = records;
	for (i = 0; i < records; ++i)
		page->free[i / BITS] |= 1ul << (i % BITS);

	link_page(ctx, type, page);
	bucket = bucket_of(ctx, (uintptr_t)page->buf.addr);
	page->chain = *bucket;
	*bucket = page;
	return page;
}

void *mlx4_alloc_db(struct mlx4_context *ctx, enum mlx4_db_type type)
{
	struct mlx4_db_page *page;
	unsigned int i, bit;
	char *db = NULL;

	pthread_mutex_lock(&ctx->db_mutex);
	page = ctx->db_pages[type];
	if (!page)
		page = add_page(ctx, type);
	if (page) {
		for (i = 0; !page->free[i]; ++i)
			;
		bit = __builtin_ctzl(page->free[i]);
		page->free[i] &= ~(1ul << bit);
		if (++page->used == page->records)
			unlink_page(ctx, type, page);
		db = (char *)page->buf.addr + (i * BITS + bit) * record_size[type];
		memset(db, 0, record_size[type]);
	}
	pthread_mutex_unlock(&ctx->db_mutex);

	return db;
}

void mlx4_free_db(struct mlx4_context *ctx, enum mlx4_db_type type, void *db)
{
	uintptr_t base = (uintptr_t)db & ~((uintptr_t)ctx->page_size - 1);
	struct mlx4_db_page *page, **link;
	unsigned int i;

	pthread_mutex_lock(&ctx->db_mutex);
	for (link = bucket_of(ctx, base); (page = *link); link = &page->chain)
		if ((uintptr_t)page->buf.addr == base)
			break;
	if (page) {
		if (page->used == page->records)
			link_page(ctx, type, page);
		i = ((uintptr_t)db - base) / record_size[type];
		page->free[i / BITS] |= 1ul << (i % BITS);
		if (!--page->used) {
			unlink_page(ctx, type, page);
			*link = page->chain;
			mlx4_free_buf(&page->buf);
			free(page);
		}
	}
	pthread_mutex_unlock(&ctx->db_mutex);
}
