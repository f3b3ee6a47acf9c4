/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scopes of link-local addresses, as in Linux's rdma_cm. A scope is an interface of the program's
 * network namespace, which may differ from the engine's, and not every port has an interface. So
 * this looks for interfaces of the program's namespace that have the device's address. If there are
 * any, the scope must be one of them; otherwise any existing interface will do.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "queue/cancel.h"
#include "rdmacm/types.h"

static bool is_link_local(const struct sockaddr *a)
{
	const struct sockaddr_in6 *v6 = (const void *)a;

	return a != NULL && a->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

/* Returns 0; ENODEV: only other interfaces have the address; or an errno of getifaddrs. */
static int check_owner(const struct in6_addr *address, uint32_t scope)
{
	bool others = false, owns = false;
	const struct sockaddr_in6 *v6;
	struct ifaddrs *all;

	if (getifaddrs(&all) != 0)
		return errno;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		v6 = (const void *)i->ifa_addr;
		if (!is_link_local(i->ifa_addr) || !IN6_ARE_ADDR_EQUAL(&v6->sin6_addr, address))
			continue;
		owns |= v6->sin6_scope_id == scope;
		others |= v6->sin6_scope_id != scope;
	}
	freeifaddrs(all);
	return owns || !others ? 0 : ENODEV;
}

/* missing: the errno to return if the interface does not exist. */
static int check_scope(const struct in6_addr *own, uint32_t scope, int missing)
{
	int cancel = cancel_off(), error = 0;
	char name[IF_NAMESIZE];

	if (if_indextoname(scope, name) == NULL)
		error = errno == ENXIO ? missing : errno;
	else
		error = check_owner(own, scope);
	cancel_restore(cancel);
	return error;
}

int scope_check_source(const struct sockaddr *source)
{
	const struct sockaddr_in6 *v6 = (const void *)source;

	if (!is_link_local(source))
		return 0;
	return v6->sin6_scope_id == 0 ? EINVAL
				      : check_scope(&v6->sin6_addr, v6->sin6_scope_id, ENODEV);
}

int scope_check_destination(const struct id *id, const struct sockaddr *source,
			    const struct sockaddr *destination)
{
	const struct sockaddr_in6 *v6 = (const void *)destination;
	union ibv_gid gid;
	struct in6_addr own;

	if (!is_link_local(destination) || v6->sin6_scope_id == 0 || is_link_local(source) ||
	    ibv_query_gid(id->device->context, 1, 0, &gid) != 0)
		return 0;
	memcpy(&own, gid.raw, sizeof(own));
	return check_scope(&own, v6->sin6_scope_id, ENETUNREACH);
}
