/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SOFTHCA_SHIM_CLOSING_H
#define SOFTHCA_SHIM_CLOSING_H

/* close_range(), around the descriptors of this library. */
int closing_range(unsigned int first, unsigned int last, int flags);

#endif
