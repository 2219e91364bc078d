// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The defaults of new rsockets: the library's, or those of an administrator's files. */

#include <stdio.h>

#include "rs.h"

#define DIRECTORY "/etc/rdma/rsocket/"

static struct rs_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t read_value(const char *path, uint32_t otherwise)
{
	FILE *file = fopen(path, "re");
	unsigned int value;

	if (!file)
		return otherwise;
	if (fscanf(file, "%u", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

static void read_config(void)
{
	struct rs_options *options = &config.options;

	options->recv_size = rs_fit_buffer(read_value(DIRECTORY "mem_default", 1 << 17));
	options->send_size = rs_fit_buffer(read_value(DIRECTORY "wmem_default", 1 << 17));
	options->sq_size = rs_fit_queue(read_value(DIRECTORY "sqsize_default", 384));
	options->rq_size = rs_fit_queue(read_value(DIRECTORY "rqsize_default", 384));
	options->inline_size = read_value(DIRECTORY "inline_default", 64);
	if (options->inline_size > RS_INLINE_MAX)
		options->inline_size = RS_INLINE_MAX;
	options->iomap_size = rs_fit_iomap(read_value(DIRECTORY "iomap_size", 0));
	options->keep_idle = 7200;
	options->keep_interval = 75;
	options->keep_count = 9;
	options->send_timeout = options->recv_timeout = -1;
	config.polling_us = read_value(DIRECTORY "polling_time", 10);
}

const struct rs_config *rs_config(void)
{
	pthread_once(&once, read_config);
	return &config;
}

uint32_t rs_fit_buffer(uint32_t size)
{
	if (size > RS_BUFFER_MAX)
		size = RS_BUFFER_MAX;
	return size < RS_BUFFER_MIN ? RS_BUFFER_MIN : (size + 4095) & ~4095U;
}

uint32_t rs_fit_queue(uint32_t size)
{
	if (size > RS_QUEUE_MAX)
		return RS_QUEUE_MAX;
	return size < RS_QUEUE_MIN ? RS_QUEUE_MIN : size;
}

uint32_t rs_fit_iomap(uint32_t size)
{
	return size > RS_IOMAP_MAX ? RS_IOMAP_MAX : rs_iomap_unscale(rs_iomap_scale(size));
}
