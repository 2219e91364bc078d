// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Packets for the time line: a capture (device/memory/tap.h) without payloads, kept in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca.h"
#include "softhca/host/process.h"
#include "trace.h"

#define PATIENCE UINT64_C(20000000) /* for a sender that has begun a record, ns */
#define BATCH	 4096

struct trace_packets {
	int control;
	struct sh_tap_reader reader;
	const struct sh_exec *exec;
	struct sh_tapped *packets;
	size_t n, room;
	uint64_t missed; /* no memory */
	uint64_t lost;
	unsigned char payload[SH_TAP_PAYLOAD];
};

static int map(struct trace_packets *p, int memory)
{
	void *exec = mmap(NULL, SH_EVQ_OFF - SH_EXEC_OFF, PROT_READ, MAP_SHARED, memory,
			  (off_t)SH_EXEC_OFF);
	void *tap;

	if (exec == MAP_FAILED)
		return -errno;
	p->exec = exec;
	tap = mmap(NULL, SH_TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory,
		   (off_t)SH_TAP_OFF);
	if (tap == MAP_FAILED)
		return -errno;
	sh_tap_open(&p->reader, tap, exec);
	return 0;
}

struct trace_packets *trace_packets_begin(const char *dir)
{
	struct trace_packets *p = calloc(1, sizeof(*p));
	struct sh_capture_msg msg = {
		.type = SH_MSG_CAPTURE, .on = 1, .host = SH_TAP_ANY, .qpn = SH_TAP_ANY};
	struct sh_hello_reply hello;
	int memory, err;

	if (!p) {
		complain("not enough memory");
		return NULL;
	}
	p->control = greet(dir, &hello);
	if (p->control < 0) {
		complain("cannot capture packets: %s", strerror(-p->control));
		free(p);
		return NULL;
	}
	err = ask(p->control, &msg, sizeof(msg), &memory);
	if (!err) {
		err = map(p, memory);
		close(memory);
		if (err)
			complain("cannot map the packets: %s", strerror(-err));
	}
	if (!err)
		return p;
	trace_packets_free(p);
	return NULL;
}

static bool make_room(struct trace_packets *p)
{
	size_t wanted = p->room ? p->room * 2 : 1024;
	void *grown;

	if (p->n < p->room)
		return true;
	grown = reallocarray(p->packets, wanted, sizeof(*p->packets));
	if (!grown)
		return false;
	p->packets = grown;
	p->room = wanted;
	return true;
}

static void keep(struct trace_packets *p, const struct sh_tapped *t)
{
	if (make_room(p))
		p->packets[p->n++] = *t;
	else
		p->missed++;
}

void trace_packets_take(struct trace_packets *p)
{
	uint64_t now = sh_now();
	struct sh_tapped t;
	int i = 0;

	while (i++ < BATCH && sh_tap_next(&p->reader, now, PATIENCE, &t, p->payload))
		keep(p, &t);
	while (i++ < 2 * BATCH && sh_tap_late(&p->reader, &t, p->payload))
		keep(p, &t);
}

void trace_packets_end(struct trace_packets *p)
{
	struct sh_capture_msg msg = {.type = SH_MSG_CAPTURE};
	size_t before;

	/* By itself if the daemon has ended. */
	if (send(p->control, &msg, sizeof(msg), MSG_NOSIGNAL) > 0)
		(void)recv(p->control, &(struct sh_status){0}, sizeof(struct sh_status), 0);
	p->lost = __atomic_load_n(&p->reader.tap->lost, __ATOMIC_RELAXED);
	do {
		before = p->n;
		trace_packets_take(p);
	} while (p->n != before);
}

void trace_packets_free(struct trace_packets *p)
{
	if (!p)
		return;
	if (p->reader.tap)
		munmap(p->reader.tap, SH_TAP_SIZE);
	if (p->exec)
		munmap((void *)(uintptr_t)p->exec, SH_EVQ_OFF - SH_EXEC_OFF);
	close(p->control);
	free(p->packets);
	free(p);
}

const struct sh_tapped *trace_packets(const struct trace_packets *p, size_t *n)
{
	*n = p->n;
	return p->packets;
}

uint64_t trace_packets_lost(const struct trace_packets *p)
{
	return p->lost + p->missed + p->reader.damaged;
}
