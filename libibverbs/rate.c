// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Static rates and their multiples of 2.5 Gbit/s. */

#include <stddef.h>

#include "ibverbs.h"

static const struct {
	enum ibv_rate rate;
	int mult;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 1}, {IBV_RATE_5_GBPS, 2},	{IBV_RATE_10_GBPS, 4},
	{IBV_RATE_20_GBPS, 8},	{IBV_RATE_30_GBPS, 12}, {IBV_RATE_40_GBPS, 16},
	{IBV_RATE_60_GBPS, 24}, {IBV_RATE_80_GBPS, 32}, {IBV_RATE_120_GBPS, 48},
};

int ibv_rate_to_mult(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); ++i)
		if (rates[i].rate == rate)
			return rates[i].mult;

	return -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	size_t i;

	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); ++i)
		if (rates[i].mult == mult)
			return rates[i].rate;

	return IBV_RATE_MAX;
}
