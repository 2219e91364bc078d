// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See calls.h. Holds no lock of its own. */
#include "calls.h"

static bool is_before(const struct sh_call *a, const struct sh_call *b)
{
	return a->deadline != b->deadline ? a->deadline < b->deadline : a->number < b->number;
}

void sh_calls_put(struct sh_calls *s, const struct sh_call *call)
{
	struct sh_call c = *call;
	unsigned int i = s->used++;

	c.number = s->came++;
	while (i && is_before(&c, &s->call[(i - 1) / 2])) {
		s->call[i] = s->call[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->call[i] = c;
}

bool sh_calls_has(const struct sh_calls *s, const struct sh_call *c)
{
	for (unsigned int i = 0; i < s->used; i++)
		if (s->call[i].fn == c->fn && s->call[i].a == c->a && s->call[i].b == c->b)
			return true;
	return false;
}

struct sh_call sh_calls_take(struct sh_calls *s)
{
	struct sh_call first = s->call[0], last = s->call[--s->used];
	unsigned int i = 0;

	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= s->used)
			break;
		if (child + 1 < s->used && is_before(&s->call[child + 1], &s->call[child]))
			child++;
		if (is_before(&last, &s->call[child]))
			break;
		s->call[i] = s->call[child];
		i = child;
	}
	s->call[i] = last;
	return first;
}
