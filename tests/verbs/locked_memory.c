// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: mlockall() answers a program with a device as it does one without, when the limit is
 * 64 MiB larger; where the limit leaves no room for a device, opening it fails with ENOMEM. What is
 * locked stays what the program uses.
 * Quick: half
 */
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "verbs_test.h"

#define MIB   (1024L * 1024)
#define EXTRA (64 * MIB)
#define ROOM  (8 * MIB) /* for the test's own use between measuring and locking */

/* Returns a line of /proc/self/status in bytes. */
static long status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	long kib = -1;
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(line + strlen(name) + 1, NULL, 10);
	fclose(f);
	CHECK(kib >= 0);
	return kib * 1024;
}

static long most; /* the highest limit that this process may set */

static void allow(long bytes)
{
	struct rlimit limit = {bytes, most};

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void look_at_limit(long wanted)
{
	struct rlimit limit, more;

	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	more = limit;
	if (limit.rlim_max < (rlim_t)wanted)
		more.rlim_max = wanted;
	if (setrlimit(RLIMIT_MEMLOCK, &more))
		more = limit;
	most = more.rlim_max > LONG_MAX ? LONG_MAX : (long)more.rlim_max;
}

/* From here on limits apply. */
static void give_up_privilege(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	CHECK_EQ(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	CHECK_EQ(syscall(SYS_capset, &header, data), 0);
}

static void exchange_messages(struct side *s)
{
	struct ibv_qp *a = make_qp(s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(s, IBV_QPT_RC, NULL, NULL, NULL);

	connect_pair(s, a, b);
	for (uint64_t id = 1; id < 20; id++) {
		CHECK_EQ(post_recv1(b, s, id, 4096, 64), 0);
		CHECK_EQ(post_send1(a, s, id, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s->scq, id, IBV_WC_SUCCESS);
		expect_wc(s->rcq, id, IBV_WC_SUCCESS);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static long size_without; /* of this program before it opened a device */

static void current(int enough)
{
	struct side s;

	give_up_privilege();
	allow(enough ? size_without + EXTRA + ROOM : size_without / 2);
	side_open(&s, 2 * 4096, 64, 0);
	if (!enough) {
		CHECK_EQ(mlockall(MCL_CURRENT), -1);
		CHECK_EQ(errno, ENOMEM);
		allow(0);
		CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), -1);
		CHECK_EQ(errno, EPERM);
		CHECK_EQ(mlockall(0), -1);
		CHECK_EQ(errno, EINVAL);
		return;
	}
	CHECK_EQ(mlockall(MCL_CURRENT), 0);
	CHECK(status_of("VmLck") >= size_without / 2);
	exchange_messages(&s);
	CHECK_EQ(munlockall(), 0);
	CHECK_EQ(status_of("VmLck"), 0);
	side_close(&s);
}

static void future(int enough)
{
	struct side s;

	give_up_privilege();
	allow(most < EXTRA ? most : EXTRA);
	CHECK_EQ(mlockall(MCL_FUTURE), 0);
	if (enough) {
		side_open(&s, 2 * 4096, 64, 0);
		exchange_messages(&s);
		side_close(&s);
	} else {
		struct ibv_device **list = ibv_get_device_list(NULL);

		CHECK(list && *list);
		/* No page more may be locked. */
		allow(4096);
		CHECK(!ibv_open_device(*list));
		CHECK_EQ(errno, ENOMEM);
	}
}

/* A privileged process locks only the memory that the program has. */
static void privileged(int arg)
{
	struct rlimit limit;
	struct side s;

	(void)arg;
	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_EQ(mlockall(MCL_FUTURE), 0);
	side_open(&s, 2 * 4096, 64, 0);
	CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
	CHECK(status_of("VmLck") <= size_without + EXTRA + ROOM);
	exchange_messages(&s);
	CHECK_EQ(mlockall(MCL_CURRENT), 0);
	side_close(&s);
}

/* The capabilities of a user namespace do not lift the limit. */
static void in_namespace(int arg)
{
	struct ibv_mr *mr;
	struct side s;
	void *mem;

	(void)arg;
	CHECK_EQ(unshare(CLONE_NEWUSER), 0);
	allow(ROOM);
	side_open(&s, 4096, 16, 0);
	mem = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	errno = 0;
	mr = ibv_reg_mr(s.pd, mem, 2 * ROOM, IBV_ACCESS_LOCAL_WRITE);
	CHECK(!mr);
	CHECK_EQ(errno, ENOMEM);
	mr = ibv_reg_mr(s.pd, mem, MIB, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	side_close(&s);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__)
	/* The sanitizer's runtime intercepts mlockall() and does nothing. */
	return 0;
#endif
	test_begin();
	size_without = status_of("VmSize");
	look_at_limit(size_without + EXTRA + ROOM);
	if (!has_namespaces())
		skip_part("a process in a user namespace: users cannot make namespaces here");
	else if (most < ROOM)
		lacks_memory_for("a process in a user namespace", ROOM, (uint64_t)most);
	else
		join(spawn(in_namespace, 0));
	join(spawn(current, 0));
	join(spawn(future, 0));
	join(spawn(future, 1));
	if (!geteuid())
		join(spawn(privileged, 0));
	/* That mlockall() succeeds with a large enough limit, where the limit can be that large. */
	if (most >= size_without + EXTRA + ROOM)
		join(spawn(current, 1));
	else if (geteuid())
		lacks_memory_for("mlockall() within the limit", size_without + EXTRA + ROOM,
				 (uint64_t)most);
	else /* in a container that root may not raise it in; as root, the limit binds this part alone */
		printf("# mlockall() within the limit is left out: ulimit -l is %llu\n",
		       (unsigned long long)most / 1024);
	return test_end();
}
