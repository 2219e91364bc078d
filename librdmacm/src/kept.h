// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The descriptors that this library has for itself: programs do not know their numbers, and must
 * not close them. librspreload.so asks for them by rgetsockopt(): this is no interface for
 * programs.
 */
#ifndef KEPT_H
#define KEPT_H

/*
 * An option of level SOL_RDMA. *optval, an int, is a number: it becomes the lowest one from there
 * on that is kept, or
 * -1. What socket is given does not matter. Signal handlers may ask, too, and no lock is taken.
 */
enum { RS_OPTION_KEPT = 0x10000 };

#endif
