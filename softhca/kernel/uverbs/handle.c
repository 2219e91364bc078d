// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Handles: numbers that name an object of one context. Each host and type of object has a space of
 * its own, so that another context's handle is never taken for one's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "handle.h"
#include "objects.h"
#include "uverbs.h"

#define FIRST_SIZE 64

static struct handles *space(const struct kctx *ctx, enum uobj_type type)
{
	return &ctx->k->uverbs->hosts[ctx->host].handles[type];
}

/*
 * Doubles the slots, or makes the first ones. Without memory nothing has changed: slots beyond the
 * numbers do no harm.
 */
static int grow(struct handles *h)
{
	uint32_t size = h->slot ? h->numbers.bits * 2 : FIRST_SIZE;
	struct uobj **grown = realloc(h->slot, size * sizeof(*grown));
	int err;

	if (!grown)
		return -ENOMEM;
	if (!h->slot)
		/* A freed number is given out next if it is the lowest. */
		err = sh_numbers_init(&h->numbers, size, size - 1, 0, true);
	else
		err = sh_numbers_grow(&h->numbers);
	if (err < 0 && !h->slot)
		free(grown);
	else
		h->slot = grown;
	return err;
}

int uobj_add(struct kctx *ctx, struct uobj *obj, enum uobj_type type)
{
	struct handles *h = space(ctx, type);
	uint32_t handle;
	int err;

	if (!h->slot || h->numbers.used == h->numbers.bits) {
		err = grow(h);
		if (err < 0)
			return err;
	}
	err = num_get(&h->numbers, &handle);
	if (err < 0)
		return err;
	h->slot[handle] = obj;
	obj->ctx = ctx;
	obj->type = type;
	obj->handle = handle;
	DL_APPEND(ctx->objs[type], obj);
	ctx->newest = obj;
	return 0;
}

void uobj_del(struct uobj *obj)
{
	struct handles *h = space(obj->ctx, obj->type);

	num_put(&h->numbers, obj->handle);
	if (obj->ctx->newest == obj)
		obj->ctx->newest = NULL;
	DL_DELETE(obj->ctx->objs[obj->type], obj);
}

static bool is_out(const struct handles *h, uint32_t handle)
{
	return h->slot && handle < h->numbers.bits &&
	       h->numbers.words[handle / 64] >> handle % 64 & 1;
}

void *uobj_ending(struct kctx *ctx, enum uobj_type type, uint32_t handle)
{
	struct handles *h = space(ctx, type);

	if (!is_out(h, handle) || h->slot[handle]->ctx != ctx)
		return NULL;
	return h->slot[handle];
}

void *uobj_get(struct kctx *ctx, enum uobj_type type, uint32_t handle)
{
	struct uobj *u = uobj_ending(ctx, type, handle);

	return u && !u->ended ? u : NULL;
}

void handles_exit(struct handles *h)
{
	free(h->slot);
	sh_numbers_fini(&h->numbers);
	memset(h, 0, sizeof(*h));
}
