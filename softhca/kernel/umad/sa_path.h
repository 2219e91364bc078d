/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PathRecord: paths between end ports, and to groups.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_PATH_H
#define SOFTHCA_KERNEL_UMAD_SA_PATH_H

#include "sa_table.h"

enum path_bit { /* of its mask of components, those that more than sa_path_components looks at */
		PATH_DGID = 2,
		PATH_SGID = 3,
		PATH_DLID = 4,
		PATH_SLID = 5,
		PATH_PKEY = 13,
		PATH_QOS_CLASS = 14,
		PATH_SL = 15,
		PATH_MTU_SELECTOR = 16, /* the attribute's own bit follows */
		PATH_RATE_SELECTOR = 18,
		PATH_LIFE_SELECTOR = 20,
};

extern const struct sa_component sa_path_components[];
/* Offers the paths that fit. A Get that names no source asks for those of the asking port. */
void sa_paths(struct sa_table *t);
/* Does the query name a GID that no end has? A group's is good as the destination. */
bool sa_path_stranger(const struct sa_table *t);

/*
 * What a limit becomes when it is to be above, below or equal to another one, by that selector of
 * two bits. most: the own one is the most that can be had; otherwise the least. False: it cannot
 * be.
 */
bool sa_limit(unsigned int *own, unsigned int asked, unsigned int selector, bool most);
/* Codes of rates do not grow with the rates; their ranks do. 0: there is no such rank. */
unsigned int sa_rate_rank(uint8_t rate);
uint8_t sa_rate_of_rank(unsigned int rank);

#endif
