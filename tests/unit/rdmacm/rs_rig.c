/* SPDX-License-Identifier: BSD-3-Clause */
#include "rs_rig.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/rsocket.h>
#include <string.h>

int s, d;

void rs_pair_open(void)
{
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	d = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_geq(s, 0, "%s", strerror(errno));
	cr_assert_geq(d, 0, "%s", strerror(errno));
}

void rs_pair_close(void)
{
	cr_expect_eq(rclose(s), 0);
	cr_expect_eq(rclose(d), 0);
}

int rs_listening(struct sockaddr_in *a)
{
	socklen_t length = sizeof(*a);
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(rbind(listener, address(a, OWN_ADDRESS, 0), sizeof(*a)), 0);
	cr_assert_eq(rlisten(listener, 4), 0);
	cr_assert_eq(rgetsockname(listener, (struct sockaddr *)a, &length), 0);
	return listener;
}

int rs_connect_stream(int listener, const struct sockaddr_in *a)
{
	int called;

	cr_assert_eq(rconnect(s, (const struct sockaddr *)a, sizeof(*a)), 0, "%s", strerror(errno));
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0, "%s", strerror(errno));
	return called;
}

int rs_set(int socket, int level, int name, int value)
{
	return rsetsockopt(socket, level, name, &value, sizeof(value)) == 0 ? 0 : errno;
}

int rs_ask(int socket, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	cr_expect_eq(rgetsockopt(socket, level, name, &value, &length), 0, "%d, %d: %s", level,
		     name, strerror(errno));
	cr_expect_eq(length, sizeof(value));
	return value;
}
