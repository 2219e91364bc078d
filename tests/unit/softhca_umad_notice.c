// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what ports and the switch tell the subnet manager by Trap, until it answers; what
 * the subnet administrator tells subscribers by Report; and who gets what is sent to a group.
 */
#include "softhca/device/memory/tables.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/rdmacm/group.h"
#include "softhca/kernel/umad/notice.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_umad_rig.h"

enum { GET = 1, SET = 2, TRAP = 5, REPORT = 6, REPRESS = 7, GET_TABLE = 0x12 };
enum { SWITCH = 1023, INFORM_INFO = 3, INFORM_RECORD = 0xf3, SWITCH_INFO = 0x12, MFT = 0x1b };
enum { PORT_INFO = 0x15, SM_INFO = 0x20, SM_INFO_RECORD = 0x18 };
#define METHOD(m) (UINT64_C(1) << (m))

static void port(struct rig *r, uint32_t host, uint32_t number, uint32_t what)
{
	struct sh_port_msg m = {.host = host, .port = number, .what = what};
	struct sh_status st;

	assert_true(port_change(&r->t->k, &m, true, &st));
	assert_int_equal(st.error, 0);
}

/* The notice of the next message, which is of this class, method and number. */
static const uint8_t *notice(struct rig *r, int i, uint8_t class, uint8_t method, uint16_t number)
{
	const uint8_t *m = r->in + 64, *n = m + (class == 3 ? 56 : 64);

	assert_int_equal(get(r, i, 320), 320);
	assert_int_equal(m[1], class);
	assert_int_equal(m[3], method);
	assert_int_equal(mad16(m, 16), 2);
	assert_int_equal(n[0] & 0x80, 0x80);
	assert_int_equal(mad16(n, 4), number);
	return n;
}

static uint32_t from(const struct rig *r)
{
	return be16toh(((const struct umad_hdr *)r->in)->lid);
}

/* Answers what was read. */
static void answer(struct rig *r, int i, uint32_t id, uint8_t method)
{
	struct umad_hdr h = {.id = id,
			     .lid = ((const struct umad_hdr *)r->in)->lid,
			     .qpn = ((const struct umad_hdr *)r->in)->qpn};

	memcpy(r->out, r->in, 320);
	memcpy(r->out, &h, sizeof(h));
	mad(r)[3] = method;
	assert_int_equal(put(r, i, 320), 320);
}

/* Everything that waits is due, also what was sent the last time. */
static void later(struct rig *r)
{
	static uint64_t now = UINT64_C(1) << 60;

	now += UINT64_C(1000000000000);
	(void)notice_due(r->t->k.umad, now);
}

static void silence(struct rig *r, int i)
{
	assert_int_equal(get(r, i, 320), -EAGAIN);
}

static void links(void **state)
{
	uint32_t id, ask, status;
	uint8_t data[64];
	struct rig r;

	(void)state;
	/* The second file is on the port of the subnet manager, LID 1: of the first host. */
	begin_hosts(&r, 0, 3);
	assert_int_equal(reg(&r, 1, 0, 1, 1, 0, 0, METHOD(TRAP), &id), 0);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &ask), 0);
	assert_int_equal(smp(&r, ask, SWITCH, GET, SWITCH_INFO, 0, NULL, &status)[11] & 4, 0);
	port(&r, 2, 1, SH_PORT_DOWN);
	assert_int_equal(mad16(notice(&r, 1, 1, TRAP, 128), 10), SWITCH);
	assert_int_equal(from(&r), SWITCH);
	assert_int_equal(r.in[64 + 64] & 0x7f, 1);
	assert_int_equal(r.in[64 + 67], 2);
	/* It comes again, and not after its answer. */
	silence(&r, 1);
	later(&r);
	(void)notice(&r, 1, 1, TRAP, 128);
	answer(&r, 1, id, REPRESS);
	later(&r);
	silence(&r, 1);
	assert_null(r.t->k.umad->notices);
	/* Each of several changes is told, the newest of them alone again. */
	port(&r, 2, 1, SH_PORT_UP);
	port(&r, 2, 1, SH_PORT_DOWN);
	(void)notice(&r, 1, 1, TRAP, 128);
	(void)notice(&r, 1, 1, TRAP, 128);
	later(&r);
	(void)notice(&r, 1, 1, TRAP, 128);
	silence(&r, 1);
	/* The bit of SwitchInfo waits for who clears it by Set. */
	memcpy(data, smp(&r, ask, SWITCH, GET, SWITCH_INFO, 0, NULL, &status), 64);
	assert_int_equal(data[11] & 4, 4);
	data[11] &= 0xfb;
	assert_int_equal(smp(&r, ask, SWITCH, SET, SWITCH_INFO, 0, data, &status)[11] & 4, 4);
	data[11] |= 4;
	assert_int_equal(smp(&r, ask, SWITCH, SET, SWITCH_INFO, 0, data, &status)[11] & 4, 0);
	assert_int_equal(status, 0);
	/* Nobody answers: there is an end. */
	for (int i = 0; i < 20; i++)
		later(&r);
	assert_null(r.t->k.umad->notices);
	end(&r);
}

static void set_port(struct rig *r, uint32_t host, uint32_t number, uint32_t what, uint32_t to)
{
	struct sh_port_msg m = {.host = host, .port = number, .what = what, .a = to};
	struct sh_status st;

	assert_true(port_change(&r->t->k, &m, true, &st));
	assert_int_equal(st.error, 0);
}

/*
 * A manager on host 1. It cannot tell a port that is down who it is, and hears of links all the
 * same. When it ends, the built-in one is where it was, though its port has another LID now.
 */
static void another_manager(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm;
	uint32_t id;
	struct rig r;
	int fd;

	(void)state;
	begin_hosts(&r, 1, 3);
	assert_int_equal(reg(&r, 1, 0, 1, 1, 0, 0, METHOD(TRAP), &id), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	port(&r, 0, 1, SH_PORT_DOWN);
	for (uint32_t host = 0; host < 3; host++)
		for (uint32_t number = host ? 1 : 2; number <= 2; number++)
			set_port(&r, host, number, SH_PORT_SM, 3);
	while (get(&r, 1, 320) == 320)
		;
	port(&r, 2, 1, SH_PORT_DOWN);
	assert_int_equal(mad16(notice(&r, 1, 1, TRAP, 128), 10), SWITCH);
	/* Also that it is up, before the port has been told of the manager. */
	port(&r, 0, 1, SH_PORT_UP);
	(void)notice(&r, 1, 1, TRAP, 128);
	set_port(&r, 0, 1, SH_PORT_LID, 50);
	umad_free(issm);
	close(fd);
	for (uint32_t host = 0; host < 3; host++)
		for (uint32_t number = 0; number < 2; number++)
			assert_int_equal(sh_hca(&r.t->k.dev, host)->port[number].sm_lid, 50);
	end(&r);
}

/* The switch tells the manager that its own port 0 was given, whatever the ports know. */
static void the_switchs_manager(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm;
	uint32_t id, ask, status;
	uint8_t data[64];
	struct rig r;
	int fd;

	(void)state;
	begin_hosts(&r, 1, 3);
	assert_int_equal(reg(&r, 1, 0, 1, 1, 0, 0, METHOD(TRAP), &id), 0);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &ask), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	memcpy(data, smp(&r, ask, SWITCH, GET, PORT_INFO, 0, NULL, &status), 64);
	assert_int_equal(mad16(data, 18), 1);
	mad_put16(data, 18, 3);
	(void)smp(&r, ask, SWITCH, SET, PORT_INFO, 0, data, &status);
	assert_int_equal(status, 0);
	port(&r, 2, 1, SH_PORT_DOWN);
	(void)notice(&r, 1, 1, TRAP, 128);
	silence(&r, 1);
	/* The manager ends: the built-in one is the switch's again. */
	umad_free(issm);
	close(fd);
	memcpy(data, smp(&r, ask, SWITCH, GET, PORT_INFO, 0, NULL, &status), 64);
	assert_int_equal(mad16(data, 18), 1);
	end(&r);
}

/* A subnet manager's port says that it has one, to the manager that it knows. */
static void masks(void **state)
{
	struct kproc p = {.host = 1, .pid = getpid()};
	struct umad_file *issm;
	const uint8_t *n;
	struct rig r;
	uint32_t id;
	int fd;

	(void)state;
	begin_hosts(&r, 0, 2);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, METHOD(TRAP), &id), 0);
	assert_int_equal(umad_open(r.t->k.umad, &p, UMAD_MINORS, O_RDWR, &issm, &fd), 0);
	n = notice(&r, 0, 1, TRAP, 144);
	assert_int_equal(from(&r), 3);
	assert_int_equal(n[0] & 0x7f, 4);
	assert_int_equal(n[3], 1);
	assert_int_equal(mad16(n, 12), 3);
	assert_int_equal(mad32(n, 16), 0x0251086a);
	answer(&r, 0, id, REPRESS);
	umad_free(issm);
	close(fd);
	assert_int_equal(mad32(notice(&r, 0, 1, TRAP, 144), 16), 0x02510868);
	/* The manager's own agent hears of it, and the built-in one answers if there is none. */
	assert_int_equal(umad_unregister(r.f[0], id), 0);
	later(&r);
	assert_null(r.t->k.umad->notices);
	end(&r);
}

/* Subscribes to notices of a number, or ends that. */
static void inform(struct rig *r, uint32_t id, bool subscribe, uint16_t number, uint16_t status)
{
	uint8_t *m = request(r, id, 1, 3, 2, SET, INFORM_INFO), *i = m + 56;

	mad_put16(i, 16, 0xffff);
	i[22] = 1;
	i[23] = subscribe;
	mad_put16(i, 24, 0xffff);
	mad_put16(i, 26, number);
	mad_put32(i, 28, subscribe ? 0 : 1 << 8);
	mad_put32(i, 32, 0xffffff);
	assert_int_equal(put(r, 0, 320), 320);
	assert_int_equal(get(r, 0, 320), 320);
	assert_int_equal(r->in[64 + 3], 0x81);
	assert_int_equal(mad16(r->in + 64, 4), status);
}

static long subscriptions(struct rig *r, uint32_t id)
{
	long n;

	request(r, id, 1, 3, 2, GET_TABLE, INFORM_RECORD);
	assert_int_equal(put(r, 0, 320), 320);
	n = get(r, 0, sizeof(r->in));
	assert_int_equal(mad16(r->in + 64, 4), 0);
	return (n - 64 - 56) / 64;
}

static void reports(void **state)
{
	static const uint8_t mgid[16] = {0xff, 0x12, [15] = 9};
	const struct sh_port *gone;
	struct cm_group *g;
	const uint8_t *n;
	struct rig r;
	uint32_t id;

	(void)state;
	begin_hosts(&r, 2, 3);
	gone = &sh_hca(&r.t->k.dev, 1)->port[0]; /* LID 3 */
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, METHOD(REPORT), &id), 0);
	assert_int_equal(subscriptions(&r, id), 0);
	inform(&r, id, true, 65, 0);
	inform(&r, id, true, 65, 0);
	assert_int_equal(subscriptions(&r, id), 1);
	assert_memory_equal(r.in + 64 + 56, sh_hca(&r.t->k.dev, 0)->port[0].gid[0], 16);
	assert_int_equal(mad16(r.in, 64 + 56 + 24 + 26), 65);
	port(&r, 1, 1, SH_PORT_DOWN);
	n = notice(&r, 0, 3, REPORT, 65);
	assert_memory_equal(n + 16, gone->gid[0], 16);
	assert_memory_equal(n + 64, sh_hca(&r.t->k.dev, 0)->port[0].gid[0], 16);
	assert_int_equal(n[3], 4);
	/* Again, until it is answered. */
	later(&r);
	(void)notice(&r, 0, 3, REPORT, 65);
	answer(&r, 0, id, REPORT | 0x80);
	later(&r);
	silence(&r, 0);
	port(&r, 1, 1, SH_PORT_UP);
	silence(&r, 0);
	inform(&r, id, false, 65, 0);
	inform(&r, id, false, 65, 0x0200);
	assert_int_equal(subscriptions(&r, id), 0);
	port(&r, 1, 1, SH_PORT_DOWN);
	silence(&r, 0);
	/* To all: what the switch said, which the manager passes on, and what it says itself. */
	inform(&r, id, true, 0xffff, 0);
	port(&r, 1, 1, SH_PORT_UP);
	n = notice(&r, 0, 3, REPORT, 128);
	assert_int_equal(mad64(n, 64 + 8), UINT64_C(0x0002c90300200000));
	answer(&r, 0, id, REPORT | 0x80);
	assert_memory_equal(notice(&r, 0, 3, REPORT, 64) + 16, gone->gid[0], 16);
	answer(&r, 0, id, REPORT | 0x80);
	g = cm_group_new(r.t->k.rdmacm, mgid);
	assert_non_null(g);
	assert_memory_equal(notice(&r, 0, 3, REPORT, 66) + 16, mgid, 16);
	cm_group_put(r.t->k.rdmacm, g);
	(void)notice(&r, 0, 3, REPORT, 67);
	for (int i = 0; i < 5; i++)
		later(&r);
	assert_null(r.t->k.umad->notices);
	while (get(&r, 0, 320) > 0)
		;
	/* Whose port is down has no subscription left. */
	port(&r, 0, 1, SH_PORT_DOWN);
	assert_null(r.t->k.umad->informs);
	end(&r);
}

/*
 * A subscriber waits at the LID that it had: with another one it has no subscription, and the
 * reports that nobody has answered end. It can subscribe anew, and hears of what happens there.
 */
static void moved_subscriber(void **state)
{
	struct umad_file *first;
	struct rig r;
	uint32_t id;

	(void)state;
	begin_hosts(&r, 2, 3);
	first = r.f[0];
	r.f[0] = r.f[1]; /* of host 2: LID 5 */
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, METHOD(REPORT), &id), 0);
	inform(&r, id, true, 65, 0);
	assert_int_equal(subscriptions(&r, id), 1);
	port(&r, 1, 1, SH_PORT_DOWN);
	(void)notice(&r, 0, 3, REPORT, 65);
	set_port(&r, 2, 1, SH_PORT_LID, 40);
	assert_int_equal(subscriptions(&r, id), 0);
	for (int i = 0; i < 5; i++)
		later(&r);
	silence(&r, 0);
	assert_null(r.t->k.umad->notices);
	port(&r, 1, 1, SH_PORT_UP);
	inform(&r, id, true, 65, 0);
	assert_int_equal(subscriptions(&r, id), 1);
	port(&r, 1, 1, SH_PORT_DOWN);
	(void)notice(&r, 0, 3, REPORT, 65);
	answer(&r, 0, id, REPORT | 0x80);
	later(&r);
	silence(&r, 0);
	r.f[0] = first;
	end(&r);
}

/*
 * `softhca port ... sm` has moved the built-in manager to LID 3, while a port was down that so
 * knows the earlier one yet. What the manager says of itself, and its Reports, name its present
 * port.
 */
static void moved_manager(void **state)
{
	static const uint8_t mgid[16] = {0xff, 0x12, [15] = 9};
	const struct sh_port *at;
	struct cm_group *g;
	const uint8_t *n;
	uint8_t *asked;
	uint32_t id;
	struct rig r;

	(void)state;
	begin_hosts(&r, 1, 3);
	at = &sh_hca(&r.t->k.dev, 1)->port[0];
	port(&r, 0, 1, SH_PORT_DOWN);
	for (uint32_t host = 0; host < 3; host++)
		for (uint32_t number = host ? 1 : 2; number <= 2; number++)
			set_port(&r, host, number, SH_PORT_SM, 3);
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, METHOD(REPORT), &id), 0);
	asked = request(&r, id, 3, 3, 2, SET, INFORM_INFO) + 56;
	mad_put16(asked, 16, 0xffff);
	asked[22] = asked[23] = 1;
	mad_put16(asked, 24, 0xffff);
	mad_put16(asked, 26, 66);
	mad_put32(asked, 32, 0xffffff);
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0);
	g = cm_group_new(r.t->k.rdmacm, mgid);
	assert_non_null(g);
	n = notice(&r, 1, 3, REPORT, 66);
	assert_int_equal(mad16(n, 6), 3);
	assert_memory_equal(n + 64, at->gid[0], 16);
	answer(&r, 1, id, REPORT | 0x80);
	cm_group_put(r.t->k.rdmacm, g);
	request(&r, id, 3, 3, 2, GET, SM_INFO_RECORD);
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0);
	assert_int_equal(mad16(r.in + 64, 56), 3);
	assert_memory_equal(r.in + 64 + 56 + 4, at->gid[0] + 8, 8);
	/* As SMInfo does. */
	assert_int_equal(reg(&r, 1, 0, 1, 1, 0, 0, 0, &id), 0);
	request(&r, id, 3, 1, 1, GET, SM_INFO);
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0);
	assert_memory_equal(r.in + 64 + 64, at->gid[0] + 8, 8);
	end(&r);
}

/* A port that subscribes to everything, and answers nothing, takes no other one's place. */
static void many_subscriptions(void **state)
{
	uint32_t id, other, n = 0;
	struct rig r;

	(void)state;
	begin_hosts(&r, 2, 3);
	assert_int_equal(reg(&r, 0, 1, 3, 2, 1, 0, METHOD(REPORT), &id), 0);
	assert_int_equal(reg(&r, 1, 1, 3, 2, 1, 0, METHOD(REPORT), &other), 0);
	for (uint16_t i = 0; i < 64; i++)
		inform(&r, id, true, i < 63 ? 100 + i : 65, 0);
	inform(&r, id, true, 99, 0x0100);
	inform(&r, id, true, 100, 0); /* it is there already */
	assert_int_equal(r.t->k.umad->ninforms, 64);
	/* Reports that nobody answers. */
	for (int i = 0; i < 400; i++) {
		port(&r, 1, 1, SH_PORT_DOWN);
		port(&r, 1, 1, SH_PORT_UP);
	}
	while (get(&r, 0, 320) > 0)
		n += r.in[64 + 3] == REPORT;
	assert_int_equal(n, 256);
	/* The other port's file subscribes, and hears. */
	request(&r, other, 1, 3, 2, SET, INFORM_INFO);
	mad_put16(mad(&r) + 56, 16, 0xffff);
	mad(&r)[56 + 22] = mad(&r)[56 + 23] = 1;
	mad_put16(mad(&r) + 56, 24, 0xffff);
	mad_put16(mad(&r) + 56, 26, 65);
	mad_put32(mad(&r) + 56, 32, 0xffffff);
	assert_int_equal(put(&r, 1, 320), 320);
	assert_int_equal(get(&r, 1, 320), 320);
	assert_int_equal(mad16(r.in + 64, 4), 0);
	port(&r, 1, 1, SH_PORT_DOWN);
	(void)notice(&r, 1, 3, REPORT, 65);
	/* Once its own Reports have an end, the first one hears again, of as many. */
	for (int i = 0; i < 5; i++)
		later(&r);
	while (get(&r, 0, 320) > 0)
		;
	assert_int_equal(r.t->k.umad->reports, 0);
	for (int i = 0; i < 400; i++) {
		port(&r, 1, 1, SH_PORT_UP);
		port(&r, 1, 1, SH_PORT_DOWN);
	}
	for (n = 0; get(&r, 0, 320) > 0;)
		n += r.in[64 + 3] == REPORT;
	assert_int_equal(n, 256);
	end(&r);
}

/* The ports that a block of the switch's table has for the block's n-th group. */
static uint32_t ports_of(struct rig *r, uint32_t id, uint32_t n)
{
	uint32_t status;
	const uint8_t *data = smp(r, id, SWITCH, GET, MFT, n / 32, NULL, &status);

	assert_int_equal(status, 0);
	return mad16(data, n % 32 * 2);
}

static void tables(void **state)
{
	static const uint8_t mgid[16] = {0xff, 0x12, [15] = 9};
	struct uv_mcast attach = {.gid = {0xff, 0x12, [15] = 7}, .mlid = 0xc021};
	struct cm_group_port *p;
	struct kt_queue cq, qp;
	struct cm_group *g;
	struct kctx *ctx;
	uint32_t id, pd;
	struct rig r;

	(void)state;
	begin_hosts(&r, 1, 2);
	assert_int_equal(reg(&r, 0, 0, 1, 1, 0, 0, 0, &id), 0);
	assert_int_equal(ports_of(&r, id, 0), 0);
	/* Those who have joined. */
	g = cm_group_new(r.t->k.rdmacm, mgid);
	assert_non_null(g);
	p = cm_group_port(g, 1, 2);
	assert_non_null(p);
	p->join = 1;
	assert_int_equal(g->mlid, 0xc000);
	assert_int_equal(ports_of(&r, id, 0), 1 << 4);
	p->join = 0;
	cm_group_put(r.t->k.rdmacm, g);
	assert_int_equal(ports_of(&r, id, 0), 0);
	/* Those who have attached a QP, which gets the group's messages here without joining. */
	ctx = kt_open(r.t, 0);
	assert_int_equal(kt_pd(r.t, ctx, &pd), 0);
	assert_int_equal(kt_cq(r.t, ctx, 8, -1, &cq), 0);
	assert_int_equal(kt_qp(r.t, ctx, UV_QPT_UD, pd, cq.handle, -1, &qp), 0);
	sh_qp_get(&r.t->k.dev, 0, qp.number)->port = 2;
	attach.qp_handle = qp.handle;
	assert_int_equal(kt_cmd(r.t, ctx, UV_ATTACH_MCAST, &attach, sizeof(attach), 0), 0);
	assert_int_equal(ports_of(&r, id, 0x21), 1 << 2);
	assert_int_equal(kt_cmd(r.t, ctx, UV_DETACH_MCAST, &attach, sizeof(attach), 0), 0);
	assert_int_equal(ports_of(&r, id, 0x21), 0);
	end(&r);
	kt_queue_free(&cq);
	kt_queue_free(&qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_manager),
		cmocka_unit_test(the_switchs_manager),
		cmocka_unit_test(links),
		cmocka_unit_test(masks),
		cmocka_unit_test(reports),
		cmocka_unit_test(moved_subscriber),
		cmocka_unit_test(many_subscriptions),
		cmocka_unit_test(tables),
		cmocka_unit_test(moved_manager),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
