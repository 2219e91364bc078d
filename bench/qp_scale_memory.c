// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What registering memory takes, for the first time and again, and what its change to shared memory
 * would take alone.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qp_scale.h"

/*
 * What the change alone takes, with no care for what the program could notice: memory in use is
 * copied to shared memory, which is mapped over it, and back, and the shared memory is freed.
 * Microseconds.
 */
static void change_by_hand(char *at, size_t size, double *there, double *back)
{
	int fd = memfd_create("plain", 0);
	double t = now_us(CLOCK_MONOTONIC);
	char *shared;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die("no shared memory");
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("no shared memory");
	memcpy(shared, at, size);
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		die("cannot map over memory");
	*there = now_us(CLOCK_MONOTONIC) - t;
	t = now_us(CLOCK_MONOTONIC);
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		die("cannot map over memory");
	memcpy(at, shared, size);
	munmap(shared, size);
	close(fd);
	*back = now_us(CLOCK_MONOTONIC) - t;
}

void measure_registration(size_t largest)
{
	double first[9], again[9], gone[9], there[9], back[9], t;
	struct side s = {0};
	struct ibv_mr *mr;
	size_t size;
	int i, reps;

	open_side(&s, KIND_RC);
	for (size = 4096; size <= largest; size *= size < (size_t)1 << 28 ? 16 : 4) {
		reps = size > (size_t)1 << 26 ? 3 : 9;
		for (i = 0; i < reps; i++) {
			char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (at == MAP_FAILED)
				die("no memory");
			t = now_us(CLOCK_MONOTONIC);
			mr = ibv_reg_mr(s.pd, at, size, IBV_ACCESS_LOCAL_WRITE);
			first[i] = now_us(CLOCK_MONOTONIC) - t;
			if (!mr || ibv_dereg_mr(mr))
				die("cannot register %zu bytes", size);
			t = now_us(CLOCK_MONOTONIC);
			mr = ibv_reg_mr(s.pd, at, size, IBV_ACCESS_LOCAL_WRITE);
			again[i] = now_us(CLOCK_MONOTONIC) - t;
			if (!mr)
				die("cannot register %zu bytes again", size);
			t = now_us(CLOCK_MONOTONIC);
			if (ibv_dereg_mr(mr))
				die("cannot deregister");
			gone[i] = now_us(CLOCK_MONOTONIC) - t;
			change_by_hand(at, size, &there[i], &back[i]);
			munmap(at, size);
		}
		printf("registered\t%zu\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", size, median(first, reps),
		       median(again, reps), median(gone, reps), median(there, reps),
		       median(back, reps));
		fflush(stdout);
	}
}
