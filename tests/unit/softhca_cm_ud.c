// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: datagrams and multicast groups by address, as the daemon has them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/kernel/rdmacm/group.h"
#include "softhca_cm_rig.h"

static void datagrams(void **state)
{
	struct rig r;
	uint32_t id, passive;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_UDP, "0.0.0.0", 10);
	id = routed(&r, 1, CM_PS_UDP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 181), EINVAL);
	assert_int_equal(connect_len(&r, 1, id, 180), 0);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(r.ev.param.ud.len, 180);
	assert_int_equal(r.ev.param.ud.data[179], 0x5a);
	passive = r.ev.id;
	assert_int_equal(accept_len(&r, 0, passive, 136, 1), 0);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(event(&r, 1), CM_EV_ESTABLISHED);
	assert_int_equal(r.ev.param.ud.qp_num, 0x456);
	assert_int_equal(r.ev.param.ud.qkey, 0x01234567);
	assert_int_equal(r.ev.param.ud.len, 136);
	assert_int_equal(r.ev.param.ud.ah.dlid, sh_hca(&r.t->k.dev, 0)->port[0].lid);
	id = routed(&r, 1, CM_PS_UDP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(reject(&r, 0, r.ev.id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_UNREACHABLE);
	assert_int_equal(r.ev.status, 2);
	/* TCP has nobody there. */
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 8);
	end(&r);
}

static int join(struct rig *r, int host, uint32_t id, uint32_t *number)
{
	struct cm_number_resp resp = {0};
	struct cm_join_ip_mcast c = {.response = (uintptr_t)&resp, .uid = 0x3000, .id = id};
	struct sockaddr_in in = {.sin_family = AF_INET};
	int err;

	inet_pton(AF_INET, "239.1.2.3", &in.sin_addr);
	memcpy(&c.addr, &in, sizeof(in));
	err = cmd(r, host, CM_JOIN_IP_MCAST, &c, sizeof(c), sizeof(resp));
	*number = resp.value;
	return err;
}

static void groups(void **state)
{
	static const uint8_t udp[16] = {0xff, 0x12, 0x40, 0x01, 0xff, 0xff, 0, 0,
					0,    0,    0,	  0,	0x0f, 0x01, 2, 3};
	struct cm_number_resp resp;
	struct cm_of_id leave = {.response = (uintptr_t)&resp};
	struct cm_ah_attr ah;
	uint32_t id[3], m[3];
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id[0] = create(&r, 0, CM_PS_UDP);
	assert_int_equal(join(&r, 0, id[0], &m[0]), EINVAL);
	assert_int_equal(bind_to(&r, 0, id[0], "127.128.0.1", 0), 0);
	assert_int_equal(join(&r, 0, id[0], &m[0]), 0);
	assert_int_equal(event(&r, 0), CM_EV_MULTICAST_JOIN);
	assert_true(r.ev.uid == 0x3000);
	assert_memory_equal(r.ev.param.ud.ah.dgid, udp, 16);
	assert_true(r.ev.param.ud.ah.dlid >= 0xc000);
	assert_int_equal(r.ev.param.ud.qp_num, 0xffffff);
	ah = r.ev.param.ud.ah;
	id[1] = create(&r, 1, CM_PS_UDP);
	assert_int_equal(bind_to(&r, 1, id[1], "127.128.1.1", 0), 0);
	assert_int_equal(join(&r, 1, id[1], &m[1]), 0);
	assert_int_equal(event(&r, 1), CM_EV_MULTICAST_JOIN);
	assert_int_equal(r.ev.param.ud.ah.dlid, ah.dlid);
	id[2] = create(&r, 1, CM_PS_IPOIB);
	assert_int_equal(bind_to(&r, 1, id[2], "127.128.1.1", 0), 0);
	assert_int_equal(join(&r, 1, id[2], &m[2]), 0);
	assert_int_equal(event(&r, 1), CM_EV_MULTICAST_JOIN);
	assert_int_not_equal(r.ev.param.ud.ah.dlid, ah.dlid);
	assert_int_equal(r.ev.param.ud.qkey, 0x0b1b);
	leave.id = m[0];
	assert_int_equal(cmd(&r, 0, CM_LEAVE_MCAST, &leave, sizeof(leave), 4), 0);
	assert_int_equal(resp.value, 1);
	assert_int_equal(cmd(&r, 0, CM_LEAVE_MCAST, &leave, sizeof(leave), 4), ENOENT);
	id[0] = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, id[0], "127.128.0.1", 0), 0);
	assert_int_equal(join(&r, 0, id[0], &m[0]), EINVAL);
	end(&r);
}

static int join_by(struct rig *r, int host, uint32_t id, uint16_t flags, uint32_t *number)
{
	struct cm_number_resp resp = {0};
	struct cm_join_mcast c = {.response = (uintptr_t)&resp,
				  .uid = 0x3000,
				  .id = id,
				  .addr_size = sizeof(struct sockaddr_in),
				  .flags = flags};
	struct sockaddr_in in = {.sin_family = AF_INET};
	int err;

	inet_pton(AF_INET, "239.1.2.3", &in.sin_addr);
	memcpy(&c.addr, &in, sizeof(in));
	err = cmd(r, host, CM_JOIN_MCAST, &c, sizeof(c), sizeof(resp));
	*number = resp.value;
	return err;
}

/* Who only sends gets the group that receivers have, keeps it alive, and leaves it as they do. */
static void send_only(void **state)
{
	struct cm_number_resp resp;
	struct cm_of_id leave = {.response = (uintptr_t)&resp};
	uint32_t sender, receiver, m[2];
	struct cm_ah_attr ah;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	sender = create(&r, 0, CM_PS_UDP);
	assert_int_equal(bind_to(&r, 0, sender, "127.128.0.1", 0), 0);
	assert_int_equal(join_by(&r, 0, sender, 2, &m[0]), EINVAL);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(join_by(&r, 0, sender, 1, &m[0]), 0);
	assert_int_equal(event(&r, 0), CM_EV_MULTICAST_JOIN);
	assert_true(r.ev.uid == 0x3000);
	assert_int_equal(r.ev.param.ud.qkey, 0x01234567);
	ah = r.ev.param.ud.ah;
	assert_true(ah.dlid >= 0xc000);
	receiver = create(&r, 1, CM_PS_UDP);
	assert_int_equal(bind_to(&r, 1, receiver, "127.128.1.1", 0), 0);
	assert_int_equal(join_by(&r, 1, receiver, 0, &m[1]), 0);
	assert_int_equal(event(&r, 1), CM_EV_MULTICAST_JOIN);
	assert_memory_equal(r.ev.param.ud.ah.dgid, ah.dgid, 16);
	assert_int_equal(r.ev.param.ud.ah.dlid, ah.dlid);
	leave.id = m[0];
	assert_int_equal(cmd(&r, 0, CM_LEAVE_MCAST, &leave, sizeof(leave), 4), 0);
	assert_int_equal(resp.value, 1);
	/* The receiver's group goes on. */
	assert_int_equal(join_by(&r, 0, sender, 1, &m[0]), 0);
	assert_int_equal(event(&r, 0), CM_EV_MULTICAST_JOIN);
	assert_int_equal(r.ev.param.ud.ah.dlid, ah.dlid);
	end(&r);
}

/*
 * The lowest MLID that is free is the next group's, also where nearly all are taken; then there is
 * none.
 */
static void all_mlids(void **state)
{
	const struct cm_group_port *p;
	struct cm_group like = {0}, gone;
	struct cm_group_port left;
	uint8_t some[16] = {0};
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	for (uint32_t mlid = 0xc000; mlid <= 0xfffe; mlid++) {
		const struct cm_group *g = cm_groups_join(r.t->k.rdmacm, &like, 0, 1, 1, &p);

		assert_non_null(g);
		assert_int_equal(g->mlid, mlid);
		if (mlid == 0xd0ff)
			memcpy(some, g->mgid, 16);
	}
	assert_null(cm_groups_join(r.t->k.rdmacm, &like, 0, 1, 1, &p));
	assert_true(cm_groups_leave(r.t->k.rdmacm, some, 0, 1, 1, &gone, &left));
	assert_int_equal(cm_groups_join(r.t->k.rdmacm, &like, 0, 1, 1, &p)->mlid, 0xd0ff);
	assert_null(cm_groups_join(r.t->k.rdmacm, &like, 0, 1, 1, &p));
	cm_groups_port_gone(r.t->k.rdmacm, 0, 1);
	assert_int_equal(cm_groups_join(r.t->k.rdmacm, &like, 0, 1, 1, &p)->mlid, 0xc000);
	cm_groups_port_gone(r.t->k.rdmacm, 0, 1);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams),
		cmocka_unit_test(groups),
		cmocka_unit_test(all_mlids),
		cmocka_unit_test(send_only),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
