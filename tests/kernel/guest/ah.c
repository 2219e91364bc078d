// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Description: address handles are made and refused, in both ways that the kernel has. */

#include "guest.h"

#define MANY 32

static void make_and_refuse(void)
{
	struct ibv_ah *ah[MANY];
	struct ibv_ah_attr attr;
	struct rig rig;
	int i, j;

	rig_up(&rig);
	for (i = 0; i < MANY; ++i) {
		ah[i] = rig_ah(&rig);
		CHECK(ah[i]->pd == rig.pd && ah[i]->context == rig.context);
		for (j = 0; j < i; ++j)
			CHECK(ah[i]->handle != ah[j]->handle);
	}
	CHECK_EQ(ibv_dealloc_pd(rig.pd), EBUSY);
	for (i = 0; i < MANY; ++i)
		CHECK_EQ(ibv_destroy_ah(ah[i]), 0);

	/* On Ethernet every path is global. */
	attr = rig_ah_attr(&rig);
	attr.is_global = 0;
	CHECK_REFUSED(ibv_create_ah(rig.pd, &attr), EINVAL);
	attr = rig_ah_attr(&rig);
	attr.port_num = 2;
	CHECK_REFUSED(ibv_create_ah(rig.pd, &attr), EINVAL);
	attr = rig_ah_attr(&rig);
	attr.grh.sgid_index = 200;
	CHECK_REFUSED(ibv_create_ah(rig.pd, &attr), ENODATA);
	rig_down(&rig);
}

static void make_and_refuse_numbered(void)
{
	setenv("RXE_AH_NUMBERS", "1", 1);
	make_and_refuse();
}

const struct guest_test ah_tests[] = {
	{"address handles, and what is refused", make_and_refuse},
	{"the same with numbered address handles", make_and_refuse_numbered},
	{0},
};
