// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Selects the devices for this provider, and opens and closes contexts. Registers with libibverbs
 * when the library is loaded. */
#if HAVE_CONFIG_H
#include <config.h>
#endif

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if !HAVE_IBV_REGISTER_DRIVER
#include <sysfs/libsysfs.h>
#endif

#include "mlx4.h"
#include "mlx4-cmd.h"

enum { PCI_VENDOR_MELLANOX = 0x15b3 };

static const uint16_t pci_devices[] = {
	0x6340,					/* MT25408 Hermon SDR */
	0x634a,					/* MT25408 Hermon DDR */
	0x6354,					/* MT25408 Hermon QDR */
	0x6732,					/* MT26418 Hermon DDR, PCIe gen2 */
	0x673c,					/* MT26428 Hermon QDR, PCIe gen2 */
	0x6368,					/* MT25448 ConnectX EN */
	0x6750,					/* MT26448 ConnectX EN, PCIe gen2 */
	0x6372, 0x675a, 0x6764, 0x6746, 0x676e, /* further ConnectX EN and VPI */
	0x6778,					/* MT26488 VPI */
	0x1000, 0x1001, 0x1002,			/* MT25400 ConnectX-2 virtual function */
	0x1003,					/* MT27500 ConnectX-3 */
	0x1004, 0x1005, 0x1006, 0x1007, 0x1008, 0x1009, 0x100a,
	0x100b, 0x100c, 0x100d, 0x100e, 0x100f, 0x1010, /* ConnectX-3 family and their virtual
							   functions */
};

static const struct ibv_context_ops context_ops = {
	.query_device = mlx4_query_device,
	.query_port = mlx4_query_port,
	.alloc_pd = mlx4_alloc_pd,
	.dealloc_pd = mlx4_dealloc_pd,
	.reg_mr = mlx4_reg_mr,
	.dereg_mr = mlx4_dereg_mr,
	.create_cq = mlx4_create_cq,
	.poll_cq = mlx4_poll_cq,
	.req_notify_cq = mlx4_arm_cq,
	.cq_event = mlx4_cq_event,
	.resize_cq = mlx4_resize_cq,
	.destroy_cq = mlx4_destroy_cq,
	.create_srq = mlx4_create_srq,
	.modify_srq = mlx4_modify_srq,
	.query_srq = mlx4_query_srq,
	.destroy_srq = mlx4_destroy_srq,
	.post_srq_recv = mlx4_post_srq_recv,
	.create_qp = mlx4_create_qp,
	.query_qp = mlx4_query_qp,
	.modify_qp = mlx4_modify_qp,
	.destroy_qp = mlx4_destroy_qp,
	.post_send = mlx4_post_send,
	.post_recv = mlx4_post_recv,
	.create_ah = mlx4_create_ah,
	.destroy_ah = mlx4_destroy_ah,
	.attach_mcast = ibv_cmd_attach_mcast,
	.detach_mcast = ibv_cmd_detach_mcast,
};

/* Creates the context and gets the device's parameters, whatever ABI version the kernel has.
 * Returns 0 or -errno. On success async_fd is open. */
static int get_context(struct mlx4_context *ctx, int abi_version,
		       struct mlx4_abi_context_resp *info)
{
	struct mlx4_get_context_resp resp;
	struct mlx4_get_context_resp_v3 resp_v3;
	struct ibv_get_context cmd;
	int err;

	if (abi_version > MLX4_UVERBS_NO_DEV_CAPS_ABI) {
		memset(&resp, 0, sizeof(resp));
		err = -ibv_cmd_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), &resp.core,
					   sizeof(resp));
		if (err)
			return err;
		*info = resp.drv;
		return 0;
	}

	memset(&resp_v3, 0, sizeof(resp_v3));
	err = -ibv_cmd_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), &resp_v3.core,
				   sizeof(resp_v3));
	if (err)
		return err;
	*info = (struct mlx4_abi_context_resp){
		.qp_tab_size = resp_v3.drv.qp_tab_size,
		.bf_reg_size = resp_v3.drv.bf_reg_size,
		.bf_regs_per_page = resp_v3.drv.bf_regs_per_page,
		.cqe_size = MLX4_CQE_SIZE,
	};
	return 0;
}

/* Returns 0 or -errno. A device without BlueFlame is not an error. */
static int map_device_pages(struct mlx4_context *ctx, const struct mlx4_abi_context_resp *info)
{
	int fd = ctx->ibv_ctx.cmd_fd;
	void *page;

	page = mmap(NULL, ctx->page_size, PROT_WRITE, MAP_SHARED, fd,
		    MLX4_MAP_UAR * ctx->page_size);
	if (page == MAP_FAILED)
		return -errno;
	ctx->uar = page;

	if (!info->bf_reg_size)
		return 0;
	page = mmap(NULL, ctx->page_size, PROT_WRITE, MAP_SHARED, fd, MLX4_MAP_BF * ctx->page_size);
	if (page == MAP_FAILED) {
		fprintf(stderr,
			"libmlx4: Warning: BlueFlame page cannot be mapped (%s); small sends will "
			"be slower. "
			"Check that the kernel's mlx4 driver can map write-combining memory.\n",
			strerror(errno));
		return 0;
	}
	ctx->blueflame = page;
	ctx->blueflame_size = info->bf_reg_size / 2;
	return 0;
}

static void unmap_device_pages(struct mlx4_context *ctx)
{
	if (ctx->blueflame)
		munmap(ctx->blueflame, ctx->page_size);
	munmap(ctx->uar, ctx->page_size);
}

static struct ibv_context *alloc_context(struct ibv_device *ibdev, int cmd_fd)
{
	const char *single = getenv("MLX4_SINGLE_THREADED");
	struct mlx4_abi_context_resp info = {0};
	struct ibv_device_attr attr;
	struct mlx4_context *ctx;
	int err;

	ctx = mlx4_zalloc(sizeof(*ctx));
	if (!ctx)
		return NULL;

	ctx->ibv_ctx.device = ibdev;
	ctx->ibv_ctx.cmd_fd = cmd_fd;
	ctx->page_size = sysconf(_SC_PAGESIZE);
	ctx->single_threaded = single && !strcmp(single, "1");
	mlx4_lock_init(&ctx->blueflame_lock, ctx->single_threaded);
	mlx4_lock_init(&ctx->uar_lock, ctx->single_threaded);

	err = get_context(ctx, to_mlx4_dev(ibdev)->abi_version, &info);
	if (err)
		goto free_ctx;

	ctx->cqe_size = info.cqe_size;
	if (ctx->cqe_size != MLX4_CQE_SIZE && ctx->cqe_size != MLX4_CQE_SIZE_LARGE) {
		err = -EINVAL;
		goto close_async;
	}

	err = mlx4_table_init(&ctx->qps, info.qp_tab_size);
	if (err)
		goto close_async;
	err = mlx4_table_init(&ctx->xrc_srqs, info.qp_tab_size);
	if (err)
		goto free_qps;
	err = -pthread_mutex_init(&ctx->db_mutex, NULL);
	if (err)
		goto free_xrc_srqs;
	err = map_device_pages(ctx, &info);
	if (err)
		goto free_mutex;

	memset(&attr, 0, sizeof(attr));
	err = -mlx4_query_device(&ctx->ibv_ctx, &attr);
	if (err)
		goto unmap;
	ctx->max_qp_wr = attr.max_qp_wr;
	ctx->max_sge = attr.max_sge;
	ctx->has_xrc = !!(attr.device_cap_flags & IBV_DEVICE_XRC);

	ctx->ibv_ctx.ops = context_ops;
	if (ctx->single_threaded) {
		ctx->ibv_ctx.ops.poll_cq = mlx4_poll_cq_st;
		ctx->ibv_ctx.ops.post_send = mlx4_post_send_st;
		ctx->ibv_ctx.ops.post_recv = mlx4_post_recv_st;
		ctx->ibv_ctx.ops.post_srq_recv = mlx4_post_srq_recv_st;
	}
	ctx->ibv_ctx.more_ops = ctx->has_xrc ? &mlx4_more_ops : NULL;
	return &ctx->ibv_ctx;

unmap:
	unmap_device_pages(ctx);
free_mutex:
	pthread_mutex_destroy(&ctx->db_mutex);
free_xrc_srqs:
	mlx4_table_destroy(&ctx->xrc_srqs);
free_qps:
	mlx4_table_destroy(&ctx->qps);
close_async:
	close(ctx->ibv_ctx.async_fd);
free_ctx:
	free(ctx);
	errno = -err;
	return NULL;
}

static void free_context(struct ibv_context *context)
{
	struct mlx4_context *ctx = to_mlx4_ctx(context);

	unmap_device_pages(ctx);
	pthread_mutex_destroy(&ctx->db_mutex);
	mlx4_table_destroy(&ctx->xrc_srqs);
	mlx4_table_destroy(&ctx->qps);
	free(ctx);
}

/* Returns the number in a sysfs attribute below the device's directory, or -1. */
static int read_id(const char *uverbs_sys_path, const char *attribute)
{
	char text[16] = "";
	int value;

	if (ibv_read_sysfs_file(uverbs_sys_path, attribute, text, sizeof(text) - 1) <= 0)
		return -1;
	return sscanf(text, "%i", &value) == 1 ? value : -1;
}

static int is_ours(const char *uverbs_sys_path)
{
	unsigned int i;
	int device;

	if (read_id(uverbs_sys_path, "device/vendor") != PCI_VENDOR_MELLANOX)
		return 0;
	device = read_id(uverbs_sys_path, "device/device");
	for (i = 0; i < sizeof(pci_devices) / sizeof(pci_devices[0]); ++i)
		if (device == pci_devices[i])
			return 1;
	return 0;
}

/* Returns the path of the file that contains this code. */
static const char *own_file(void)
{
	Dl_info info;

	return dladdr(pci_devices, &info) && info.dli_fname ? info.dli_fname : "libmlx4";
}

/* Stores the name of a uverbs device's RDMA device, such as mlx4_0. Empty on failure. */
static const char *device_name(const char *uverbs_sys_path, char *name, size_t size)
{
	if (ibv_read_sysfs_file(uverbs_sys_path, "ibdev", name, size) < 0)
		name[0] = 0;
	return name;
}

/* Returns NULL for a device of another provider. If this provider cannot drive the device, prints
 * why and returns NULL with errno EPROTONOSUPPORT, so that libibverbs prints nothing more. */
static struct ibv_device *driver_init(const char *uverbs_sys_path, int abi_version)
{
	struct mlx4_device *dev;
	char name[64];

	if (!is_ours(uverbs_sys_path)) {
		errno = 0;
		return NULL;
	}

	if (abi_version < MLX4_UVERBS_MIN_ABI || abi_version > MLX4_UVERBS_MAX_ABI) {
		fprintf(stderr,
			"libmlx4: Fatal: ABI version %d of %s (%s) is not supported by %s (%d to "
			"%d are). "
			"Install the libmlx4 that belongs to the running kernel.\n",
			abi_version, uverbs_sys_path,
			device_name(uverbs_sys_path, name, sizeof(name)), own_file(),
			MLX4_UVERBS_MIN_ABI, MLX4_UVERBS_MAX_ABI);
		errno = EPROTONOSUPPORT;
		return NULL;
	}

	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		fprintf(stderr,
			"libmlx4: Fatal: no memory for the device %s. Free some, or raise the "
			"limit (ulimit -v).\n",
			uverbs_sys_path);
		errno = EPROTONOSUPPORT;
		return NULL;
	}
	dev->abi_version = abi_version;
	dev->ibv_dev.ops.alloc_context = alloc_context;
	dev->ibv_dev.ops.free_context = free_context;
	return &dev->ibv_dev;
}

#if HAVE_IBV_REGISTER_DRIVER
static __attribute__((constructor)) void register_driver(void)
{
	ibv_register_driver("mlx4", driver_init);
}
#else
/* The entry point for versions of libibverbs without ibv_register_driver(). */
__attribute__((visibility("default"))) struct ibv_device *
openib_driver_init(struct sysfs_class_device *sysdev);

struct ibv_device *openib_driver_init(struct sysfs_class_device *sysdev)
{
	char text[16] = "";
	int abi_version = 0;

	if (ibv_read_sysfs_file(sysdev->path, "abi_version", text, sizeof(text) - 1) > 0)
		abi_version = strtol(text, NULL, 10);
	return driver_init(sysdev->path, abi_version);
}
#endif
