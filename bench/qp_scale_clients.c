// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long each command takes while many processes make some, beside others that register or send.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qp_scale.h"

#define ROUNDS	    100 /* of each client */
#define REGISTERING ((size_t)64 << 20)

enum command { COMMAND_CREATE, COMMAND_MODIFY, COMMAND_QUERY, COMMAND_DESTROY, COMMANDS };
static const char *const command_name[] = {"create", "modify", "query", "destroy"};

struct crowd { /* shared by all processes */
	unsigned int ready, go, stop, samples[COMMANDS];
	/* Followed by most_samples microseconds for each command. */
};
static unsigned int most_samples;

static void note(struct crowd *c, double *all, enum command what, double since)
{
	unsigned int i = __atomic_fetch_add(&c->samples[what], 1, __ATOMIC_RELAXED);

	if (i < most_samples)
		all[what * most_samples + i] = now_us(CLOCK_MONOTONIC) - since;
}

static void join(struct crowd *c)
{
	__atomic_fetch_add(&c->ready, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&c->go, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* A client: its QPs come and go. */
static void come_and_go(struct crowd *c, double *all)
{
	struct side s = {0};
	struct one keep, q;
	double t;

	open_side(&s, KIND_RC);
	create(&s, &keep);
	join(c);
	for (int i = 0; i < ROUNDS; i++) {
		t = now_us(CLOCK_MONOTONIC);
		create(&s, &q);
		note(c, all, COMMAND_CREATE, t);
		for (int step = 0; step < 3; step++) {
			t = now_us(CLOCK_MONOTONIC);
			connect_step(&s, &q, step);
			note(c, all, COMMAND_MODIFY, t);
		}
		t = now_us(CLOCK_MONOTONIC);
		query(&s, &q);
		note(c, all, COMMAND_QUERY, t);
		t = now_us(CLOCK_MONOTONIC);
		destroy(&s, &q);
		note(c, all, COMMAND_DESTROY, t);
	}
}

/* Beside them: one that has much memory copied, or one that sends without a pause. */
static void register_much(struct crowd *c)
{
	struct side s = {0};
	char *at =
		mmap(NULL, REGISTERING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("no memory");
	memset(at, 1, REGISTERING);
	open_side(&s, KIND_RC);
	join(c);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		struct ibv_mr *mr = ibv_reg_mr(s.pd, at, REGISTERING, IBV_ACCESS_LOCAL_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			die("cannot register %zu bytes", REGISTERING);
	}
}

static void send_much(struct crowd *c)
{
	struct side s = {0};
	struct one q;

	open_side(&s, KIND_RC);
	create(&s, &q);
	connect_qp(&s, &q);
	join(c);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE))
		work(&s, &q);
}

static pid_t begin_one(struct crowd *c, double *all, unsigned int kind)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	if (pid)
		return pid;
	if (kind == 0)
		come_and_go(c, all);
	else if (kind == 1)
		register_much(c);
	else
		send_much(c);
	exit(0);
}

static void end_one(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("a process has failed");
}

void measure_latency(const unsigned int count[3])
{
	const unsigned int processes = count[0] + count[1] + count[2];
	pid_t *pid = calloc(processes, sizeof(*pid));
	size_t size;
	struct crowd *c;
	unsigned int n = 0;
	double *all;

	most_samples = count[0] * ROUNDS * 3;
	size = sizeof(*c) + COMMANDS * most_samples * sizeof(double);
	c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!pid || c == MAP_FAILED)
		die("no memory");
	all = (double *)(void *)(c + 1);
	fflush(stdout);
	for (unsigned int kind = 0; kind < 3; kind++)
		for (unsigned int i = 0; i < count[kind]; i++)
			pid[n++] = begin_one(c, all, kind);
	while (__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE) < processes) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			die("a process has failed");
		usleep(1000);
	}
	__atomic_store_n(&c->go, 1, __ATOMIC_RELEASE);
	for (n = 0; n < count[0]; n++)
		end_one(pid[n]);
	__atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
	for (; n < processes; n++)
		end_one(pid[n]);
	for (unsigned int what = 0; what < COMMANDS; what++) {
		double *took = all + what * most_samples;
		unsigned int samples = c->samples[what];

		qsort(took, samples, sizeof(*took), by_value);
		printf("latency\t%u\t%u\t%u\t%s\t%.1f\t%.1f\t%.1f\n", count[0], count[1], count[2],
		       command_name[what], took[samples / 2], took[samples * 99 / 100],
		       took[samples - 1]);
	}
	free(pid);
	munmap(c, size);
}
