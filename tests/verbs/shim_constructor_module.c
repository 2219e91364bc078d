// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A library for shim_constructor.c, whose constructor is that program's. */
void in_constructor(void);

static __attribute__((constructor)) void begin(void)
{
	in_constructor();
}
