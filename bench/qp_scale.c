// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a queue pair costs when many exist: times each operation while that many exist, in this
 * process or spread over others. And how long each command takes while many processes make some
 * (qp_scale_clients.c), and registrations take (qp_scale_memory.c). Uses only plain verbs. Prints a
 * line per measurement, in tab-separated fields. With --hold it waits for a line on standard input
 * at each point where a user may want to inspect the device.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qp_scale.h"

#define MAX_POINTS 16
#define SAMPLES	   101

enum op { OP_CREATE, OP_CONNECT, OP_QUERY, OP_WORK, OP_DESTROY, OPS };

static bool hold;

static void wait_for_line(void)
{
	int c;

	fflush(stdout);
	if (!hold)
		return;
	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

/* The number of mappings of this process, which vm.max_map_count limits. */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	if (!f)
		return 0;
	while ((c = getc_unlocked(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void grow(struct side *s, struct one *q, unsigned int from, unsigned int to)
{
	for (; from < to; from++) {
		create(s, &q[from]);
		connect_qp(s, &q[from]);
	}
}

/* Destroys one of the QPs and creates another, SAMPLES times. Returns the times of each operation
 * and the CPU time of all. */
static void sample(struct side *s, struct one *q, unsigned int alive, double out[OPS], double *cpu)
{
	static double took[OPS][SAMPLES];
	double t[OPS + 1], began = now_us(CLOCK_PROCESS_CPUTIME_ID);
	int i, op;

	for (i = 0; i < SAMPLES; i++) {
		struct one *victim = &q[(unsigned int)rand() % alive];

		t[0] = now_us(CLOCK_MONOTONIC);
		destroy(s, victim);
		t[1] = now_us(CLOCK_MONOTONIC);
		create(s, victim);
		t[2] = now_us(CLOCK_MONOTONIC);
		connect_qp(s, victim);
		t[3] = now_us(CLOCK_MONOTONIC);
		query(s, victim);
		t[4] = now_us(CLOCK_MONOTONIC);
		work(s, &q[(unsigned int)rand() % alive]);
		t[5] = now_us(CLOCK_MONOTONIC);
		took[OP_DESTROY][i] = t[1] - t[0];
		took[OP_CREATE][i] = t[2] - t[1];
		took[OP_CONNECT][i] = t[3] - t[2];
		took[OP_QUERY][i] = t[4] - t[3];
		took[OP_WORK][i] = t[5] - t[4];
	}
	*cpu = (now_us(CLOCK_PROCESS_CPUTIME_ID) - began) / SAMPLES;
	for (op = 0; op < OPS; op++)
		out[op] = median(took[op], SAMPLES);
}

/* ---- queue pairs of other processes ---- */

struct other {
	int tell, hear;
};

static void __attribute__((noreturn))
other_main(enum kind kind, unsigned int most, int hear, int tell)
{
	struct one *q = calloc(most, sizeof(*q));
	struct side s = {0};
	unsigned int have = 0, want;

	if (!q)
		die("no memory");
	open_side(&s, kind);
	while (read(hear, &want, sizeof(want)) == sizeof(want)) {
		grow(&s, q, have, want);
		have = want;
		if (write(tell, &want, sizeof(want)) != sizeof(want))
			break;
	}
	_exit(0);
}

static struct other *start_others(enum kind kind, unsigned int processes, unsigned int most)
{
	struct other *o = calloc(processes, sizeof(*o));
	unsigned int i;
	int down[2], up[2];

	for (i = 0; o && i < processes; i++) {
		pid_t pid;

		if (pipe(down) < 0 || pipe(up) < 0)
			die("no pipe");
		pid = fork();
		if (pid < 0)
			die("cannot fork");
		if (!pid) {
			unsigned int k;

			close(down[1]);
			close(up[0]);
			for (k = 0; k < i; k++) {
				close(o[k].tell);
				close(o[k].hear);
			}
			other_main(kind, (most + processes - 1) / processes, down[0], up[1]);
		}
		close(down[0]);
		close(up[1]);
		o[i] = (struct other){.tell = down[1], .hear = up[0]};
	}
	return o;
}

static void grow_others(struct other *o, unsigned int processes, unsigned int total)
{
	unsigned int i, share, answer;

	for (i = 0; i < processes; i++) {
		share = total / processes + (i < total % processes);
		if (write(o[i].tell, &share, sizeof(share)) != sizeof(share))
			die("another process is gone");
	}
	for (i = 0; i < processes; i++)
		if (read(o[i].hear, &answer, sizeof(answer)) != sizeof(answer))
			die("another process is gone");
}

/* ---- the measurements ---- */

static void measure(enum kind kind, const unsigned int *point, int points, unsigned int processes)
{
	static const char *const name[] = {"RC", "XRC send", "XRC receive"};
	unsigned int most = point[points - 1], have = 0;
	struct other *others = processes ? start_others(kind, processes, most) : NULL;
	struct one *q = calloc(processes ? 1 : most, sizeof(*q));
	double op[OPS], cpu, began;
	struct side s = {0};
	int i;

	if (!q)
		die("no memory");
	open_side(&s, kind);
	if (processes)
		grow(&s, q, 0, 1);
	for (i = 0; i < points; i++) {
		unsigned int own = processes ? 1 : point[i];

		began = now_us(CLOCK_MONOTONIC);
		if (processes)
			grow_others(others, processes, point[i]);
		else
			grow(&s, q, have, point[i]);
		printf("alive\t%s\t%u\t%u\t%.3f\n", name[kind], processes, point[i],
		       (now_us(CLOCK_MONOTONIC) - began) / 1e6);
		wait_for_line();
		sample(&s, q, own, op, &cpu);
		printf("cost\t%s\t%u\t%u\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%u\t%d\n", name[kind],
		       processes, point[i], op[OP_CREATE], op[OP_CONNECT], op[OP_QUERY],
		       op[OP_WORK], op[OP_DESTROY], cpu, mappings(), SAMPLES);
		wait_for_line();
		have = point[i];
	}
	began = now_us(CLOCK_MONOTONIC);
	if (!processes)
		while (have)
			destroy(&s, &q[--have]);
	printf("end\t%s\t%u\t%u\t%.3f\n", name[kind], processes, most,
	       (now_us(CLOCK_MONOTONIC) - began) / 1e6);
	wait_for_line();
}

int main(int argc, char **argv)
{
	unsigned int crowd[3] = {0};
	unsigned int point[MAX_POINTS] = {1, 10, 1000}, processes = 0;
	enum kind kind = KIND_RC;
	int i, points = 3;
	char *p;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--hold")) {
			hold = true;
		} else if (!strcmp(argv[i], "--registration") && i++) {
			measure_registration(strtoull(value, NULL, 10));
			return 0;
		} else if (!strcmp(argv[i], "--clients") && i++) {
			crowd[0] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--registering") && i++) {
			crowd[1] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--sending") && i++) {
			crowd[2] = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--kind") && i++) {
			kind = !strcmp(value, "xrc-send")   ? KIND_XRC_SEND
			       : !strcmp(value, "xrc-recv") ? KIND_XRC_RECV
							    : KIND_RC;
		} else if (!strcmp(argv[i], "--processes") && i++) {
			processes = (unsigned int)atoi(value);
		} else if (!strcmp(argv[i], "--points") && i++) {
			for (points = 0, p = (char *)(uintptr_t)value; *p && points < MAX_POINTS;
			     p += *p == ',')
				point[points++] = (unsigned int)strtoul(p, &p, 10);
			if (!points || *p || !point[0])
				points = 0;
		} else {
			points = 0;
		}
	}
	for (i = 1; i < points; i++)
		if (point[i] < point[i - 1])
			points = 0;
	if (!points) {
		fprintf(stderr, "usage: qp_scale [--hold] [--kind rc|xrc-send|xrc-recv] [--points "
				"N,N,...]\n"
				"       [--processes P] | --registration LARGEST |\n"
				"       --clients N [--registering N] [--sending N]\n");
		return 2;
	}
	if (crowd[0]) {
		measure_latency(crowd);
		return 0;
	}
	measure(kind, point, points, processes);
	return 0;
}
