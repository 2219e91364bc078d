// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Handles: numbers that name an object of one context. One space per host and type of object, so that another
 * context's handle is never taken for one's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kern.h"

static struct handles *space(const struct kctx *ctx, enum uobj_type type)
{
	return &ctx->k->hosts[ctx->host].handles[type];
}

int uobj_add(struct kctx *ctx, struct uobj *obj, enum uobj_type type)
{
	struct handles *h = space(ctx, type);
	struct uobj **grown;
	uint32_t i;

	for (i = h->low; i < h->size && h->slot[i]; i++)
		;
	if (i == h->size) {
		uint32_t size = h->size ? h->size * 2 : 64;

		grown = realloc(h->slot, size * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + h->size, 0, (size - h->size) * sizeof(*grown));
		h->slot = grown;
		h->size = size;
	}
	h->slot[i] = obj;
	h->low = i + 1;
	obj->ctx = ctx;
	obj->type = type;
	obj->handle = i;
	DL_APPEND(ctx->objs[type], obj);
	return 0;
}

void uobj_del(struct uobj *obj)
{
	struct handles *h = space(obj->ctx, obj->type);

	h->slot[obj->handle] = NULL;
	if (obj->handle < h->low)
		h->low = obj->handle;
	DL_DELETE(obj->ctx->objs[obj->type], obj);
}

void *uobj_get(struct kctx *ctx, enum uobj_type type, uint32_t handle)
{
	struct handles *h = space(ctx, type);

	if (handle >= h->size || !h->slot[handle] || h->slot[handle]->ctx != ctx)
		return NULL;
	return h->slot[handle];
}

void handles_exit(struct handles *h)
{
	free(h->slot);
	memset(h, 0, sizeof(*h));
}
