// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For launchers.sh: where the ranks of a job run. Each opens the first device that it finds and
 * says which host it is on; rank 0 prints one line for each, and whether devices are those of the
 * hosts. Knows libibverbs by its symbols only.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct here {
	char name[64];	    /* gethostname() */
	char processor[64]; /* MPI_Get_processor_name() */
	char device[64];    /* node_desc: the host that the device belongs to */
	long id;	    /* gethostid() */
	uint64_t guid;
	int opened;
};

static void look_at_device(struct here *here)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	void **(*get)(int *) = (void **(*)(int *))(uintptr_t)dlsym(lib, "ibv_get_device_list");
	void *(*open_it)(void *) = (void *(*)(void *))(uintptr_t)dlsym(lib, "ibv_open_device");
	uint64_t (*guid)(void *) =
		(uint64_t(*)(void *))(uintptr_t)dlsym(lib, "ibv_get_device_guid");
	FILE *file = fopen("/sys/class/infiniband/mlx4_0/node_desc", "r");
	void **list = get ? get(NULL) : NULL;

	if (list && list[0]) {
		here->guid = guid(list[0]);
		here->opened = open_it(list[0]) != NULL;
	}
	if (file && fscanf(file, "softhca-%63s", here->device) != 1)
		here->device[0] = '\0';
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	struct here here = {0}, all[16];
	int rank, size, len;

	if (MPI_Init(&argc, &argv))
		return 1;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > 16)
		MPI_Abort(MPI_COMM_WORLD, 1);
	gethostname(here.name, sizeof(here.name));
	MPI_Get_processor_name(here.processor, &len);
	here.id = gethostid();
	look_at_device(&here);
	MPI_Gather(&here, sizeof(here), MPI_BYTE, all, sizeof(here), MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size; i++) {
		int right = all[i].opened && !strcmp(all[i].name, all[i].device) &&
			    !strcmp(all[i].name, all[i].processor);

		for (int j = 0; j < size; j++) {
			int same = !strcmp(all[i].name, all[j].name);

			right &= same == (all[i].guid == all[j].guid) &&
				 same == (all[i].id == all[j].id);
		}
		printf("rank %d: %s, %s\n", i, all[i].name,
		       right ? "with its device" : "not with its own");
	}
	MPI_Finalize();
	return 0;
}
