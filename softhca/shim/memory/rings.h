/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Rings of asynchronous I/O that are not among the mappings of this process. */
#ifndef SOFTHCA_SHIM_RINGS_H
#define SOFTHCA_SHIM_RINGS_H

/* 1: there is one, of the process or of the calling thread; 0: there is none; or -errno. */
int rings_unmapped(void);
/* The same of those that have a descriptor, which is how a child gets one that is not mapped. */
int rings_held(void);

#endif
