// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Writes commands. It does not know what they mean. */

#include <unistd.h>

#include "cm.h"

int cm_command(int fd, unsigned int number, void *cmd, size_t size, size_t room)
{
	struct ucma_abi_cmd_hdr *hdr = cmd;
	ssize_t written;

	hdr->cmd = number;
	hdr->in = size - sizeof(*hdr);
	hdr->out = room;

	written = write(fd, cmd, size);
	if (written < 0)
		return -errno;
	return (size_t)written == size ? 0 : -ENODATA;
}
