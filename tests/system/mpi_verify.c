// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An MPI program that knows what it must receive: alltoall of small messages, rings of messages up to 4 MiB (eager and
 * rendezvous), a reduction, and one-sided puts. Exit status 0 when every byte was right. With "hosts N" it also wants its
 * ranks on N different processor names.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;

static uint8_t content(int from, int to, int round, size_t i)
{
	return (uint8_t)(from * 131 + to * 31 + round * 17 + i + (i >> 8) * 3);
}

static void fill(uint8_t *buf, size_t len, int to, int round)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = content(rank, to, round, i);
}

static void check(const char *what, const uint8_t *buf, size_t len, int from, int round)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i] == content(from, rank, round, i))
			continue;
		fprintf(stderr, "rank %d: %s of %zu bytes from %d, round %d: byte %zu differs\n", rank, what, len, from, round, i);
		wrong = 1;
		return;
	}
}

static uint8_t *memory(size_t len)
{
	uint8_t *buf = malloc(len);

	if (!buf) {
		fprintf(stderr, "no memory\n");
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

	for (int round = 0; round < 3; round++) {
		fill(out, len, to, round);
		memset(in, 0xee, len);
		MPI_Sendrecv(out, len, MPI_BYTE, to, 7, in, len, MPI_BYTE, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check("ring", in, len, from, round);
	}
	free(out);
	free(in);
}

static void one_sided(int len)
{
	uint8_t *window, *out = memory(len);
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Win win;

	MPI_Win_allocate(len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
	memset(window, 0xee, len);
	fill(out, len, to, 0);
	MPI_Win_fence(0, win);
	MPI_Put(out, len, MPI_BYTE, to, 0, len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check("put", window, len, from, 0);
	MPI_Win_free(&win);
	free(out);
}

static void reduction(void)
{
	long mine = rank + 1, sum = 0;

	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (long)ranks * (ranks + 1) / 2) {
		fprintf(stderr, "rank %d: the sum is %ld\n", rank, sum);
		wrong = 1;
	}
}

static int different_names(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", *all = (char *)memory((size_t)ranks * sizeof(name));
	int len, different = 0;

	MPI_Get_processor_name(name, &len);
	MPI_Allgather(name, sizeof(name), MPI_CHAR, all, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		int new = 1;

		for (int j = 0; j < i; j++)
			new &= strcmp(all + i * sizeof(name), all + j * sizeof(name)) != 0;
		different += new;
	}
	free(all);
	return different;
}

int main(int argc, char **argv)
{
	static const int sizes[] = {1, 100, 1500, 4096, 8192, 65536, 262144};
	int hosts = argc == 3 && !strcmp(argv[1], "hosts") ? atoi(argv[2]) : 0, any = 0, names;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		alltoall(sizes[i]);
		ring(sizes[i]);
	}
	ring(4 << 20);
	one_sided(8);
	one_sided(100000);
	reduction();
	names = different_names();
	if (hosts && names != hosts) {
		if (rank == 0)
			fprintf(stderr, "the ranks are on %d hosts, not %d\n", names, hosts);
		wrong = 1;
	}
	MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks on %d hosts: %s\n", ranks, names, any ? "wrong" : "every byte verified");
	MPI_Finalize();
	return any;
}
