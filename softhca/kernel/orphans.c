// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * After the death of a process or thread: finds the objects whose locks it may have held
 * (device/memory/orphans.c). Looks at nothing if no thread died in device code, which is usual.
 */
#include "softhca/device/memory/orphans.h"
#include "kern.h"
#include "orphans.h"
#include "room.h"

bool orphans_left(const struct kernel *k)
{
	return sh_orphans_left(&k->dev, k->died_inside);
}

void orphans_free(struct kernel *k)
{
	if (!sh_orphans(&k->dev, &k->died_inside))
		return;
	for (uint32_t i = 0; i < k->dev.hcas; i++) {
		ROOMS(orphans_of_hca, k, i);
		sh_orphans_of_hca(&k->dev, i);
	}
	ROOMS(orphans, k);
}
