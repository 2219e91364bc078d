// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_devices: prints a table of the devices and their GUIDs. Does not open devices. */

#include <config.h>

#include <endian.h>
#include <stdio.h>

#include "tool.h"

int main(int argc, char **argv)
{
	static const struct option none[] = {{}};
	static const struct tool tool = {"list the RDMA devices and their node GUIDs", none, NULL};
	struct ibv_device **list;

	tool_option(argc, argv, &tool);
	list = tool_devices(NULL);
	if (!list)
		return 1;
	printf("    %-16s\t   node GUID\n", "device");
	printf("    %-16s\t----------------\n", "------");
	for (int i = 0; list[i]; i++)
		printf("    %-16s\t%016llx\n", ibv_get_device_name(list[i]),
		       (unsigned long long)be64toh(ibv_get_device_guid(list[i])));
	ibv_free_device_list(list);
	return 0;
}
