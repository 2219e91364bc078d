// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An MPI program that knows what it must receive: alltoall of small messages, rings of messages up
 * to 4 MiB (eager and rendezvous), a reduction, and one-sided puts if the library has them. The
 * exit status is 0 if every byte was right.
 *
 * hosts N      also wants its ranks on N different processor names
 * hold FILE    when all is verified and every connection is still up, makes FILE, in one step,
 *              with the same result in it. Goes on when FILE.seen is there, or after a minute:
 *              time to look at the HCA
 *
 * Compiles with MPI libraries from MPI-1 on. softhca-check-mpi builds it with the library that it
 * checks.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, wrong;
/*
 * Name of each rank's node; payload that this rank sends to others, and of that the payload to
 * other nodes.
 */
static char *names;
static double sent, sent_across;

static uint8_t content(int from, int to, int round, size_t i)
{
	return (uint8_t)(from * 131 + to * 31 + round * 17 + i + (i >> 8) * 3);
}

static const char *name_of(int r)
{
	return names + (size_t)r * MPI_MAX_PROCESSOR_NAME;
}

static void fill(uint8_t *buf, size_t len, int to, int round)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = content(rank, to, round, i);
	if (to != rank)
		sent += (double)len;
	if (strcmp(name_of(to), name_of(rank)))
		sent_across += (double)len;
}

static void check(const char *what, const uint8_t *buf, size_t len, int from, int round)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i] == content(from, rank, round, i))
			continue;
		fprintf(stderr, "rank %d: %s of %zu bytes from %d, round %d: byte %zu differs\n",
			rank, what, len, from, round, i);
		wrong = 1;
		return;
	}
}

static uint8_t *memory(size_t len)
{
	uint8_t *buf = malloc(len);

	if (!buf) {
		fprintf(stderr, "rank %d: cannot allocate %zu bytes\n", rank, len);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return buf;
}

static void alltoall(int len)
{
	uint8_t *out = memory((size_t)len * ranks), *in = memory((size_t)len * ranks);

	for (int round = 0; round < 5; round++) {
		for (int r = 0; r < ranks; r++)
			fill(out + (size_t)r * len, len, r, round);
		memset(in, 0xee, (size_t)len * ranks);
		MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
		for (int r = 0; r < ranks; r++)
			check("alltoall", in + (size_t)r * len, len, r, round);
	}
	free(out);
	free(in);
}

static void ring(int len)
{
	uint8_t *out = memory(len), *in = memory(len);
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Status status;

	for (int round = 0; round < 3; round++) {
		fill(out, len, to, round);
		memset(in, 0xee, len);
		MPI_Sendrecv(out, len, MPI_BYTE, to, 7, in, len, MPI_BYTE, from, 7, MPI_COMM_WORLD,
			     &status);
		check("ring", in, len, from, round);
	}
	free(out);
	free(in);
}

#if MPI_VERSION >= 2
static void one_sided(int len)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	uint8_t *window, *out = memory(len);
	MPI_Win win;

	MPI_Alloc_mem(len, MPI_INFO_NULL, &window);
	MPI_Win_create(window, len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	memset(window, 0xee, len);
	fill(out, len, to, 0);
	MPI_Win_fence(0, win);
	MPI_Put(out, len, MPI_BYTE, to, 0, len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check("put", window, len, from, 0);
	MPI_Win_free(&win);
	MPI_Free_mem(window);
	free(out);
}
#else
static void one_sided(int len)
{
	(void)len;
}
#endif

static void reduction(void)
{
	long mine = rank + 1, sum = 0;

	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (long)ranks * (ranks + 1) / 2) {
		fprintf(stderr, "rank %d: the reduction is wrong: the sum is %ld\n", rank, sum);
		wrong = 1;
	}
}

/* Returns how many different names there are. */
static int learn_names(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "";
	int len, different = 0;

	names = (char *)memory((size_t)ranks * sizeof(name));
	MPI_Get_processor_name(name, &len);
	MPI_Allgather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		int new = 1;

		for (int j = 0; j < i; j++)
			new &= strcmp(name_of(i), name_of(j)) != 0;
		different += new;
	}
	return different;
}

static void result(FILE *to, int nodes, const char *verdict, const double payload[2])
{
	fprintf(to, "%d rank%s on %d host%s: %s\n", ranks, ranks == 1 ? "" : "s", nodes,
		nodes == 1 ? "" : "s", verdict);
	fprintf(to, "payload %.0f bytes, %.0f of them between hosts\n", payload[0], payload[1]);
}

static void hold(const char *file, int nodes, const char *verdict, const double payload[2])
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s.new", file);
	f = fopen(name, "w");
	if (!f) {
		perror(name);
		return;
	}
	result(f, nodes, verdict, payload);
	if (fclose(f) || rename(name, file)) {
		perror(file);
		return;
	}
	snprintf(name, sizeof(name), "%s.seen", file);
	for (int i = 0; i < 6000 && access(name, F_OK); i++)
		usleep(10000);
}

int main(int argc, char **argv)
{
	static const int sizes[] = {1, 100, 1500, 4096, 8192, 65536, 262144};
	int hosts = 0, any = 0, nodes;
	const char *file = NULL;
	double payload[2], all[2] = {0, 0};

	MPI_Init(&argc, &argv);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "hosts"))
			hosts = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "hold"))
			file = argv[i + 1];
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	nodes = learn_names();
	if (hosts && nodes != hosts) {
		if (rank == 0)
			fprintf(stderr, "the ranks are on %d host%s, and should be on %d\n", nodes,
				nodes == 1 ? "" : "s", hosts);
		wrong = 1;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		alltoall(sizes[i]);
		ring(sizes[i]);
	}
	ring(4 << 20);
	one_sided(8);
	one_sided(100000);
	reduction();

	payload[0] = sent;
	payload[1] = sent_across;
	MPI_Reduce(payload, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	/* The library under test may get this wrong as well, so each rank keeps its own result. */
	any |= wrong || (rank == 0 && (all[0] < payload[0] || all[1] < payload[1]));
	if (rank == 0) {
		const char *verdict = any ? "wrong" : "every byte verified";

		result(stdout, nodes, verdict, all);
		fflush(stdout);
		if (file)
			hold(file, nodes, verdict, all);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	free(names);
	return any;
}
