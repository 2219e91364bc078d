// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* For show_waits.sh: takes away the timer of each sender that backs off, as a bug of the device
 * would. Its argument is the device memory of an instance, as /proc/PID/fd has it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1, lost = 0;
	struct sh_dev dev = {0};
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st)) {
		perror("open");
		return 1;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		  0);
	if (at == MAP_FAILED || sh_dev_attach(&dev, at, (uint64_t)st.st_size)) {
		perror("mmap");
		return 1;
	}
	for (uint32_t i = 0; i < sh_hca(&dev, 0)->qp_used; i++) {
		struct sh_qp *qp = sh_qp_slot(&dev, 0, i);

		if (!qp->qpn || !qp->rnr_waiting)
			continue;
		/*
		 * The helper thread's pending call has the old number, and so does nothing for this
		 * QP.
		 */
		qp->timer_gen++;
		qp->timer_at = 0;
		lost++;
	}
	return !lost;
}
