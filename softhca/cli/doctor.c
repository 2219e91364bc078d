// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * `softhca doctor`: tries what softhca needs of this machine, one thing after the other, as an
 * instance and its programs would use it, and says what mends each. Makes the place of instances,
 * as run does. Otherwise it changes nothing and leaves nothing behind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plural.h"
#include "softhca.h"
#include "softhca/host/places.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"

#define FILES_OF_HCA	   300	 /* an instance makes about so many in its place */
#define LOCKED_KIB	   81920 /* what programs with many queues register */
#define DESCRIPTORS	   256
#define LEAST_DESCRIPTORS  32 /* the daemon and a ping-pong take not quite so many each */
#define ENOUGH_DESCRIPTORS 1024
#define SOME_USE	   (UINT64_C(64) << 20) /* of queues and registered memory */

enum verdict { GOOD, POOR, BAD };

static enum verdict worst;

static void tell(enum verdict verdict, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void tell(enum verdict verdict, const char *what, const char *format, ...)
{
	static const char *const words[] = {"good", "poor", "BAD"};
	va_list args;

	printf("%-5s %-16s ", words[verdict], what);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	if (verdict > worst)
		worst = verdict;
}

static void look_at_proc(void)
{
	if (access("/proc/self/fd", X_OK))
		tell(BAD, "/proc",
		     "is not mounted, and softhca reaches programs through it: mount -t proc proc "
		     "/proc");
	else
		tell(GOOD, "/proc", "is mounted");
}

static void look_at_pages(void)
{
	char text[256];

	if (sh_page_size_known(sysconf(_SC_PAGESIZE), text, sizeof(text)))
		tell(GOOD, "pages", "have %ld bytes", sysconf(_SC_PAGESIZE));
	else
		tell(BAD, "pages", "%s", text);
}

static void look_at_place(void)
{
	static char tried[SH_PLACES * (PATH_MAX + SH_PLACE_WHY)]; /* the stack may be small */
	char place[PATH_MAX];
	struct statvfs fs;

	if (sh_place_make(place, tried, sizeof(tried))) {
		tell(BAD, "place",
		     "no directory can be used for instances (tried in turn: %s): mend one of "
		     "these, or set "
		     "SOFTHCA_DIR to a directory of yours that only you can write to",
		     tried);
		return;
	}
	if (statvfs(place, &fs) == 0 && fs.f_files && fs.f_favail < FILES_OF_HCA)
		tell(BAD, "place",
		     "%s has room for only %lu more file%s, and an instance makes about %d for "
		     "each "
		     "HCA: delete some, or "
		     "set SOFTHCA_DIR to a directory elsewhere",
		     place, (unsigned long)fs.f_favail, plural(fs.f_favail), FILES_OF_HCA);
	else if (statvfs(place, &fs) == 0 && fs.f_bavail * fs.f_frsize < FILES_OF_HCA * 4096)
		tell(BAD, "place",
		     "%s is full: free some space there, or set SOFTHCA_DIR to a directory "
		     "elsewhere",
		     place);
	else
		tell(GOOD, "place", "%s", place);
}

/* Makes device memory as the daemon does, and maps it as programs do. */
static void look_at_memory(void)
{
	const struct sh_config one = {.hosts = 1,
				      .hcas_per_host = 1,
				      .ports = 1,
				      .cqe_size = 32,
				      .face = SH_FACE_MAINLINE,
				      .driver_abi = 3};
	uint64_t size = sh_instance_size(&one), used = sh_instance_tables(&one) + SOME_USE;
	int fd = memfd_create("softhca-doctor", MFD_CLOEXEC);
	void *map;

	if (fd < 0) {
		tell(BAD, "device memory",
		     "cannot be made (memfd_create: %s): see ulimit -n, and the container's "
		     "seccomp profile",
		     strerror(errno));
		return;
	}
	signal(SIGXFSZ, SIG_IGN);
	if (ftruncate(fd, (off_t)size)) {
		tell(BAD, "device memory",
		     "cannot be made (%s), because it counts as a file: ulimit -f unlimited",
		     strerror(errno));
		close(fd);
		return;
	}
	map = mmap(NULL, used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED)
		tell(BAD, "device memory",
		     "each process needs at least %.1f GiB of addresses (not of memory), and "
		     "cannot map them (%s): "
		     "ulimit -v unlimited",
		     (double)used / (1 << 30), strerror(errno));
	else
		tell(GOOD, "device memory", "%.1f GiB of addresses can be mapped",
		     (double)used / (1 << 30));
	if (map != MAP_FAILED)
		munmap(map, used);
	close(fd);
}

/*
 * A child tries to read this process's memory. The kernel treats it like the daemon and other
 * programs, which are not ancestors of this process either.
 */
static int reach_parent(const char *byte)
{
	struct iovec own = {.iov_len = 1}, theirs = {.iov_base = (void *)byte, .iov_len = 1};
	pid_t parent = getpid(), pid;
	char got;
	int status = EIO << 8;

	own.iov_base = &got;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	if (pid == 0)
		_exit(process_vm_readv(parent, &own, 1, &theirs, 1, 0) == 1 ? 0 : errno);
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void look_at_processes(void)
{
	int err = reach_parent("x"), scope = 0;
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (file) {
		if (fscanf(file, "%d", &scope) != 1)
			scope = 0;
		fclose(file);
	}
	if (!err)
		tell(GOOD, "processes", "can access each other's memory");
	else if (err == EPERM && scope > 1)
		tell(BAD, "processes",
		     "cannot access each other's memory: as root, run sysctl "
		     "kernel.yama.ptrace_scope=1 (it is %d)",
		     scope);
	else
		tell(BAD, "processes",
		     "cannot access each other's memory (process_vm_readv: %s): a seccomp profile "
		     "or a security "
		     "module forbids it; try docker run --security-opt seccomp=unconfined",
		     strerror(err));
}

static bool may_lock_all(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (file)
		fclose(file);
	return (caps >> 14 & 1) /* CAP_IPC_LOCK */ && !sh_in_user_namespace();
}

static void look_at_limits(void)
{
	struct rlimit locked, files;

	getrlimit(RLIMIT_MEMLOCK, &locked);
	getrlimit(RLIMIT_NOFILE, &files);
	if (locked.rlim_cur == RLIM_INFINITY)
		tell(GOOD, "locked memory", "has no limit");
	else if (may_lock_all())
		tell(GOOD, "locked memory",
		     "is limited to %llu KiB, but not for this process, which has CAP_IPC_LOCK",
		     (unsigned long long)locked.rlim_cur / 1024);
	else if (locked.rlim_cur / 1024 < LOCKED_KIB)
		tell(POOR, "locked memory",
		     "is limited to %llu KiB, and registered memory and queues count; if programs "
		     "fail with "
		     "\"Cannot allocate memory\": %s",
		     (unsigned long long)locked.rlim_cur / 1024,
		     locked.rlim_max == RLIM_INFINITY ? "ulimit -l unlimited"
						      : "a line in /etc/security/limits.d, or "
							"docker run --ulimit memlock=-1");
	else
		tell(GOOD, "locked memory",
		     "is limited to %llu KiB, which is enough for most programs",
		     (unsigned long long)locked.rlim_cur / 1024);
	if (files.rlim_cur == RLIM_INFINITY)
		tell(GOOD, "descriptors", "have no limit");
	else if (files.rlim_cur < LEAST_DESCRIPTORS && files.rlim_max >= ENOUGH_DESCRIPTORS)
		tell(BAD, "descriptors",
		     "are limited to %llu, which is too few for an instance: ulimit -n %d",
		     (unsigned long long)files.rlim_cur, ENOUGH_DESCRIPTORS);
	else if (files.rlim_cur < LEAST_DESCRIPTORS)
		tell(BAD, "descriptors",
		     "are limited to %llu, which is too few for an instance, and ulimit -n allows "
		     "%llu at most: a line in /etc/security/limits.d, or docker run --ulimit "
		     "nofile=%d",
		     (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max,
		     ENOUGH_DESCRIPTORS);
	else if (files.rlim_cur >= DESCRIPTORS)
		tell(GOOD, "descriptors", "are limited to %llu, which is enough for most programs",
		     (unsigned long long)files.rlim_cur);
	else if (files.rlim_max >= ENOUGH_DESCRIPTORS)
		tell(POOR, "descriptors",
		     "are limited to %llu, which is too few for many programs: ulimit -n %d",
		     (unsigned long long)files.rlim_cur, ENOUGH_DESCRIPTORS);
	else
		tell(POOR, "descriptors",
		     "are limited to %llu, which is too few for many programs, and ulimit -n "
		     "allows %llu at "
		     "most: a line in /etc/security/limits.d, or docker run --ulimit nofile=%d",
		     (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max,
		     ENOUGH_DESCRIPTORS);
}

/* Without it softhca is slower in programs with threads, and just as correct. */
static void look_at_faults(void)
{
	long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		tell(POOR, "userfaultfd",
		     "cannot be used (%s): a message to or from memory that a program with threads "
		     "registers before it has used it takes one more system call. If that matters, "
		     "and every user may hold up page faults: as root, sysctl "
		     "vm.unprivileged_userfaultfd=1",
		     strerror(errno));
	else
		tell(GOOD, "userfaultfd", "can be used");
	if (fd >= 0)
		close((int)fd);
}

/* In a child: a library's constructors run, and the library stays loaded. */
static bool loads(const char *library, const char *symbol)
{
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		void *handle = dlopen(library, RTLD_LAZY);

		_exit(handle && (!symbol || dlsym(handle, symbol)) ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && !status;
}

static void look_at_libraries(void)
{
	char shim[PATH_MAX], ours[PATH_MAX];
	bool have_ours;

	if (access("/proc/self/exe", F_OK)) {
		tell(POOR, "preload", "cannot be found without /proc");
		return;
	}
	if (!find_shim(shim)) {
		tell(BAD, "preload",
		     "the library that shows programs the devices is not where it was installed: "
		     "install softhca again");
		return;
	}
	tell(GOOD, "preload", "%s", shim);
	have_ours = own_library(shim, ours);
	if (loads("libibverbs.so.1", "ibv_open_xrc_domain"))
		tell(GOOD, "libibverbs", "programs find a library of OFED's generation");
	else if (loads("libibverbs.so.1", NULL))
		tell(GOOD, "libibverbs", "programs find rdma-core's%s%s",
		     have_ours ? "; for those linked with OFED's, softhca has " : "",
		     have_ours ? ours : "");
	else if (have_ours)
		tell(GOOD, "libibverbs", "%s, for programs that are linked against it", ours);
	else
		tell(POOR, "libibverbs",
		     "programs find none: install one, such as the package libibverbs-xrc1 or "
		     "libibverbs1");
}

int verb_doctor(int argc, char **argv)
{
	if (argc == 2 && is_help(argv[1])) {
		puts("Usage: softhca doctor\n\nCheck whether this machine has what an instance and "
		     "its programs need, and say how to get\n"
		     "what is missing. The exit status is 0 when softhca can work here, 1 when it "
		     "cannot.");
		return 0;
	}
	if (argc != 1) {
		complain("softhca doctor takes no arguments; leave out \"%s\"", argv[1]);
		return EXIT_USAGE;
	}
	/* Where the caller ignores it, no child can be waited for. */
	signal(SIGCHLD, SIG_DFL);
	look_at_proc();
	look_at_pages();
	look_at_place();
	look_at_memory();
	look_at_processes();
	look_at_limits();
	look_at_faults();
	look_at_libraries();
	puts(worst == BAD ? "softhca cannot work here." : "softhca can work here.");
	return worst == BAD;
}
