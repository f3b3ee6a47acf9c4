/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_getaddrinfo, which needs no engine, and other calls without one. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

#include "rig.h"

#define FLAG_DNS  0x20 /* RAI_DNS of newer headers */
#define FAMILY_IB 27 /* AF_IB */

static void no_engine(void)
{
	setenv("UROCE_SOCKET", "/nonexistent/uroced.sock", 1);
}

TestSuite(addrinfo, .init = no_engine, .timeout = 60);

static const struct sockaddr_in *v4(const struct sockaddr *a)
{
	return (const void *)a;
}

Test(addrinfo, a_destination_is_resolved)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;

	cr_assert_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_family, AF_INET);
	cr_expect_eq(res->ai_qp_type, IBV_QPT_RC);
	cr_expect_eq(res->ai_port_space, RDMA_PS_TCP);
	cr_expect_eq(res->ai_src_len, 0);
	cr_expect_null(res->ai_src_addr);
	cr_assert_eq(res->ai_dst_len, sizeof(struct sockaddr_in));
	cr_expect_eq(v4(res->ai_dst_addr)->sin_port, htons(7471));
	cr_expect_eq(v4(res->ai_dst_addr)->sin_addr.s_addr, htonl(0xc0000201));
	cr_expect_eq(res->ai_route_len, 0);
	cr_expect_eq(res->ai_connect_len, 0);
	rdma_freeaddrinfo(res);
}

Test(addrinfo, a_listeners_address)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP },
			     *res;

	cr_assert_eq(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_flags & RAI_PASSIVE, RAI_PASSIVE);
	cr_expect_eq(res->ai_qp_type, IBV_QPT_UD);
	cr_expect_eq(res->ai_dst_len, 0);
	cr_assert_geq(res->ai_src_len, sizeof(struct sockaddr_in));
	cr_expect_eq(v4(res->ai_src_addr)->sin_port, htons(7471));
	rdma_freeaddrinfo(res);
}

Test(addrinfo, family_and_numbers)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
				       .ai_family = AF_INET6 },
			     *res;

	cr_assert_eq(rdma_getaddrinfo("fd00::1", "1", &hints, &res), 0);
	cr_expect_eq(res->ai_family, AF_INET6);
	cr_expect_eq(res->ai_dst_len, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
	cr_expect_neq(rdma_getaddrinfo("192.0.2.1", "1", &hints, &res), 0);
	cr_expect_eq(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
}

/* As in rdma-core, RAI_FAMILY only matters for AF_IB. */
Test(addrinfo, a_family_without_its_flag)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE,
				       .ai_family = AF_INET6,
				       .ai_port_space = RDMA_PS_TCP },
			     *res;

	cr_assert_eq(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_family, AF_INET6);
	cr_expect_eq(res->ai_src_len, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
	hints.ai_flags = 0;
	cr_expect_neq(rdma_getaddrinfo("192.0.2.1", "1", &hints, &res), 0);
	hints.ai_family = FAMILY_IB;
	cr_assert_eq(rdma_getaddrinfo("192.0.2.1", "1", &hints, &res), 0);
	cr_expect_eq(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_FAMILY;
	cr_expect_eq(rdma_getaddrinfo("192.0.2.1", "1", &hints, &res), EAI_FAMILY);
}

/* A program asks for what happens anyway. */
Test(addrinfo, the_resolver_can_be_asked_for)
{
	struct rdma_addrinfo hints = { .ai_flags = FLAG_DNS, .ai_port_space = RDMA_PS_TCP }, *res;

	cr_assert_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &res), 0);
	cr_expect_eq(res->ai_dst_len, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(res);
}

Test(addrinfo, hints_without_a_node)
{
	struct sockaddr_in from, to;
	struct rdma_addrinfo hints = {
		.ai_qp_type = IBV_QPT_UD,
		.ai_src_len = sizeof(from),
		.ai_src_addr = address(&from, "192.0.2.2", 5),
		.ai_dst_len = sizeof(to),
		.ai_dst_addr = address(&to, "192.0.2.3", 6),
	};
	struct rdma_addrinfo *res;

	cr_assert_eq(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	cr_expect_eq(res->ai_port_space, RDMA_PS_UDP);
	cr_expect_eq(v4(res->ai_src_addr)->sin_port, htons(5));
	cr_expect_eq(v4(res->ai_dst_addr)->sin_port, htons(6));
	cr_expect_neq(res->ai_dst_addr, hints.ai_dst_addr);
	rdma_freeaddrinfo(res);
}

Test(addrinfo, impossible_hints_fail)
{
	struct rdma_addrinfo contradiction = { .ai_qp_type = IBV_QPT_UD,
					       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo unknown = { .ai_flags = 1 << 12 };
	struct rdma_addrinfo *res;

	errno = 0;
	cr_expect_eq(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(rdma_getaddrinfo("192.0.2.1", "1", &contradiction, &res), EAI_SOCKTYPE);
	cr_expect_eq(rdma_getaddrinfo("192.0.2.1", "1", &unknown, &res), EAI_BADFLAGS);
	cr_expect_eq(rdma_getaddrinfo("192.0.2.1", "no-such-service", NULL, &res), EAI_SERVICE);
	rdma_freeaddrinfo(NULL);
}

Test(addrinfo, without_an_engine_there_is_no_device)
{
	struct rdma_cm_id *id;
	int n = 77;

	errno = 0;
	cr_expect_null(rdma_get_devices(&n));
	cr_expect_eq(errno, ENODEV);
	cr_expect_eq(n, 0);
	errno = 0;
	cr_expect_null(rdma_create_event_channel());
	cr_expect_eq(errno, ENODEV);
	errno = 0;
	cr_expect_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), -1);
	cr_expect_eq(errno, ENODEV);
}
