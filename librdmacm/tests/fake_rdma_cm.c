// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See fake_rdma_cm.h: the kernel and the tree. A lock keeps threads apart. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_parts.h"

struct fake_cm fake;

enum { MAX_FD = 1024, MAX_EVENTS = 16, EVENT_SIZE = 328 };
enum kind { OTHER, RDMA_CM, UVERBS };

static enum kind kinds[MAX_FD];
static uint8_t events[MAX_EVENTS][EVENT_SIZE];
static unsigned int first_event, last_event;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char sysfs[64];

void fake_note(const char *format, ...)
{
	size_t used = strlen(fake.log);
	va_list args;

	va_start(args, format);
	vsnprintf(fake.log + used, sizeof(fake.log) - used, format, args);
	va_end(args);
}

static uint64_t get(const uint8_t *p, size_t offset, size_t size)
{
	uint64_t value = 0;

	/* Numbers are in host order. */
	if (size == 1)
		return p[offset];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&value, p + offset, size);
#else
	memcpy((uint8_t *)&value + 8 - size, p + offset, size);
#endif
	return value;
}

static void put(uint8_t *p, size_t offset, size_t size, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(p + offset, &value, size);
#else
	memcpy(p + offset, (uint8_t *)&value + 8 - size, size);
#endif
}

static void zero(const uint8_t *body, size_t from, size_t to)
{
	for (; from < to; from++)
		if (body[from])
			fake.pads_zero = 0;
}

/* The family and, where there is one, the port. */
static void note_addr(const uint8_t *addr)
{
	unsigned int family = get(addr, 0, 2), i;

	if (family == AF_INET)
		fake_note(" %u.%u.%u.%u:%u", addr[4], addr[5], addr[6], addr[7],
			  addr[2] << 8 | addr[3]);
	else if (family == AF_INET6)
		fake_note(" [..%02x%02x]:%u", addr[22], addr[23], addr[2] << 8 | addr[3]);
	else if (family == AF_IB)
		fake_note(" ib(..%02x) sid %02x%02x%02x%02x", addr[23], addr[28], addr[29],
			  addr[30], addr[31]);
	else
		fake_note(" family %u", family);
	for (i = family == AF_INET ? 16 : 28; family != AF_IB && i < 28; i++)
		if (addr[i])
			fake.pads_zero = 0;
}

static void note_conn(const uint8_t *c)
{
	fake_note(" qpn %u srq %u rr %u id %u fc %u retry %u rnr %u valid %u data %u:%02x%02x",
		  (unsigned int)get(c, 0, 4), c[265], c[266], c[267], c[268], c[269], c[270],
		  c[271], c[264], c[8], c[9]);
	zero(c, 4, 8);
	zero(c, 8 + c[264], 264);
}

/* Writes the body down, by number. */
static void note_body(unsigned int number, const uint8_t *b)
{
	switch (number) {
	case 0:
		fake_note(" ps %x type %u", (unsigned int)get(b, 16, 2), b[18]);
		zero(b, 19, 24);
		break;
	case 1:
	case 17:
		fake_note(" id %u", (unsigned int)get(b, 8, 4));
		zero(b, 12, 16);
		break;
	case 2:
		fake_note(" id %u", (unsigned int)get(b, 36, 4));
		note_addr(b + 8);
		zero(b, 0, 8);
		break;
	case 3:
		fake_note(" id %u", (unsigned int)get(b, 56, 4));
		note_addr(b);
		note_addr(b + 28);
		fake_note(" %u ms", (unsigned int)get(b, 60, 4));
		break;
	case 4:
		fake_note(" id %u %u ms", (unsigned int)get(b, 0, 4), (unsigned int)get(b, 4, 4));
		break;
	case 5:
	case 19:
		fake_note(" id %u option %u", (unsigned int)get(b, 8, 4),
			  (unsigned int)get(b, 12, 4));
		break;
	case 6:
		fake_note(" id %u", (unsigned int)get(b, 272, 4));
		note_conn(b);
		zero(b, 276, 280);
		break;
	case 7:
		fake_note(" id %u backlog %d", (unsigned int)get(b, 0, 4), (int)get(b, 4, 4));
		break;
	case 8:
		fake_note(" id %u uid %s", (unsigned int)get(b, 280, 4),
			  get(b, 0, 8) ? "set" : "0");
		note_conn(b + 8);
		zero(b, 284, 288);
		break;
	case 9:
		fake_note(" id %u reason %u data %u:%02x", (unsigned int)get(b, 0, 4), b[5], b[4],
			  b[8]);
		zero(b, 6, 8);
		zero(b, 8 + b[4], 264);
		break;
	case 10:
		fake_note(" id %u", (unsigned int)get(b, 0, 4));
		break;
	case 11:
		fake_note(" id %u state %u", (unsigned int)get(b, 8, 4),
			  (unsigned int)get(b, 12, 4));
		break;
	case 14:
		fake_note(" id %u level %u name %u len %u value %u", (unsigned int)get(b, 8, 4),
			  (unsigned int)get(b, 12, 4), (unsigned int)get(b, 16, 4),
			  (unsigned int)get(b, 20, 4),
			  get(b, 20, 4) ? *(uint8_t *)(uintptr_t)get(b, 0, 8) : 0);
		break;
	case 15:
		fake_note(" id %u event %u", (unsigned int)get(b, 0, 4),
			  (unsigned int)get(b, 4, 4));
		break;
	case 16:
		fake_note(" id %u", (unsigned int)get(b, 44, 4));
		note_addr(b + 16);
		break;
	case 18:
		fake_note(" id %u", (unsigned int)get(b, 8, 4));
		break;
	case 20:
		fake_note(" id %u size %u", (unsigned int)get(b, 0, 4), (unsigned int)get(b, 4, 2));
		note_addr(b + 8);
		zero(b, 6, 8);
		zero(b, 8 + get(b, 4, 2), 136);
		break;
	case 21:
		fake_note(" id %u sizes %u %u", (unsigned int)get(b, 0, 4),
			  (unsigned int)get(b, 8, 2), (unsigned int)get(b, 10, 2));
		note_addr(b + 16);
		note_addr(b + 144);
		fake_note(" %u ms", (unsigned int)get(b, 4, 4));
		zero(b, 12, 16);
		zero(b, 16 + get(b, 8, 2), 144);
		zero(b, 144 + get(b, 10, 2), 272);
		break;
	case 22:
		fake_note(" id %u size %u flags %u", (unsigned int)get(b, 16, 4),
			  (unsigned int)get(b, 20, 2), (unsigned int)get(b, 22, 2));
		note_addr(b + 24);
		break;
	default:
		break;
	}
}

/* ---- Answers ---- */

static const uint8_t guid[8] = {0x00, 0x02, 0xc9, 0x03, 0x00, 0x01, 0x02, 0x03};

static void put_sin(uint8_t *addr, unsigned int host, unsigned int port)
{
	put(addr, 0, 2, AF_INET);
	addr[2] = port >> 8;
	addr[3] = port;
	addr[4] = 10;
	addr[7] = host;
}

static void put_gid(uint8_t *gid, unsigned int host)
{
	gid[0] = 0xfe;
	gid[1] = 0x80;
	gid[15] = host;
}

static void answer_route(uint8_t *r)
{
	put_sin(r + 136, 1, 7471);
	put_sin(r + 164, 2, 7472);
	if (!fake.with_device)
		return;
	memcpy(r, guid, sizeof(guid));
	put_gid(r + 8, 2);
	put_gid(r + 24, 1);
	put(r, 192, 4, fake.num_paths);
	r[8 + 32 + 1] = 7; /* dlid, network order */
	r[8 + 52] = r[8 + 53] = 0xff;
	put(r, 8 + 48, 4, IBV_MTU_2048);
	r[196] = 1;
}

static void answer_addr(uint8_t *r, int gids)
{
	size_t size = gids ? 48 : 16;

	if (fake.with_device) {
		memcpy(r, guid, sizeof(guid));
		r[8] = 1;
		r[10] = r[11] = 0xff;
	}
	put(r, 12, 2, size);
	put(r, 14, 2, size);
	if (gids) {
		put(r, 16, 2, AF_IB);
		put(r, 144, 2, AF_IB);
		if (fake.with_device) {
			put_gid(r + 16 + 8, 1);
			put_gid(r + 144 + 8, 2);
		}
	} else {
		put_sin(r + 16, 1, 7471);
		put_sin(r + 144, 2, 7472);
	}
}

static void answer_path(uint8_t *r)
{
	int i;

	put(r, 0, 4, fake.num_paths);
	for (i = 0; i < fake.num_paths; i++) {
		uint8_t *path = r + 8 + 72 * i + 8;

		put(r, 8 + 72 * i, 4, 0x2b);
		put_gid(path + 8, 2);
		put_gid(path + 24, 1);
		path[41] = 7;
		path[45] = 0x12; /* flow label 0x1234, hop limit 5 */
		path[46] = 0x34;
		path[47] = 5;
		path[49] = 0x80;
		path[50] = path[51] = 0xff;
		path[53] = 3;
		path[54] = 2 << 6 | IBV_MTU_2048;
		path[55] = 2 << 6 | IBV_RATE_10_GBPS;
		path[56] = 2 << 6 | 18;
	}
}

static void answer_attr(uint8_t *r, unsigned int state)
{
	put(r, 0, 4, fake.attr_mask[state]);
	put(r, 4, 4, state);
	put(r, 12, 4, IBV_MTU_2048);
	put(r, 20, 4, RDMA_UDP_QKEY);
	put(r, 32, 4, 0x321);
	r[130] = 9; /* max_rd_atomic, and max_dest_rd_atomic */
	r[131] = 8;
	r[133] = 1;
}

static int answer(unsigned int number, const uint8_t *b, size_t room)
{
	static const size_t at[23] = {[0] = 8};
	/* Only commands that are answered have an address there; some others are shorter. */
	uint8_t *to = room ? (uint8_t *)(uintptr_t)get(b, at[number], 8) : NULL, r[1024] = {0};

	switch (number) {
	case 0:
		put(r, 0, 4, fake.next_id++);
		break;
	case 16:
	case 22:
		put(r, 0, 4, 77);
		break;
	case 1:
	case 17:
	case 18:
		put(r, 0, 4, fake.events_reported);
		fake.events_reported = 0;
		break;
	case 5:
		answer_route(r);
		break;
	case 19:
		if (get(b, 12, 4) == 1)
			answer_path(r);
		else
			answer_addr(r, get(b, 12, 4) == 2);
		break;
	case 11:
		answer_attr(r, get(b, 12, 4));
		break;
	case 12:
		if (first_event == last_event)
			return EAGAIN;
		memcpy(r, events[first_event++], EVENT_SIZE);
		break;
	case 20:
		return !fake.has_ib ? EINVAL : 0;
	default:
		return 0;
	}
	memcpy(to, r, room < sizeof(r) ? room : sizeof(r));
	return 0;
}

static ssize_t rdma_cm_write(const uint8_t *buf, size_t len)
{
	static const char *const names[] = {
		"CREATE_ID",   "DESTROY_ID",	"BIND_IP",     "RESOLVE_IP", "RESOLVE_ROUTE",
		"QUERY_ROUTE", "CONNECT",	"LISTEN",      "ACCEPT",     "REJECT",
		"DISCONNECT",  "INIT_QP_ATTR",	"GET_EVENT",   "GET_OPTION", "SET_OPTION",
		"NOTIFY",      "JOIN_IP_MCAST", "LEAVE_MCAST", "MIGRATE_ID", "QUERY",
		"BIND",	       "RESOLVE_ADDR",	"JOIN_MCAST",
	};
	unsigned int number = get(buf, 0, 4);
	int err;

	if (len < 8 || number >= 23 || get(buf, 4, 2) + 8 != len) {
		errno = EINVAL;
		return -1;
	}
	memcpy(fake.last, buf, len);
	fake.last_len = len;
	fake_note("%s %u %u", names[number], (unsigned int)get(buf, 4, 2),
		  (unsigned int)get(buf, 6, 2));
	note_body(number, buf + 8);
	fake_note("\n");
	if (fake.fail_command == (int)number) {
		fake.fail_command = -1;
		errno = fake.fail_errno;
		return -1;
	}
	err = answer(number, buf + 8, get(buf, 6, 2));
	if (err) {
		errno = err;
		return -1;
	}
	return len;
}

ssize_t write(int fd, const void *buf, size_t len)
{
	enum kind kind = fd >= 0 && fd < MAX_FD ? kinds[fd] : OTHER;
	void (*at_join)(void);
	ssize_t ret;

	switch (kind) {
	case RDMA_CM:
		/* As the C library's, before it does anything */
		pthread_testcancel();
		pthread_mutex_lock(&lock);
		ret = rdma_cm_write(buf, len);
		if (ret > 0 && fake.cancel_at_event && get(buf, 0, 4) == 12) {
			fake.cancel_at_event = 0;
			pthread_cancel(pthread_self());
		}
		if (ret > 0 && fake.cancel_at == (int)get(buf, 0, 4)) {
			fake.cancel_at = -1;
			pthread_cancel(pthread_self());
		}
		if (ret > 0 && get(buf, 0, 4) == 17)
			__atomic_fetch_add(&fake.left, 1, __ATOMIC_SEQ_CST);
		at_join = fake.at_join;
		if (ret < 0 || (get(buf, 0, 4) != 16 && get(buf, 0, 4) != 22))
			at_join = NULL;
		if (at_join)
			fake.at_join = NULL;
		pthread_mutex_unlock(&lock);
		if (at_join)
			at_join();
		return ret;
	case UVERBS:
		/*
		 * The question whether there is XRC, of OFED's kind: about a domain that does not
		 * exist.
		 */
		if (get(buf, 0, 4) == 40) {
			errno = EINVAL;
			return -1;
		}
		/* A completion channel is a descriptor: any will do. */
		put((uint8_t *)(uintptr_t)get(buf, 8, 8), 0, 4, eventfd(0, EFD_CLOEXEC));
		return len;
	default:
		return syscall(SYS_write, fd, buf, len);
	}
}

/* The C library has two names for open(), and libibverbs may call either. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int open(const char *path, int flags, ...)
{
	int fd, mode;
	va_list args;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);

	if (!strcmp(path, "/dev/infiniband/rdma_cm")) {
		if (flags != (O_RDWR | O_CLOEXEC))
			abort();
		fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0);
		if (fd >= 0 && fd < MAX_FD) {
			kinds[fd] = RDMA_CM;
			fake.channels++;
		}
		return fd;
	}
	if (!strcmp(path, "/dev/infiniband/uverbs0")) {
		fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0);
		if (fd >= 0 && fd < MAX_FD)
			kinds[fd] = UVERBS;
		return fd;
	}
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int fd)
{
	if (fd >= 0 && fd < MAX_FD) {
		if (kinds[fd] == RDMA_CM)
			fake.channels--;
		kinds[fd] = OTHER;
	}
	return syscall(SYS_close, fd);
}

void fake_event_(uint64_t uid, uint32_t id, uint32_t event, int status,
		 const struct fake_field *fields, size_t n)
{
	uint8_t *e = events[last_event++];
	size_t i;

	assert_true(last_event < MAX_EVENTS);
	memset(e, 0, EVENT_SIZE);
	put(e, 0, 8, uid);
	put(e, 8, 4, id);
	put(e, 12, 4, event);
	put(e, 16, 4, (uint32_t)status);
	for (i = 0; i < n; i++)
		if (fields[i].size)
			put(e, fields[i].offset, fields[i].size, fields[i].value);
}

void fake_expect(const char *log)
{
	if (strcmp(fake.log, log))
		fail_msg("asked:\n%smust be:\n%s", fake.log, log);
	assert_true(fake.pads_zero);
	fake.log[0] = 0;
}

void fake_ignore(void)
{
	fake.log[0] = 0;
}

/* ---- The tree ---- */

static void put_file(const char *path, const char *text)
{
	char name[256], *slash;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", sysfs, path);
	for (slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(name, 0755);
		*slash = '/';
	}
	f = fopen(name, "w");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(name);
		abort();
	}
}

int fake_start(int abi, int has_ib)
{
	char text[16];

	alarm(60);
	snprintf(sysfs, sizeof(sysfs), "/tmp/librdmacm-test-XXXXXX");
	if (!mkdtemp(sysfs))
		return -1;
	snprintf(text, sizeof(text), "%d\n", abi);
	put_file("class/misc/rdma_cm/abi_version", text);
	put_file("class/infiniband_verbs/abi_version", "6\n");
	put_file("class/infiniband_verbs/uverbs0/ibdev", "fake_0\n");
	put_file("class/infiniband_verbs/uverbs0/abi_version", "1\n");
	put_file("class/infiniband/fake_0/node_type", "1: CA\n");
	put_file("class/infiniband/fake_0/node_guid", "0002:c903:0001:0203\n");
	put_file("class/infiniband/fake_0/ports/1/pkeys/0", "0x8001\n");
	put_file("class/infiniband/fake_0/ports/1/pkeys/1", "0xffff\n");
	setenv("SYSFS_PATH", sysfs, 1);
	unsetenv("RDMAV_DRIVERS");
	unsetenv("IBV_DRIVERS");
	ibv_register_driver("fake", fake_driver_init);
	fake.has_ib = has_ib;
	fake_reset();
	return 0;
}

static int remove_one(const char *path, const struct stat64 *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void fake_stop(void)
{
	nftw64(sysfs, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	fake_provider_stop();
}

void fake_reset(void)
{
	static const uint32_t masks[7] = {
		[IBV_QPS_INIT] =
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
				0xe00000,
		[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT,
	};
	int has_ib = fake.has_ib, objects = fake.objects, channels = fake.channels;

	memset(&fake, 0, sizeof(fake));
	fake.has_ib = has_ib;
	fake.objects = objects;
	fake.channels = channels;
	fake.with_device = 1;
	fake.num_paths = 1;
	fake.pads_zero = 1;
	fake.next_id = 5;
	fake.fail_command = -1;
	fake.cancel_at = -1;
	memcpy(fake.attr_mask, masks, sizeof(masks));
	first_event = last_event = 0;
	fake_provider_reset();
}

int fake_setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

int fake_teardown(void **state)
{
	(void)state;
	if (fake.objects || fake.channels) {
		print_error("left: %d objects, %d channels\n", fake.objects, fake.channels);
		fake.objects = fake.channels = 0;
		return -1;
	}
	return 0;
}
