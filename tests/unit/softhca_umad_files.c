// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the daemon frees a umad file when its last user has closed it, and never before: not
 * when another process has looked into the FIFO, and also when inotify has not reported the close.
 * A process that opens many leaves descriptors for others.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "softhca/kernel/files.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/room.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/rdmacm/channel.h"
#include "softhca/kernel/umad/room.h"
#include "softhca_umad_rig.h"

#define QUEUED 16384	 /* events that inotify keeps, by default */
#define MOST   (1 << 20) /* where it keeps more, the queue is not filled here */

/*
 * 0: none; 1: the next openat() for both ends of a FIFO finds no file left in the system, and so
 * on.
 */
static int starve;

int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (starve && (flags & O_ACCMODE) == O_RDWR) {
		starve--;
		errno = ENFILE;
		return -1;
	}
	return __real_openat(dirfd, path, flags, mode);
}

static void name_of(const struct umad_file *f, char name[32])
{
	snprintf(name, 32, "%u.%u.%u", f->fifo.index, f->fifo.generation, f->fifo.mode);
}

static int peep(const struct umad_file *f)
{
	char path[64] = "mads/";
	int own;

	name_of(f, path + strlen(path));
	own = openat(f->u->k->dir_fd, path, O_RDONLY | O_NONBLOCK);
	assert_true(own >= 0);
	return own;
}

static uint32_t count(const struct rig *r)
{
	const struct umad_file *f;
	uint32_t n = 0;

	DL_FOREACH(r->t->k.umad->files, f)
	n++;
	return n;
}

/* What end() of the rig finds in the place of one that the test has seen freed. */
static void again(struct rig *r, int i)
{
	struct kproc p = {.host = 3, .pid = getpid()};

	assert_int_equal(umad_open(r->t->k.umad, &p, 0, O_RDWR, &r->f[i], &r->fd[i]), 0);
}

static void looked_into(void **state)
{
	struct rig r;
	uint32_t id;
	char name[32];

	(void)state;
	begin(&r, 3);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &id), 0);
	request(&r, id, 2, 1, 1, 1, 0x11);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_true(readable(&r, 0));
	name_of(r.f[0], name);
	close(peep(r.f[0]));
	umad_room.closed(&r.t->k, 0, name);
	assert_int_equal(count(&r), 2);
	/* What waits in it stays there. */
	assert_true(readable(&r, 0));
	assert_int_equal(get(&r, 0, 320), 320);
	assert_false(readable(&r, 0));
	end(&r);
}

static void last_close(void **state)
{
	struct rig r;
	char name[32];
	int twin;

	(void)state;
	begin(&r, 3);
	name_of(r.f[1], name);
	/* It lives as long as any process has it. */
	twin = dup(r.fd[1]);
	close(r.fd[1]);
	umad_room.closed(&r.t->k, 0, name);
	umad_room.tick(&r.t->k);
	assert_int_equal(count(&r), 2);
	/* Kernels may report the close before it is done, and do not report it a second time. */
	close(twin);
	assert_true(r.t->k.doubted);
	umad_room.doubted(&r.t->k);
	assert_int_equal(count(&r), 1);
	assert_int_equal(r.t->k.doubted, 0);
	again(&r, 1);
	end(&r);
}

static int queued(void)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	int n = QUEUED;

	if (f && fscanf(f, "%d", &n) != 1)
		n = QUEUED;
	if (f)
		fclose(f);
	return n;
}

static void missed(void **state)
{
	struct server s = {.listen_fd = -1,
			   .inotify = -1,
			   .signals = -1,
			   .tick = -1,
			   .again = -1,
			   .attention = -1};
	int n = queued();
	struct rig r;

	(void)state;
	if (n > MOST)
		skip();
	begin(&r, 3);
	s.k = &r.t->k;
	assert_int_equal(server_set_up(&s), 0);
	/* One after the other, since the same event is not queued twice in a row. */
	for (int i = 0; i < n; i++)
		close(peep(r.f[i % 2]));
	close(r.fd[1]);
	files_drain(&s);
	assert_int_equal(count(&r), 1);
	again(&r, 1);
	assert_int_equal(count(&r), 2);
	server_take_down(&s);
	end(&r);
}

/* That a file was in doubt is enough for the next request to find it closed. */
static void before_a_request(void **state)
{
	struct server s = {.inotify = -1};
	struct rig r;

	(void)state;
	begin(&r, 3);
	s.k = &r.t->k;
	fifo_doubt(&r.f[1]->fifo);
	assert_true(r.t->k.doubt_soon);
	r.t->k.doubt_soon = UINT64_MAX; /* however busy the machine is */
	files_drain(&s);
	assert_int_equal(count(&r), 2);
	close(r.fd[1]);
	files_drain(&s);
	assert_int_equal(count(&r), 1);
	again(&r, 1);
	end(&r);
}

/* A doubt lasts for a minute. Requests do not pay for all of it. */
static void old_doubt(void **state)
{
	struct server s = {.inotify = -1};
	struct rig r;

	(void)state;
	begin(&r, 3);
	s.k = &r.t->k;
	fifo_doubt(&r.f[1]->fifo);
	usleep(150000);
	close(r.fd[1]);
	files_drain(&s);
	assert_int_equal(count(&r), 2);
	umad_room.tick(&r.t->k);
	assert_int_equal(count(&r), 1);
	again(&r, 1);
	end(&r);
}

/*
 * To ask for readers the daemon closes its own end for a moment, and may find no file left to open
 * it again. The next look does that. Until then it has neither forgotten how to take bytes out nor
 * who reads.
 */
static void no_file_left(void **state)
{
	struct rig r;
	char name[32];
	int held;

	(void)state;
	begin(&r, 3);
	name_of(r.f[1], name);
	fifo_level(&r.f[1]->fifo, 1);
	starve = 1;
	umad_room.closed(&r.t->k, 0, name);
	assert_int_equal(starve, 0);
	assert_int_equal(count(&r), 2);
	fifo_level(&r.f[1]->fifo, 0);
	assert_int_equal(ioctl(r.fd[1], FIONREAD, &held), 0);
	assert_int_equal(held, 0);
	starve = 2;
	umad_room.closed(&r.t->k, 0, name);
	umad_room.tick(&r.t->k);
	assert_int_equal(starve, 0);
	assert_int_equal(count(&r), 2);
	close(r.fd[1]);
	umad_room.tick(&r.t->k);
	assert_int_equal(count(&r), 1);
	again(&r, 1);
	end(&r);
}

/*
 * An issm file that cannot be opened is no subnet manager: what programs have subscribed to stays,
 * no port says that it has one, and the next open succeeds.
 */
static void manager_without_file(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm, *second;
	struct rig r;
	uint8_t *asked;
	uint32_t id;
	int fd, other;

	(void)state;
	begin(&r, 3);
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, 0, &id), 0);
	asked = request(&r, id, 1, 3, 2, METHOD_SET, 3) + 56;
	mad_put16(asked, 16, 0xffff);
	asked[22] = asked[23] = 1;
	mad_put16(asked, 24, 0xffff);
	mad_put16(asked, 26, 65);
	mad_put32(asked, 32, 0xffffff);
	assert_int_equal(put(&r, 0, 320), 320);
	assert_int_equal(get(&r, 0, 320), 320);
	assert_int_equal(r.t->k.umad->ninforms, 1);
	starve = 1;
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), -ENFILE);
	assert_int_equal(starve, 0);
	assert_int_equal(r.t->k.umad->ninforms, 1);
	assert_int_equal(r.t->k.umad->managers, 0);
	assert_int_equal(r.t->k.hcas[1].sm_ports, 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	assert_int_equal(r.t->k.umad->ninforms, 0);
	/* The port has one now, and who is refused leaves it that. */
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &second, &other), -EAGAIN);
	assert_int_equal(r.t->k.umad->managers, 1);
	assert_int_equal(r.t->k.hcas[1].sm_ports, 1 << 1);
	umad_free(issm);
	close(fd);
	end(&r);
}

static void fail_card(struct rig *r, uint32_t host)
{
	struct sh_port_msg m = {.host = host, .port = 2, .what = SH_PORT_FATAL};
	struct sh_status st;

	assert_true(port_change(&r->t->k, &m, true, &st));
	assert_int_equal(st.error, 0);
}

/* The files of all its ports end, and so does the subnet manager that was there. */
static void card_failed(void **state)
{
	struct kproc p = {.host = 0, .pid = getpid()};
	struct pollfd ended = {.events = POLLIN};
	struct umad_file *issm, *second;
	struct rig r;
	uint32_t id;
	int fd[2];

	(void)state;
	begin(&r, 3);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS + 1, O_RDWR, &issm, &fd[0]), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, 1, O_RDWR, &second, &fd[1]), 0);
	assert_int_equal(reg(&r, 1, 0, 1, 1, 0, 0, 0, &id), 0);
	fail_card(&r, 0);
	assert_int_equal(count(&r), 1);
	assert_ptr_equal(r.t->k.umad->files, r.f[1]);
	assert_int_equal(r.t->k.umad->managers, 0);
	assert_int_equal(r.t->k.hcas[0].sm_ports, 0);
	ended.fd = r.fd[0];
	assert_int_equal(poll(&ended, 1, 0), 1);
	assert_true(ended.revents & POLLHUP);
	for (uint32_t port = 0; port < 2; port++) {
		assert_int_equal(umad_open(r.t->k.umad, &p, port, O_RDWR, &second, &fd[0]), -ENXIO);
		assert_int_equal(
			umad_open(r.t->k.umad, &p, UMAD_MINORS + port, O_RDWR, &second, &fd[0]),
			-ENXIO);
	}
	/* Others go on, and hear nothing from it. */
	request(&r, id, 1, 1, 1, 1, 0x11);
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), -EAGAIN);
	request(&r, id, 7, 1, 1, 1, 0x11);
	mad(&r)[AT_TID + 7]++;
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	close(r.fd[0]);
	again(&r, 0);
	end(&r);
}

enum { LIMIT = 200, SHARE = LIMIT / 4 };

/*
 * A program that opens files without end leaves descriptors of the daemon for others, of all kinds.
 */
static void share(void **state)
{
	struct kproc greedy = {.host = 3, .pid = 1000000}, other = {.host = 3, .pid = 1000001};
	struct umad_file *file[SHARE];
	struct cm_channel *ch;
	struct rlimit before, low;
	int fd[SHARE + 2];
	struct rig r;

	(void)state;
	begin(&r, 3);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < SHARE; i++)
		assert_int_equal(umad_open(r.t->k.umad, &greedy, 0, O_RDWR, &file[i], &fd[i]), 0);
	assert_int_equal(umad_open(r.t->k.umad, &greedy, 0, O_RDWR, &file[0], &fd[SHARE]), -EMFILE);
	assert_int_equal(cm_channel_open(r.t->k.rdmacm, &greedy, O_RDWR, &ch, &fd[SHARE]), -EMFILE);
	assert_int_equal(cm_channel_open(r.t->k.rdmacm, &other, O_RDWR, &ch, &fd[SHARE]), 0);
	cm_channel_free(ch);
	close(fd[SHARE]);
	/* What it closes, it may open again. */
	umad_free(file[7]);
	close(fd[7]);
	assert_int_equal(umad_open(r.t->k.umad, &greedy, 0, O_RDWR, &file[7], &fd[7]), 0);
	assert_int_equal(umad_open(r.t->k.umad, &greedy, 0, O_RDWR, &file[0], &fd[SHARE]), -EMFILE);
	while (r.t->k.umad->files->prev->pid == greedy.pid)
		umad_free(r.t->k.umad->files->prev);
	for (int i = 0; i < SHARE; i++)
		close(fd[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looked_into),
		cmocka_unit_test(last_close),
		cmocka_unit_test(missed),
		cmocka_unit_test(before_a_request),
		cmocka_unit_test(old_doubt),
		cmocka_unit_test(no_file_left),
		cmocka_unit_test(manager_without_file),
		cmocka_unit_test(card_failed),
		cmocka_unit_test(share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
