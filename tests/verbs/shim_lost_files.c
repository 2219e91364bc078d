// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: after a device was opened, its doorbells and events do not depend on descriptors,
 * the root directory or names. The test uses up all descriptors, makes an empty directory the root,
 * and reaches the instance through a link. Others than root change the root directory in a user
 * namespace.
 * Quick: half
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define MESSAGES 20

enum when { NEVER, AFTER_OPEN, AFTER_CQ, AFTER_CONNECT, AFTER_FIRST };
enum what { NO_DESCRIPTOR, NO_ROOT };

static struct side s;
static struct ibv_qp *a, *b;
static char empty[PATH_MAX];

static void lose(enum what what)
{
	struct rlimit limit = {64, 64};

	if (what == NO_ROOT) {
		CHECK_EQ(chroot(empty), 0);
		CHECK_EQ(chdir("/"), 0);
		return;
	}
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	CHECK_EQ(errno, EMFILE);
}

/* Like side_open(), but loses something on the way. */
static void open_and_lose(enum what what)
{
	struct ibv_port_attr port;

	s.context = open_device(0);
	s.channel = ibv_create_comp_channel(s.context);
	CHECK(s.channel);
	lose(what);
	CHECK_EQ(ibv_query_port(s.context, 1, &port), 0);
	s.lid = port.lid;
	s.size = 2 * 4096;
	s.buf = mmap(NULL, s.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s.buf != MAP_FAILED);
	s.pd = ibv_alloc_pd(s.context);
	CHECK(s.pd);
	s.mr = ibv_reg_mr(s.pd, s.buf, s.size, IBV_ACCESS_LOCAL_WRITE);
	CHECK(s.mr);
	s.rcq = ibv_create_cq(s.context, 64, NULL, s.channel, 0);
	s.scq = ibv_create_cq(s.context, 64, NULL, NULL, 0);
	CHECK(s.rcq && s.scq);
}

static void messages(uint64_t first)
{
	struct ibv_cq *cq;
	void *arg;

	for (uint64_t id = first; id < first + MESSAGES; id++) {
		CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
		CHECK_EQ(post_recv1(b, &s, id, 4096, 64), 0);
		fill(s.buf, 64, id);
		CHECK_EQ(post_send1(a, &s, id, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, id, IBV_WC_SUCCESS);
		/* The event comes, and is for this CQ. */
		CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &arg), 0);
		CHECK(cq == s.rcq);
		ibv_ack_cq_events(cq, 1);
		expect_wc(s.rcq, id, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + 4096, 64, id), -1);
	}
}

static void one(int arg)
{
	enum what what = arg % 2;
	enum when when = arg / 2;

	if (what == NO_ROOT && geteuid())
		CHECK_EQ(unshare(CLONE_NEWUSER), 0);
	if (when == AFTER_OPEN)
		open_and_lose(what);
	else
		side_open(&s, 2 * 4096, 64, SIDE_CHANNEL);
	if (when == AFTER_CQ)
		lose(what);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	if (when == AFTER_CONNECT)
		lose(what);
	messages(1);
	if (when == AFTER_FIRST)
		lose(what);
	messages(1 + MESSAGES);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

/* Runs this program again, with a name of the same instance that has a link in its path. */
static void through_link(int arg)
{
	const char *instance = getenv("SOFTHCA_INSTANCE"), *base = getenv("SOFTHCA_DIR"),
		   *work = getenv("WORK");
	char link[PATH_MAX], name[2 * PATH_MAX], self[PATH_MAX] = "";
	char *argv[] = {self, (char *)"0", NULL};

	(void)arg;
	CHECK(instance && work && (base || instance[0] == '/'));
	snprintf(link, sizeof(link), "%s/link-%d", work, (int)getpid());
	if (instance[0] == '/') {
		char dir[PATH_MAX], *slash;

		snprintf(dir, sizeof(dir), "%s", instance);
		slash = strrchr(dir, '/');
		*slash = '\0';
		CHECK_EQ(symlink(dir, link), 0);
		snprintf(name, sizeof(name), "%s/%s", link, slash + 1);
	} else {
		CHECK_EQ(symlink(base, link), 0);
		snprintf(name, sizeof(name), "%s/%s", link, instance);
	}
	CHECK_EQ(setenv("SOFTHCA_INSTANCE", name, 1), 0);
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	execv(self, argv);
	exit(1);
}

int main(int argc, char **argv)
{
	const char *work = getenv("WORK");

	test_begin();
	CHECK(work);
	snprintf(empty, sizeof(empty), "%s/empty-%d", work, (int)getpid());
	CHECK_EQ(mkdir(empty, 0700), 0);
	if (argc > 1) {
		one(atoi(argv[1])); /* only this part */
		return 0;
	}
	join(spawn(through_link, 0));
	for (int when = AFTER_OPEN; when <= AFTER_FIRST; when++)
		join(spawn(one, when * 2 + NO_DESCRIPTOR));
	if (geteuid() && !has_namespaces())
		skip_part("the root directory cannot be changed: run it as root, or where users "
			  "can make namespaces");
	else
		for (int when = AFTER_OPEN; when <= AFTER_FIRST; when++)
			join(spawn(one, when * 2 + NO_ROOT));
	return test_end();
}
