// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For hang_hunt.sh: each rank sends to each rank, many times, in sizes for which UCX uses each of
 * its protocols, and verifies what it receives. Argument: how many times.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define MOST 65536

static unsigned char expected(int from, int to, int round, int at)
{
	return (unsigned char)(from * 31 + to * 17 + round * 7 + at);
}

static int round_of(int me, int ranks, int round, int size, unsigned char *out, unsigned char *in)
{
	for (int r = 0; r < ranks; r++)
		for (int i = 0; i < size; i++)
			out[r * size + i] = expected(me, r, round, i);
	MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		for (int i = 0; i < size; i++)
			if (in[r * size + i] != expected(r, me, round, i))
				return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static const int size[] = {8, 512, 9000, MOST};
	int rounds = argc > 1 ? atoi(argv[1]) : 10, me, ranks, bad = 0, worst;
	unsigned char *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = malloc((size_t)ranks * MOST);
	in = malloc((size_t)ranks * MOST);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < rounds; i++)
		bad |= round_of(me, ranks, i, size[i % 4], out, in);
	MPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (me == 0 && !worst)
		printf("%d ranks: every byte verified\n", ranks);
	MPI_Finalize();
	free(out);
	free(in);
	return worst;
}
