// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See address.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define MOST_LID (SH_SWITCH_LID - 1)

void sh_wire_text(char text[SH_WIRE_TEXT], uint32_t address)
{
	snprintf(text, SH_WIRE_TEXT, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
		 address >> 8 & 255, address & 255);
}

uint32_t sh_wire_lid(const struct sh_wire_config *wire, uint32_t address)
{
	uint32_t lid = address & ~wire->netmask;

	/* The last number of a network is its broadcast address. */
	if ((address & wire->netmask) != wire->network || lid > MOST_LID || lid == ~wire->netmask)
		return 0;
	return lid;
}

static bool parse_prefix(const char *text, struct sh_wire_config *wire)
{
	char *end;
	unsigned long bits = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || bits < 8 || bits > 30)
		return false;
	wire->netmask = UINT32_MAX << (32 - bits);
	return true;
}

/* One address; the first one comes with the prefix and decides the network. */
static bool parse_one(char *word, struct sh_wire_config *wire, char *why, size_t len)
{
	char *slash = strchr(word, '/'), text[SH_WIRE_TEXT];
	struct in_addr address;

	if (slash)
		*slash = '\0';
	if (strchr(word, ':')) {
		snprintf(why, len,
			 "%.64s is an address of IPv6, which this version cannot use: name one of "
			 "IPv4",
			 word);
		return false;
	}
	if (inet_pton(AF_INET, word, &address) != 1) {
		snprintf(why, len,
			 "\"%.64s\" is no address: write it as 10.1.2.3/24, with the length of "
			 "its network's prefix",
			 word);
		return false;
	}
	if (!slash != !!wire->n || (slash && !parse_prefix(slash + 1, wire))) {
		snprintf(why, len,
			 "the first address, and no other, needs the length of its network's "
			 "prefix, 8 to 30: 10.1.2.3/24,10.1.2.4");
		return false;
	}
	if (wire->n == SH_WIRE_MOST) {
		snprintf(why, len, "there are more than %d addresses: name fewer", SH_WIRE_MOST);
		return false;
	}
	wire->address[wire->n] = ntohl(address.s_addr);
	if (!wire->n)
		wire->network = wire->address[0] & wire->netmask;
	if (!sh_wire_lid(wire, wire->address[wire->n])) {
		sh_wire_text(text, wire->network);
		snprintf(why, len,
			 "%s does not give a LID: it has to be the network, %s, plus 1 to %u; "
			 "choose another address or prefix",
			 word, text, ~wire->netmask - 1 < MOST_LID ? ~wire->netmask - 1 : MOST_LID);
		return false;
	}
	for (uint32_t i = 0; i < wire->n; i++)
		if (wire->address[i] == wire->address[wire->n]) {
			snprintf(why, len, "%s is there twice: each port needs one of its own",
				 word);
			return false;
		}
	wire->n++;
	return true;
}

bool sh_wire_parse(const char *text, struct sh_wire_config *wire, char *why, size_t len)
{
	char *words = strdup(text), *rest = words, *word;
	bool good = words != NULL;

	if (!words)
		snprintf(why, len, "there is no memory for it");
	*wire = (struct sh_wire_config){.mtu = 0};
	while (good && (word = strsep(&rest, ",")))
		good = parse_one(word, wire, why, len);
	free(words);
	return good;
}
