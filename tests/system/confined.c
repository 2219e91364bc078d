// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs a command under a seccomp filter like that of a container, which all of its children
 * inherit.
 *
 * confined [--old] COMMAND [ARGUMENT...]
 *	The filter refuses what Docker's default profile refuses a container to which no capability was added, and ptrace(),
 *	which Docker refuses on kernels before 4.8 and other engines refuse on all. --old also refuses process_vm_readv() and
 *	process_vm_writev(), as Docker does on kernels before 4.8.
 * confined --try
 *	Succeeds if ptrace(), userfaultfd(), unshare() and io_uring_setup() are refused here.
 *
 * Docker's profile lists the calls that it allows. The table below has the other calls that exist,
 * and all calls that are newer than the profile.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "This test knows no other processor."
#endif

/*
 * futex_waitv(), set_mempolicy_home_node(): numbers of calls have been the same on all processors
 * since 424.
 */
#define NEWEST	       450
#define NEW_NAMESPACES 0x7e020000

static const int refused[] = {
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_clock_settime,
	SYS_delete_module,
	SYS_fanotify_init,
	SYS_finit_module,
	SYS_get_mempolicy,
	SYS_init_module,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_io_uring_setup,
	SYS_kcmp,
	SYS_kexec_file_load,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_lookup_dcookie,
	SYS_mbind,
	SYS_migrate_pages,
	SYS_mount,
	SYS_move_pages,
	SYS_nfsservctl,
	SYS_open_by_handle_at,
	SYS_perf_event_open,
	SYS_personality,
	SYS_pivot_root,
	SYS_ptrace,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_set_mempolicy,
	SYS_setdomainname,
	SYS_sethostname,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapoff,
	SYS_swapon,
	SYS_syslog,
	SYS_umount2,
	SYS_unshare,
	SYS_userfaultfd,
	SYS_vhangup,
#ifdef __x86_64__
	SYS__sysctl,
	SYS_create_module,
	SYS_get_kernel_syms,
	SYS_ioperm,
	SYS_iopl,
	SYS_query_module,
	SYS_sysfs,
	SYS_uselib,
	SYS_ustat,
#endif
	/*
	 * open_tree() to fspick(), pidfd_getfd(), process_madvise(), mount_setattr(),
	 * quotactl_fd(), set_mempolicy_home_node()
	 */
	428,
	429,
	430,
	431,
	432,
	433,
	438,
	440,
	442,
	443,
	450,
};

static struct sock_filter code[4 * (sizeof(refused) / sizeof(refused[0])) + 40];
static unsigned short length;

static void emit(unsigned int op, unsigned int k, unsigned int if_true, unsigned int if_false)
{
	code[length++] = (struct sock_filter){(__u16)op, (__u8)if_true, (__u8)if_false, k};
}

/* The number of the call is in the accumulator. */
static void answer(int number, int error)
{
	emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error, 0, 0);
}

static int confine(int old)
{
	struct sock_fprog program;

	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	/* The filter lets all calls of 32-bit programs pass. */
	emit(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit(BPF_JMP | BPF_JGT | BPF_K, NEWEST, 0, 1);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		answer(refused[i], EPERM);
	/* The C library falls back on clone(), whose flags a filter can read. */
	answer(SYS_clone3, ENOSYS);
	if (old) {
		answer(SYS_process_vm_readv, EPERM);
		answer(SYS_process_vm_writev, EPERM);
	}
	emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
	emit(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	program = (struct sock_fprog){length, code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int is_refused(const char *name, long got)
{
	if (got == -1 && errno == EPERM)
		return 1;
	fprintf(stderr, "confined: %s: %s\n", name, got == -1 ? strerror(errno) : "not refused");
	return 0;
}

static int try_all(void)
{
	int good = is_refused("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));

	good &= is_refused("userfaultfd", syscall(SYS_userfaultfd, 0));
	good &= is_refused("unshare", unshare(CLONE_NEWUSER));
	good &= is_refused("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
	return !good;
}

int main(int argc, char **argv)
{
	int old = argc > 1 && !strcmp(argv[1], "--old");

	if (argc > 1 && !strcmp(argv[1], "--try"))
		return try_all();
	if (argc < 2 + old) {
		fprintf(stderr, "usage: confined [--old] COMMAND [ARGUMENT...] | --try\n");
		return 2;
	}
	if (confine(old)) {
		/* The kernel has no seccomp, or this container may not add a filter. */
		fprintf(stderr, "confined: no filter here: %s\n", strerror(errno));
		return 77;
	}
	execvp(argv[1 + old], argv + 1 + old);
	fprintf(stderr, "confined: %s: %s\n", argv[1 + old], strerror(errno));
	return 127;
}
