// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The fake kernel of the provider's tests. One thread at a time commands it. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake-kernel.h"

struct fake_kernel fk;

static char sysfs[64];
static int device_fd = -1;
static int async_fd = -1;
static uint32_t next_handle = 1;

uint16_t be16_at(const void *p, size_t offset)
{
	return be16toh(field_get(p, offset, 2));
}

uint32_t be32_at(const void *p, size_t offset)
{
	return be32toh(field_get(p, offset, 4));
}

uint64_t be64_at(const void *p, size_t offset)
{
	return be64toh(field_get(p, offset, 8));
}

void put_be16(void *p, size_t offset, uint16_t value)
{
	field_put(p, offset, 2, htobe16(value));
}

void put_be32(void *p, size_t offset, uint32_t value)
{
	field_put(p, offset, 4, htobe32(value));
}

void put_be64(void *p, size_t offset, uint64_t value)
{
	field_put(p, offset, 8, htobe64(value));
}

static uint32_t ceil_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

static void answer_context(uint8_t *resp)
{
	field_put(resp, 0, 4, async_fd = dup(device_fd));
	field_put(resp, 4, 4, 1);
	if (fk.driver_abi > 3) {
		field_put(resp, 8, 4, fk.dev_caps);
		field_put(resp, 12, 4, fk.qp_tab_size);
		field_put(resp, 16, 2, fk.bf_reg_size);
		field_put(resp, 18, 2, 8);
		field_put(resp, 20, 4, fk.cqe_size);
	} else {
		field_put(resp, 8, 4, fk.qp_tab_size);
		field_put(resp, 12, 2, fk.bf_reg_size);
		field_put(resp, 14, 2, 8);
	}
}

static void answer_device(uint8_t *resp)
{
	struct ibv_query_device_resp r = {
		.fw_ver = 2ull << 32 | 9 << 16 | 7,
		.max_qp_wr = 16351,
		.device_cap_flags = fk.cap_flags,
		.max_sge = 32,
		.max_cqe = 4194303,
		.phys_port_cnt = 2,
	};

	memcpy(resp, &r, sizeof(r));
}

static void answer_cq(const uint8_t *cmd, uint8_t *resp)
{
	uint32_t entries = ceil_pow2(field_get(cmd, 24, 4) + 1);

	/*
	 * Writes the owner byte of every entry, as the device does when it takes the buffer over.
	 */
	memset((void *)(uintptr_t)field_get(cmd, 40, 8), 0xcc, (size_t)entries * fk.cqe_size);
	field_put(resp, 0, 4, next_handle++);
	field_put(resp, 4, 4, entries - 1);
	field_put(resp, 8, 4, fk.next_cqn++);
}

static void answer_srq(const uint8_t *cmd, uint8_t *resp)
{
	field_put(resp, 0, 4, next_handle++);
	field_put(resp, 4, 4, ceil_pow2(field_get(cmd, 28, 4) + 1) - 1);
	field_put(resp, 8, 4, field_get(cmd, 32, 4));
	field_put(resp, 16, 4, fk.next_srqn++);
}

static void answer_qp(const uint8_t *cmd, uint8_t *resp)
{
	int has_rq = !cmd[62] && cmd[61] != IBV_QPT_XRC;

	field_put(resp, 0, 4, next_handle++);
	field_put(resp, 4, 4, fk.next_qpn++);
	if (cmd[61] == IBV_QPT_XRC && !fk.xrc_without_bit)
		field_put(resp, 4, 4, field_get(resp, 4, 4) | 1 << 23);
	field_put(resp, 8, 4, field_get(cmd, 40, 4));
	field_put(resp, 12, 4, has_rq ? ceil_pow2(field_get(cmd, 44, 4)) : 0);
	field_put(resp, 16, 4, field_get(cmd, 48, 4));
	field_put(resp, 20, 4, has_rq ? ceil_pow2(field_get(cmd, 52, 4)) : 0);
	field_put(resp, 24, 4, field_get(cmd, 56, 4));
}

/* Returns 0 or an errno value. */
static int carry_out(int command, uint8_t *cmd, uint8_t *resp)
{
	switch (command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		answer_context(resp);
		break;
	case IB_USER_VERBS_CMD_QUERY_DEVICE:
		answer_device(resp);
		break;
	case IB_USER_VERBS_CMD_QUERY_PORT:
		if (cmd[16] < 1 || cmd[16] > 2)
			return EINVAL;
		resp[37] = fk.link_layer;
		break;
	case IB_USER_VERBS_CMD_ALLOC_PD:
		field_put(resp, 0, 4, next_handle++);
		field_put(resp, 4, 4, 0x1234);
		break;
	case IB_USER_VERBS_CMD_REG_MR:
		field_put(resp, 0, 4, next_handle++);
		field_put(resp, 4, 4, 0x8100);
		field_put(resp, 8, 4, 0x8101);
		break;
	case IB_USER_VERBS_CMD_CREATE_CQ:
		answer_cq(cmd, resp);
		break;
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		field_put(resp, 0, 4, ceil_pow2(field_get(cmd, 20, 4) + 1) - 1);
		break;
	case IB_USER_VERBS_CMD_CREATE_SRQ:
	case IB_USER_VERBS_CMD_CREATE_XRC_SRQ:
		answer_srq(cmd, resp);
		break;
	case IB_USER_VERBS_CMD_CREATE_QP:
		answer_qp(cmd, resp);
		break;
	case IB_USER_VERBS_CMD_OPEN_XRC_DOMAIN:
		field_put(resp, 0, 4, next_handle++);
		break;
	case IB_USER_VERBS_CMD_CREATE_XRC_RCV_QP:
		/*
		 * To find out whether this is an OFED kernel, libibverbs tries a domain that cannot
		 * exist.
		 */
		if (field_get(cmd, 24, 4) >= next_handle)
			return EINVAL;
		field_put(resp, 0, 4, fk.next_qpn++ | 1 << 23);
		break;
	default:
		break;
	}
	return 0;
}

static int is_device(int fd)
{
	struct stat a, b;

	return device_fd >= 0 && !fstat(fd, &a) && !fstat(device_fd, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

ssize_t write(int fd, const void *buf, size_t len)
{
	uint8_t resp[512] = {0};
	int command, err = 0;
	size_t room;

	if (!is_device(fd))
		return syscall(SYS_write, fd, buf, len);

	command = field_get(buf, 0, 4);
	if (len < 8 || len > FK_MAX_COMMAND || command < 0 || command >= FK_COMMANDS ||
	    field_get(buf, 4, 2) * 4 != len) {
		errno = EINVAL;
		return -1;
	}
	++fk.count[command];
	memcpy(fk.last[command], buf, len);
	fk.last_len[command] = len;

	if (fk.fail_errno && command == fk.fail_command) {
		err = fk.fail_errno;
		fk.fail_errno = 0;
	}
	if (!err)
		err = carry_out(command, fk.last[command], resp);
	if (err) {
		errno = err;
		return -1;
	}
	if (fk.hook)
		fk.hook(command, fk.last[command], resp);

	room = field_get(buf, 6, 2) * 4;
	if (room)
		memcpy((void *)(uintptr_t)field_get(buf, 8, 8), resp, room);
	return len;
}

static int open_any(const char *path, int flags, mode_t mode)
{
	if (!strcmp(path, "/dev/infiniband/uverbs0"))
		return fcntl(device_fd, F_DUPFD_CLOEXEC, 0);
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The C library has two names for open(), and the provider may call either. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return open_any(path, flags, mode);
}

/* The program is linked with --wrap, so the provider's allocations come here. */

void *__real_calloc(size_t n, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t len);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t len);

static int refused(void)
{
	return fk.fail_at && !--fk.fail_at;
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (refused()) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(n, size);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	return refused() ? ENOMEM : __real_posix_memalign(p, align, size);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *p;

	if (refused()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = __real_mmap(addr, len, prot, flags, fd, offset);
	if (p != MAP_FAILED)
		++fk.mapped;
	return p;
}

int __wrap_munmap(void *addr, size_t len)
{
	--fk.mapped;
	return __real_munmap(addr, len);
}

/*
 * sysfs and the device
 */

void fk_put_file(const char *path, const char *text)
{
	char whole[256], *slash;
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/%s", sysfs, path);
	for (slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

void fk_make_device(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char text[16];

	strcpy(sysfs, "/tmp/mlx4-test-XXXXXX");
	assert_non_null(mkdtemp(sysfs));
	atexit(fk_cleanup);
	fk_put_file("class/infiniband_verbs/abi_version", "6\n");
	fk_put_file("class/infiniband_verbs/uverbs0/ibdev", "mlx4_0\n");
	snprintf(text, sizeof(text), "%d\n", fk.driver_abi);
	fk_put_file("class/infiniband_verbs/uverbs0/abi_version", text);
	fk_put_file("class/infiniband_verbs/uverbs0/device/vendor", "0x15b3\n");
	fk_put_file("class/infiniband_verbs/uverbs0/device/device", "0x673c\n");
	fk_put_file("class/infiniband/mlx4_0/node_type", "1: CA\n");
	fk_put_file("class/infiniband/mlx4_0/ports/1/gids/0",
		    "fe80:0000:0000:0000:0202:c9ff:fe12:3456\n");
	fk_put_file("class/infiniband/mlx4_0/ports/1/gids/1",
		    "fe80:0000:0000:0000:0202:c900:2a12:3456\n");
	setenv("SYSFS_PATH", sysfs, 1);

	device_fd = syscall(SYS_memfd_create, "uverbs0", 1u);
	assert_true(device_fd >= 0);
	assert_int_equal(ftruncate(device_fd, 2 * page), 0);
	fk.uar = __real_mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, device_fd, 0);
	assert_ptr_not_equal(fk.uar, MAP_FAILED);
	fk.bf = fk.uar + page;
}

static int remove_one(const char *path, const struct stat64 *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fk_cleanup(void)
{
	if (sysfs[0])
		nftw64(sysfs, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	sysfs[0] = '\0';
}

void fk_reset(void)
{
	uint8_t *uar = fk.uar, *bf = fk.bf;
	int mapped = fk.mapped;

	memset(&fk, 0, sizeof(fk));
	fk.uar = uar;
	fk.bf = bf;
	fk.mapped = mapped;
	fk.driver_abi = 3;
	fk.qp_tab_size = 262144;
	fk.bf_reg_size = 512;
	fk.cqe_size = 32;
	fk.cap_flags = IBV_DEVICE_XRC;
	fk.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fk.next_qpn = 0x48;
	fk.next_cqn = 0x80;
	fk.next_srqn = 0x40;
}

struct ibv_context *fk_open(void)
{
	static struct ibv_device *device;
	struct ibv_device **list;

	if (device_fd < 0)
		fk_make_device();
	if (!device) {
		list = ibv_get_device_list(NULL);
		assert_non_null(list);
		assert_non_null(list[0]);
		device = list[0];
		ibv_free_device_list(list);
	}
	return ibv_open_device(device);
}

/*
 * Queues
 */

void dev_create_cq(struct dev_cq *d, struct ibv_context *ctx, int cqe)
{
	const uint8_t *cmd = fk.last[IB_USER_VERBS_CMD_CREATE_CQ];

	memset(d, 0, sizeof(*d));
	d->cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
	assert_non_null(d->cq);
	d->buf = (uint8_t *)(uintptr_t)field_get(cmd, 40, 8);
	d->db = (uint8_t *)(uintptr_t)field_get(cmd, 48, 8);
	d->entries = field_get(cmd, 24, 4) + 1;
	d->entry_size = fk.cqe_size;
}

void dev_create_qp(struct dev_qp *d, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const uint8_t *cmd = fk.last[IB_USER_VERBS_CMD_CREATE_QP];
	uint8_t *buf;
	uint32_t sge;

	memset(d, 0, sizeof(*d));
	d->qp = ibv_create_qp(pd, attr);
	assert_non_null(d->qp);

	buf = (uint8_t *)(uintptr_t)field_get(cmd, 64, 8);
	d->db = (uint8_t *)(uintptr_t)field_get(cmd, 72, 8);
	d->sq_slots = 1u << cmd[80];
	d->sq_shift = cmd[81];
	if (!cmd[62] && cmd[61] != IBV_QPT_XRC) {
		d->rq_slots = ceil_pow2(field_get(cmd, 44, 4));
		sge = ceil_pow2(field_get(cmd, 52, 4));
		for (d->rq_shift = 4; 1u << d->rq_shift < 16 * sge; ++d->rq_shift)
			;
	}

	/* The queue with the larger stride comes first; if both are equal, the send queue does. */
	if (d->rq_slots && d->rq_shift > d->sq_shift) {
		d->rq = buf;
		d->sq = buf + ((size_t)d->rq_slots << d->rq_shift);
	} else {
		d->sq = buf;
		d->rq = buf + ((size_t)d->sq_slots << d->sq_shift);
	}
}

void dev_create_srq(struct dev_srq *d, struct ibv_pd *pd, struct ibv_xrc_domain *domain,
		    struct ibv_cq *cq, int max_wr, int max_sge)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
	const uint8_t *cmd =
		fk.last[domain ? IB_USER_VERBS_CMD_CREATE_XRC_SRQ : IB_USER_VERBS_CMD_CREATE_SRQ];
	size_t driver = domain ? 48 : 40;

	memset(d, 0, sizeof(*d));
	d->srq = domain ? ibv_create_xrc_srq(pd, domain, cq, &attr) : ibv_create_srq(pd, &attr);
	assert_non_null(d->srq);
	d->buf = (uint8_t *)(uintptr_t)field_get(cmd, driver, 8);
	d->db = (uint8_t *)(uintptr_t)field_get(cmd, driver + 8, 8);
	d->slots = ceil_pow2(max_wr + 1);
	for (d->shift = 5; 1u << d->shift < 16u + 16 * max_sge; ++d->shift)
		;
}

void dev_init_qp(struct dev_qp *d)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_int_equal(ibv_modify_qp(d->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
}

void dev_write_cqe(struct dev_cq *d, const struct cqe_fields *f)
{
	uint32_t i = d->producer++;
	uint8_t *cqe =
		d->buf + (size_t)(i & (d->entries - 1)) * d->entry_size + (d->entry_size - 32);

	memset(cqe, 0, 31);
	put_be32(cqe, 0, f->qpn);
	put_be32(cqe, 4, f->dw1);
	put_be32(cqe, 8, f->dw2);
	put_be16(cqe, 12, f->sl_vid);
	put_be16(cqe, 14, f->slid);
	put_be32(cqe, 20, f->byte_count);
	put_be16(cqe, 24, f->wqe_index);
	cqe[26] = f->vendor;
	cqe[27] = f->syndrome;
	__atomic_store_n(&cqe[31], f->sr_opcode | (i & d->entries ? 0x80 : 0), __ATOMIC_RELEASE);
}

uint32_t dev_take_srq_wqe(struct dev_srq *d)
{
	uint32_t index = d->head;

	d->head = be16_at(d->buf + ((size_t)index << d->shift), 2);
	return index;
}
