// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a ConnectX and its driver leave for each other in memory and in the UAR: WQEs, CQEs, address
 * vectors, doorbell records and doorbell registers. Layouts and constants only, no verbs types, no
 * policy: an implementation of the device includes this file too.
 */
#ifndef MLX4_FORMAT_H
#define MLX4_FORMAT_H

#include <stddef.h>
#include <linux/types.h>

/*
 * Every multi-byte field is big-endian. "dw0 bit 31" is the top bit of the first 32-bit word.
 *
 * UAR page (for stores only; never read)
 *
 *   OFFSET  SIZE  MEANING
 *   0x14    4     send doorbell: QPN << 8, low byte 0. Says only that the queue has new WQEs; the
 *                 owner bits say how many
 *   0x20    8     CQ doorbell: dw0 = sn << 28 | cmd << 24 | CQN, dw1 = consumer index (24 bits).
 *                 32-bit hosts store it in two halves, ascending, under one lock
 *   0x800   8*4   event queue doorbells of the kernel
 *
 * BlueFlame page: one register at offset 0, two buffers of half the register size, used in turn. A
 * store of a whole WQE (a multiple of 64 bytes, ascending) is both doorbell and payload: dw0 [23:8]
 * is the index of the WQE, dw1 contains the doorbell value.
 *
 * Doorbell records (ordinary memory, written by the driver)
 *
 *   CQ, 8 bytes    +0  4  consumer index & 0xffffff
 *                  +4  4  arm: sn << 28 | cmd << 24 | consumer index & 0xffffff
 *   RQ/SRQ, 4      +0  4  receives posted since RESET or creation, modulo 65536
 */
#define MLX4_UAR_SEND_DB 0x14
#define MLX4_UAR_CQ_DB	 0x20
#define MLX4_UAR_EQ_DB	 0x800

#define MLX4_MAP_UAR 0 /* mmap offsets on the command descriptor, in pages */
#define MLX4_MAP_BF  1

#define MLX4_BF_REG_SIZE 512

#define MLX4_CQ_DB_CI_MASK    0xffffffu
#define MLX4_CQ_DB_CMD_SHIFT  24
#define MLX4_CQ_DB_CMD_MASK   0x7u
#define MLX4_CQ_DB_SN_SHIFT   28
#define MLX4_CQ_DB_SN_MASK    0x3u
#define MLX4_CQ_ARM_SOLICITED 1u
#define MLX4_CQ_ARM_NEXT      2u

struct mlx4_cq_dbrec {
	__be32 set_ci;
	__be32 arm;
};
_Static_assert(sizeof(struct mlx4_cq_dbrec) == 8, "CQ doorbell record");

struct mlx4_rq_dbrec {
	__be32 posted;
};
_Static_assert(sizeof(struct mlx4_rq_dbrec) == 4, "RQ doorbell record");

#define MLX4_RQ_DB_MASK 0xffffu

/* Numbers */
#define MLX4_QPN_MASK	   0xffffffu
#define MLX4_XRC_QPN_BIT   (1u << 23) /* in the number of an XRC QP that can receive */
#define MLX4_MULTICAST_QPN 0xffffffu
#define MLX4_PDN_MASK	   0xffffffu

/* Queues */
#define MLX4_MAX_WQE_SIZE  1008
#define MLX4_SQ_HEADROOM   2048 /* the device prefetches this far */
#define MLX4_MIN_SQ_SHIFT  6
#define MLX4_MAX_SQ_SHIFT  10
#define MLX4_MIN_RQ_SHIFT  4
#define MLX4_MIN_SRQ_SHIFT 5
#define MLX4_MAX_SGE	   32
#define MLX4_MAX_SRQ_SGE   31
#define MLX4_MAX_CQE	   0x3fffff
#define MLX4_STAMP	   0xffffffffu /* first word of each chunk of an unposted slot */
#define MLX4_CHUNK	   64
#define MLX4_INVALID_LKEY  0x100u /* ends a scatter list */

/*
 * Send WQE: a slot of 1 << shift bytes; control segment, then by QP type and opcode
 *
 *   RC, UC, XRC  SEND, SEND_IMM               data...
 *                WRITE, WRITE_IMM, READ       raddr, data...
 *                compare&swap, fetch&add      raddr, atomic, data (8 bytes)
 *                BIND_MW / LOCAL_INVAL        bind / local invalidate
 *   UD           SEND, SEND_IMM               datagram, data...
 *
 * "data..." is any number of data segments or one run of inline segments, up to the size in the
 * control segment. A WQE is valid when dw0 bit 31 equals !!(index & slots), where index is the
 * free-running counter of the device.
 *
 *   OFFSET  SIZE  MEANING (control segment)
 *   0       4     dw0: 31 owner, 29 no error completion, [23:8] index (BlueFlame only), 6 long LSO
 *                 header, [4:0] opcode
 *   4       2     VLAN tag (Ethernet); may contain doorbell bits left by BlueFlame
 *   6       1     bit 6 insert VLAN; may contain doorbell bits left by BlueFlame
 *   7       1     bit 6 fence, [5:0] size in 16-byte units, this segment included
 *   8       4     [31:8] remote SRQ number (XRC), 7 strong order, 5 TCP/UDP checksum, 4 IP
 *                 checksum, [3:2] 11 = write a CQE, 1 solicited event, 0 force loopback
 *   12      4     immediate data as the program passed it, or the key to invalidate
 */
struct mlx4_wqe_ctrl {
	__be32 owner_opcode;
	__be16 vlan_tag;
	__u8 ins_vlan;
	__u8 fence_size;
	__be32 flags;
	__be32 imm;
};
_Static_assert(sizeof(struct mlx4_wqe_ctrl) == 16, "control segment");
_Static_assert(offsetof(struct mlx4_wqe_ctrl, fence_size) == 7, "control segment size byte");
_Static_assert(offsetof(struct mlx4_wqe_ctrl, flags) == 8, "control segment flags");

#define MLX4_WQE_OWNER	     (1u << 31)
#define MLX4_WQE_NEC	     (1u << 29)
#define MLX4_WQE_INDEX_SHIFT 8
#define MLX4_WQE_INDEX_MASK  0xffffu
#define MLX4_WQE_OPCODE_MASK 0x1fu
#define MLX4_WQE_FENCE	     (1u << 6)
#define MLX4_WQE_DS_MASK     0x3fu
#define MLX4_WQE_SRQN_SHIFT  8
#define MLX4_WQE_SO	     (1u << 7)
#define MLX4_WQE_TCP_CSUM    (1u << 5)
#define MLX4_WQE_IP_CSUM     (1u << 4)
#define MLX4_WQE_CQ_UPDATE   (3u << 2)
#define MLX4_WQE_SOLICITED   (1u << 1)
#define MLX4_WQE_FORCE_LB    (1u << 0)

enum mlx4_opcode { /* of a send WQE and of its CQE */
		   MLX4_OPCODE_NOP = 0x00,
		   MLX4_OPCODE_SEND_INVAL = 0x01,
		   MLX4_OPCODE_RDMA_WRITE = 0x08,
		   MLX4_OPCODE_RDMA_WRITE_IMM = 0x09,
		   MLX4_OPCODE_SEND = 0x0a,
		   MLX4_OPCODE_SEND_IMM = 0x0b,
		   MLX4_OPCODE_LSO = 0x0e,
		   MLX4_OPCODE_RDMA_READ = 0x10,
		   MLX4_OPCODE_ATOMIC_CS = 0x11,
		   MLX4_OPCODE_ATOMIC_FA = 0x12,
		   MLX4_OPCODE_MASKED_ATOMIC_CS = 0x14,
		   MLX4_OPCODE_MASKED_ATOMIC_FA = 0x15,
		   MLX4_OPCODE_BIND_MW = 0x18,
		   MLX4_OPCODE_FMR = 0x19,
		   MLX4_OPCODE_LOCAL_INVAL = 0x1b,
		   MLX4_OPCODE_CONFIG = 0x1f,
};

/* Remote address segment */
struct mlx4_wqe_raddr {
	__be64 raddr;
	__be32 rkey;
	__be32 reserved;
};
_Static_assert(sizeof(struct mlx4_wqe_raddr) == 16, "remote address segment");

/* Atomic segment: swap and compare operands; or the addend, with compare 0 */
struct mlx4_wqe_atomic {
	__be64 swap_add;
	__be64 compare;
};
_Static_assert(sizeof(struct mlx4_wqe_atomic) == 16, "atomic segment");

/* Data segment, and scatter entry of a receive. Bit 31 of byte_count is clear. */
struct mlx4_wqe_data {
	__be32 byte_count;
	__be32 lkey;
	__be64 addr;
};
_Static_assert(sizeof(struct mlx4_wqe_data) == 16, "data segment");

/*
 * Inline segment: 4-byte header (bit 31 set, [9:0] length), then the bytes. It ends at a 64-byte
 * boundary of the WQE at the latest, where the next header follows. The next segment begins at the
 * next multiple of 16.
 */
struct mlx4_wqe_inline {
	__be32 byte_count;
};
_Static_assert(sizeof(struct mlx4_wqe_inline) == 4, "inline segment header");

#define MLX4_INLINE_SEG	     (1u << 31)
#define MLX4_INLINE_LEN_MASK 0x3ffu

/*
 * Address vector
 *
 *   OFFSET  SIZE  MEANING
 *   0       4     31 force loopback / RoCE multicast, 29 VLAN tagged, [25:24] port, [23:0] PD number
 *   4       1     reserved
 *   5       1     7 GRH present, [6:0] source path bits
 *   6       2     DLID
 *   8       1     reserved
 *   9       1     source GID index
 *   10      1     static rate: 0 = the port's, else verbs rate + 5
 *   11      1     hop limit
 *   12      4     SL << 28 | traffic class << 20 | flow label
 *   16      16    DGID
 */
struct mlx4_av {
	__be32 port_pd;
	__u8 reserved1;
	__u8 g_slid;
	__be16 dlid;
	__u8 reserved2;
	__u8 gid_index;
	__u8 stat_rate;
	__u8 hop_limit;
	__be32 sl_tclass_flowlabel;
	__u8 dgid[16];
};
_Static_assert(sizeof(struct mlx4_av) == 32, "address vector");
_Static_assert(offsetof(struct mlx4_av, dlid) == 6, "address vector DLID");
_Static_assert(offsetof(struct mlx4_av, hop_limit) == 11, "address vector hop limit");
_Static_assert(offsetof(struct mlx4_av, dgid) == 16, "address vector DGID");

#define MLX4_AV_FORCE_LB      (1u << 31)
#define MLX4_AV_VLAN	      (1u << 29)
#define MLX4_AV_PORT_SHIFT    24
#define MLX4_AV_PORT_MASK     0x3u
#define MLX4_AV_GRH	      (1u << 7)
#define MLX4_AV_SL_SHIFT      28
#define MLX4_AV_TCLASS_SHIFT  20
#define MLX4_AV_FLOW_MASK     0xfffffu
#define MLX4_STAT_RATE_OFFSET 5
#define MLX4_ROCE_MCAST_DLID  0xc000

/* Datagram segment */
struct mlx4_wqe_datagram {
	struct mlx4_av av;
	__be32 dqpn;
	__be32 qkey;
	__be16 vlan;
	__u8 mac[6];
};
_Static_assert(sizeof(struct mlx4_wqe_datagram) == 48, "datagram segment");
_Static_assert(offsetof(struct mlx4_wqe_datagram, dqpn) == 32, "datagram QPN");

/* Bind segment */
struct mlx4_wqe_bind {
	__be32 flags1; /* 31 atomic, 30 remote write, 29 remote read */
	__be32 flags2; /* 31 type 2, 30 zero based */
	__be32 new_rkey;
	__be32 lkey;
	__be64 addr;
	__be64 length;
};
_Static_assert(sizeof(struct mlx4_wqe_bind) == 32, "bind segment");

/* Local invalidate segment */
struct mlx4_wqe_local_inval {
	__u8 reserved1[8];
	__be32 mem_key;
	__u8 reserved2[20];
};
_Static_assert(sizeof(struct mlx4_wqe_local_inval) == 32, "local invalidate segment");

/*
 * Receive WQE: a list of data segments, ended by {0, MLX4_INVALID_LKEY, 0} if shorter than the
 * slot. SRQ WQE: this header, then such a list. The device reads the index of the next free WQE
 * when it takes a WQE.
 */
struct mlx4_wqe_srq_next {
	__be16 reserved1;
	__be16 next_wqe_index;
	__be32 reserved2[3];
};
_Static_assert(sizeof(struct mlx4_wqe_srq_next) == 16, "SRQ WQE header");
_Static_assert(offsetof(struct mlx4_wqe_srq_next, next_wqe_index) == 2, "SRQ WQE link");

/*
 * Completion queue entry: 32 bytes; in a 64-byte entry, the second half. A CQE is valid when its
 * owner bit equals !!(index & entries), where index is free-running. The device writes the last
 * byte last.
 *
 *   OFFSET  SIZE  MEANING
 *   0       4     [30:29] VLAN present, [23:0] local QPN (bit 23 on XRC receives)
 *   4       4     receive: immediate in wire order, key invalidated, or P_Key index in [6:0]
 *   8       4     UD receive: 31 GRH present, [30:24] path bits, [23:0] source QPN; XRC receive,
 *                 with errors too: [23:0] SRQ number; otherwise 0
 *   12      2     [15:12] SL; Ethernet: [15:13] priority, [11:0] VLAN
 *   14      2     UD receive: source LID
 *   16      4     IPoIB status
 *   20      4     byte count: receives, RDMA READ, atomics
 *   24      2     WQE index: of send and receive queues the low 16 bits of the free-running
 *                 counter, of an SRQ the slot
 *   26      2     checksum; on error +26 vendor syndrome, +27 syndrome
 *   28      3     reserved
 *   31      1     7 owner, 6 send queue, 5 inline scatter, [4:0] opcode
 */
struct mlx4_cqe {
	__be32 vlan_my_qpn;
	__be32 immed_rss_invalid;
	__be32 g_mlpath_rqpn;
	__be16 sl_vid;
	__be16 rlid;
	__be32 status;
	__be32 byte_cnt;
	__be16 wqe_index;
	union {
		__be16 checksum;
		struct {
			__u8 vendor_err;
			__u8 syndrome;
		};
	};
	__u8 reserved[3];
	__u8 owner_sr_opcode;
};
_Static_assert(sizeof(struct mlx4_cqe) == 32, "CQE");
_Static_assert(offsetof(struct mlx4_cqe, sl_vid) == 12, "CQE SL");
_Static_assert(offsetof(struct mlx4_cqe, wqe_index) == 24, "CQE WQE index");
_Static_assert(offsetof(struct mlx4_cqe, vendor_err) == 26, "CQE vendor syndrome");
_Static_assert(offsetof(struct mlx4_cqe, syndrome) == 27, "CQE syndrome");
_Static_assert(offsetof(struct mlx4_cqe, owner_sr_opcode) == 31, "CQE owner byte");

#define MLX4_CQE_SIZE	     32
#define MLX4_CQE_SIZE_LARGE  64
#define MLX4_CQE_QPN_MASK    0xffffffu
#define MLX4_CQE_GRH	     (1u << 31)
#define MLX4_CQE_PATH_SHIFT  24
#define MLX4_CQE_PATH_MASK   0x7fu
#define MLX4_CQE_PKEY_MASK   0x7fu
#define MLX4_CQE_SL_SHIFT    12
#define MLX4_CQE_OWNER	     0x80u
#define MLX4_CQE_IS_SEND     0x40u
#define MLX4_CQE_INLINE	     0x20u
#define MLX4_CQE_OPCODE_MASK 0x1fu
#define MLX4_CQE_FILL	     0xcc /* how the device fills a new buffer: all owner bits set */

enum mlx4_cqe_opcode { /* of receives; the last two are of sends too */
		       MLX4_CQE_RECV_RDMA_WRITE_IMM = 0x00,
		       MLX4_CQE_RECV_SEND = 0x01,
		       MLX4_CQE_RECV_SEND_IMM = 0x02,
		       MLX4_CQE_RECV_SEND_INVAL = 0x03,
		       MLX4_CQE_RESIZE = 0x16,
		       MLX4_CQE_ERROR = 0x1e,
};

enum mlx4_cqe_syndrome {
	MLX4_SYNDROME_LOC_LEN = 0x01,
	MLX4_SYNDROME_LOC_QP_OP = 0x02,
	MLX4_SYNDROME_LOC_PROT = 0x04,
	MLX4_SYNDROME_WR_FLUSH = 0x05,
	MLX4_SYNDROME_MW_BIND = 0x06,
	MLX4_SYNDROME_BAD_RESP = 0x10,
	MLX4_SYNDROME_LOC_ACCESS = 0x11,
	MLX4_SYNDROME_REM_INVAL_REQ = 0x12,
	MLX4_SYNDROME_REM_ACCESS = 0x13,
	MLX4_SYNDROME_REM_OP = 0x14,
	MLX4_SYNDROME_RETRY_EXC = 0x15,
	MLX4_SYNDROME_RNR_RETRY_EXC = 0x16,
	MLX4_SYNDROME_REM_ABORT = 0x22,
};

#endif
