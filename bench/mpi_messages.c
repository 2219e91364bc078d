// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages between two ranks of an MPI job, each on a core of its own: half round trips, and the
 * rate of windows of unanswered sends. bench/messages compiles this with mpicc and starts it with
 * mpirun.
 *
 * Usage: mpi_messages latency|rate SIZE ITERATIONS CPU CPU. Prints one number: microseconds, or
 * million messages a second.
 */
#include <string.h>

#include <mpi.h>

#include "bench.h"

#define WINDOW 64

static int rank, size;
static char *out, *in;

static void send_out(void)
{
	MPI_Send(out, size, MPI_CHAR, !rank, 1, MPI_COMM_WORLD);
}

static void receive_in(void)
{
	MPI_Recv(in, size, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trip(void)
{
	if (rank == 0)
		send_out();
	receive_in();
	if (rank == 1)
		send_out();
}

static void window(void)
{
	MPI_Request requests[WINDOW];
	int answer = 0;

	for (int i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(&answer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&answer, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int iterations, ranks, rate;
	struct timing t;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 6 || ranks != 2) {
		fputs("Usage: mpirun -np 2 mpi_messages latency|rate SIZE ITERATIONS CPU CPU\n",
		      stderr);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	rate = !strcmp(argv[1], "rate");
	size = atoi(argv[2]);
	iterations = atoi(argv[3]);
	pin_to(atoi(argv[4 + rank]));
	out = aligned_alloc(4096, (size + 4095) & ~4095);
	in = aligned_alloc(4096, (size + 4095) & ~4095);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(out, 1, size);
	memset(in, 0, size);
	MPI_Barrier(MPI_COMM_WORLD);
	t = time_of(rate ? window : round_trip, rate ? iterations / WINDOW : iterations);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.4f\n", rate ? WINDOW / t.mean : t.median / 2);
	MPI_Finalize();
	return 0;
}
