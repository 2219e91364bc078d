// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See pcapng.h. A block is its type, its length, contents and its length again, in the byte order
 * of the machine; options are (number, length, value) and end with number 0. Everything is padded
 * to four bytes.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "pcapng.h"

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };
enum { OPTION_END = 0, OPTION_COMMENT = 1 };
enum { PACKET_FLAGS = 2 };
enum { FABRIC, WIRE }; /* interfaces */
enum { SECTION_HARDWARE = 2, SECTION_APPLICATION = 4 };
enum { INTERFACE_NAME = 2, INTERFACE_DESCRIPTION = 3, INTERFACE_RESOLUTION = 9 };
enum { STATISTICS_FROM = 2, STATISTICS_TO = 3, STATISTICS_SEEN = 4, STATISTICS_LOST = 5 };

#define LINK_ERF	197
#define LINK_RAW	101
#define ERF_HEAD	16
#define ERF_INFINIBAND	0x15
#define ERF_VARYING	4 /* flag: records have different lengths */
#define BYTE_ORDER_MARK 0x1a2b3c4d
#define NANOSECONDS	9

struct block {
	size_t len;
	bool full;
	unsigned char data[8192];
};

static void add(struct block *b, const void *data, size_t n)
{
	size_t padded = (n + 3) & ~(size_t)3;

	if (b->len + padded > sizeof(b->data)) {
		b->full = true;
		return;
	}
	if (n)
		memcpy(b->data + b->len, data, n);
	memset(b->data + b->len + n, 0, padded - n);
	b->len += padded;
}

static void add32(struct block *b, uint32_t v)
{
	add(b, &v, sizeof(v));
}

static void option(struct block *b, uint16_t number, const void *value, size_t n)
{
	const uint16_t head[2] = {number, (uint16_t)n};

	add(b, head, sizeof(head));
	add(b, value, n);
}

static void option_time(struct block *b, uint16_t number, uint64_t ns)
{
	const uint32_t halves[2] = {(uint32_t)(ns >> 32), (uint32_t)ns};

	option(b, number, halves, sizeof(halves));
}

static int write_block(FILE *out, uint32_t type, const struct block *b)
{
	const uint32_t len = (uint32_t)b->len + 12, head[2] = {type, len};

	if (b->full)
		return -EMSGSIZE;
	errno = EIO;
	if (fwrite(head, sizeof(head), 1, out) != 1 || fwrite(b->data, b->len, 1, out) != 1 ||
	    fwrite(&len, sizeof(len), 1, out) != 1)
		return -errno;
	return 0;
}

static int interface(FILE *out, uint16_t type, const char *name)
{
	static const unsigned char resolution = NANOSECONDS;
	const uint16_t link[2] = {type, 0};
	struct block b = {0};

	add(&b, link, sizeof(link));
	add32(&b, 0); /* each packet says how much of it is there */
	option(&b, INTERFACE_NAME, name, strlen(name));
	option(&b, INTERFACE_RESOLUTION, &resolution, 1);
	option(&b, OPTION_END, NULL, 0);
	return write_block(out, BLOCK_INTERFACE, &b);
}

int pcapng_begin(FILE *out, const char *hardware, bool wire)
{
	static const char application[] = "softhca capture";
	const uint16_t version[2] = {1, 0};
	struct block b = {0};
	int err;

	add32(&b, BYTE_ORDER_MARK);
	add(&b, version, sizeof(version));
	/* The length of the section is not known. */
	add32(&b, UINT32_MAX);
	add32(&b, UINT32_MAX);
	option(&b, SECTION_HARDWARE, hardware, strlen(hardware));
	option(&b, SECTION_APPLICATION, application, strlen(application));
	option(&b, OPTION_END, NULL, 0);
	err = write_block(out, BLOCK_SECTION, &b);
	if (!err)
		err = interface(out, LINK_ERF, "fabric");
	if (!err && wire)
		err = interface(out, LINK_RAW, "wire");
	return err;
}

/* The one part whose numbers have an order of their own: the time little-endian, the rest big. */
static void erf_head(unsigned char p[ERF_HEAD], uint64_t when, size_t have, size_t n)
{
	uint64_t time = when / 1000000000 << 32 | ((when % 1000000000) << 32) / 1000000000;

	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(time >> 8 * i);
	p[8] = ERF_INFINIBAND;
	p[9] = ERF_VARYING;
	p[10] = (unsigned char)((ERF_HEAD + have) >> 8);
	p[11] = (unsigned char)(ERF_HEAD + have);
	p[12] = p[13] = 0; /* losses are in the statistics */
	p[14] = (unsigned char)(n >> 8);
	p[15] = (unsigned char)n;
}

static void packet_head(struct block *b, uint32_t number, uint64_t when, size_t have, size_t n)
{
	b->len = 0;
	b->full = false;
	add32(b, number);
	add32(b, (uint32_t)(when >> 32));
	add32(b, (uint32_t)when);
	add32(b, (uint32_t)have);
	add32(b, (uint32_t)n);
}

static int end_packet(FILE *out, struct block *b, uint32_t direction, const char *comment)
{
	if (comment)
		option(b, OPTION_COMMENT, comment, strlen(comment));
	if (direction)
		option(b, PACKET_FLAGS, &direction, sizeof(direction));
	if (comment || direction)
		option(b, OPTION_END, NULL, 0);
	return write_block(out, BLOCK_PACKET, b);
}

int pcapng_packet(FILE *out, uint64_t when, const unsigned char *packet, size_t have, size_t n,
		  const char *comment)
{
	unsigned char record[ERF_HEAD + 4608];
	struct block b;

	if (have > sizeof(record) - ERF_HEAD)
		return -EMSGSIZE;
	packet_head(&b, FABRIC, when, ERF_HEAD + have, ERF_HEAD + n);
	erf_head(record, when, have, n);
	memcpy(record + ERF_HEAD, packet, have);
	add(&b, record, ERF_HEAD + have);
	return end_packet(out, &b, 0, comment);
}

int pcapng_wire_packet(FILE *out, uint64_t when, const unsigned char *packet, size_t have, size_t n,
		       uint32_t direction, const char *comment)
{
	struct block b;

	packet_head(&b, WIRE, when, have, n);
	add(&b, packet, have);
	return end_packet(out, &b, direction, comment);
}

int pcapng_end(FILE *out, uint64_t from, uint64_t to, uint64_t seen, uint64_t lost)
{
	struct block b = {0};

	add32(&b, FABRIC); /* with those of the wire: both came by one tap */
	add32(&b, (uint32_t)(to >> 32));
	add32(&b, (uint32_t)to);
	option_time(&b, STATISTICS_FROM, from);
	option_time(&b, STATISTICS_TO, to);
	option(&b, STATISTICS_SEEN, &seen, sizeof(seen));
	option(&b, STATISTICS_LOST, &lost, sizeof(lost));
	option(&b, OPTION_END, NULL, 0);
	return write_block(out, BLOCK_STATISTICS, &b);
}
