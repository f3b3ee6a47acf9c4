/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of a link-local address (sin6_scope_id). Runs with the engine of
 * tests/unit/verbs/with_netdev.sh, whose interface is wire0.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static struct rdma_event_channel *channel;
static char own[INET6_ADDRSTRLEN]; /* the engine's link-local address */

static void __attribute__((format(printf, 1, 2))) run(const char *format, ...)
{
	char command[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	cr_assert_eq(system(command), 0, "%s", command);
}

static void begin(void)
{
	union ibv_gid gid;
	struct rdma_cm_id *id;

	if (system("test \"$(cat /proc/sys/net/ipv6/conf/all/disable_ipv6)\" = 0") != 0)
		cr_skip_test("no IPv6 here");
	channel = open_channel();
	id = open_id(channel, RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(id,
				    (struct sockaddr *)&(struct sockaddr_in){
					    .sin_family = AF_INET,
					    .sin_addr.s_addr = inet_addr("10.77.0.1") }),
		     0, "%s", strerror(errno));
	cr_assert_eq(ibv_query_gid(id->verbs, 1, 0, &gid), 0);
	inet_ntop(AF_INET6, gid.raw, own, sizeof(own));
	rdma_destroy_id(id);
	run("ip -6 address replace %s/64 dev wire0 nodad", own);
}

TestSuite(scope, .init = begin, .timeout = 60);

static struct sockaddr *at(struct sockaddr_in6 *a, const char *text, uint32_t scope)
{
	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_scope_id = scope };
	cr_assert_eq(inet_pton(AF_INET6, text, &a->sin6_addr), 1);
	return (struct sockaddr *)a;
}

/* 0 or the errno, and the scope that the id has afterwards. */
static int bind_at(const char *text, uint32_t scope)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 a;
	int error = rdma_bind_addr(id, at(&a, text, scope)) == 0 ? 0 : errno;

	if (error == 0)
		cr_expect_eq(id->route.addr.src_sin6.sin6_scope_id, scope);
	rdma_destroy_id(id);
	return error;
}

static int resolve_to(const char *source, uint32_t source_scope, const char *text, uint32_t scope)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 from, to;
	int error = rdma_resolve_addr(id, source == NULL ? NULL : at(&from, source, source_scope),
				      at(&to, text, scope), 2000) == 0
			    ? 0
			    : errno;

	if (error == 0 && source == NULL)
		cr_expect_eq(id->route.addr.src_sin6.sin6_scope_id, scope);
	rdma_destroy_id(id);
	return error;
}

Test(scope, scope_of_the_bound_address)
{
	uint32_t wire0 = if_nametoindex("wire0"), lo = if_nametoindex("lo");

	cr_expect_eq(bind_at(own, 0), EINVAL);
	cr_expect_eq(bind_at(own, lo), ENODEV);
	cr_expect_eq(bind_at(own, 4242), ENODEV);
	cr_expect_eq(bind_at(own, wire0), 0);
	cr_expect_eq(bind_at("fe80::4242", wire0), ENODEV, "no interface has it");
	cr_expect_eq(resolve_to(own, 0, "fe80::2", wire0), EINVAL);
	cr_expect_eq(resolve_to(own, lo, "fe80::2", wire0), ENODEV);
	cr_expect_eq(resolve_to(own, wire0, "fe80::2", wire0), 0);
	cr_expect_eq(resolve_to(own, wire0, "fe80::2", 0), 0, "the source's scope is enough");
}

Test(scope, scope_of_a_destination)
{
	uint32_t wire0 = if_nametoindex("wire0"), lo = if_nametoindex("lo");

	cr_expect_eq(resolve_to(NULL, 0, "fe80::2", wire0), 0);
	cr_expect_eq(resolve_to(NULL, 0, "fe80::2", 0), 0, "there is one device");
	cr_expect_eq(resolve_to(NULL, 0, "fe80::2", lo), ENODEV);
	cr_expect_eq(resolve_to(NULL, 0, "fe80::2", 4242), ENETUNREACH);
	cr_expect_eq(resolve_to(NULL, 0, own, wire0), 0);
}

/* An address without an interface on another link, and one that needs none. */
Test(scope, addresses_without_a_scope)
{
	run("ip -6 address replace fd77::1/64 dev wire0 nodad");
	for (int i = 0; i < 500 && bind_at("fd77::1", 0) != 0; i++)
		poll(NULL, 0, 10); /* until the engine has seen it */
	cr_expect_eq(bind_at("fd77::1", 0), 0);
	cr_expect_eq(bind_at("::", 0), 0);
	cr_expect_eq(bind_at("::1", 0), 0);
}

/*
 * No interface of this namespace has the address, as in another namespace, or with a port that the
 * kernel does not know.
 */
Test(scope, no_interface_has_the_devices_address)
{
	run("ip -6 address flush dev wire0 scope link");
	cr_expect_eq(bind_at(own, 0), EINVAL);
	cr_expect_eq(bind_at(own, 4242), ENODEV, "the interface must exist");
	cr_expect_eq(bind_at(own, if_nametoindex("lo")), 0);
	cr_expect_eq(resolve_to(NULL, 0, "fe80::2", if_nametoindex("lo")), 0);
}
