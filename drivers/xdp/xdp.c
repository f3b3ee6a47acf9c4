/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/xdp/xdp.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/interface.h"
#include "drivers/port.h"
#include "drivers/xdp/filter.h"
#include "drivers/xdp/object.h"

#define MAPS 8 /* the program has two, and the compiler may make one for constants */

static_assert(XDP_ADDRESSES == LIMIT_GIDS, "the program knows every address");
static_assert(XDP_QUEUES >= LIMIT_LCORES, "the program knows every queue");

struct xdp {
	int link; /* the program is attached as long as this is open */
	struct xdp_filter *filter; /* the program's variable */
};

static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0; /* `why` says what failed */
}

int xdp_program_file(void)
{
	int fd = memfd_create("uroce-xdp", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < xdp_object_octets) {
		ssize_t n = write(fd, xdp_object + done, xdp_object_octets - done);

		if (n <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	return fd;
}

static int attach(int program, uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);

	return bpf_link_create(program, (int)ifindex, BPF_XDP, &options);
}

/* Interfaces that do not tell their number of queues have one. */
uint32_t xdp_queues(uint32_t ifindex)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq r = { .ifr_data = (char *)&channels };

	if (interface_request(-1, ifindex, SIOCETHTOOL, &r) != 0)
		return 1;
	return MAX_OF(MAX_OF(channels.combined_count, channels.rx_count), 1u);
}

/*
 * Tests whether the kernel accepts the program and the interface's driver runs it. Returns 0, or an
 * errno.
 */
static int try_program(uint32_t ifindex)
{
	struct bpf_object *object;
	struct bpf_program *program;
	int link, error;

	libbpf_set_print(silent);
	object = bpf_object__open_mem(xdp_object, xdp_object_octets, NULL);
	if (object == NULL)
		return errno;
	error = -bpf_object__load(object);
	program = bpf_object__next_program(object, NULL);
	if (error == 0 && program != NULL) {
		link = attach(bpf_program__fd(program), ifindex);
		error = link < 0 ? -link : 0;
		if (link >= 0)
			close(link);
	}
	bpf_object__close(object);
	return error;
}

bool xdp_usable(const char *iface, uint32_t ifindex, uint16_t queues, char *why, size_t why_size)
{
	uint32_t has = xdp_queues(ifindex);
	int error;

	if (has > queues) {
		/*
		 * On a queue without a socket, a RoCE frame would go to the kernel, and be lost to
		 * the engine.
		 */
		snprintf(why, why_size,
			 "%s has %u queues and the engine %u: more cores with -l, or ethtool -L %s "
			 "combined %u",
			 iface, has, queues, iface, queues);
		return false;
	}
	error = try_program(ifindex);
	if (error == EBUSY || error == EEXIST)
		snprintf(why, why_size, "another XDP program is attached to %s (ip link show)",
			 iface);
	else if (error != 0)
		snprintf(why, why_size, "%s cannot run an XDP program in its driver: %s", iface,
			 strerror(error));
	return error == 0;
}

/* ---- the program that net_af_xdp has loaded ---- */

static int program_on(uint32_t ifindex)
{
	uint32_t id = 0;

	if (bpf_xdp_query_id((int)ifindex, 0, &id) != 0 || id == 0)
		return -1;
	return bpf_prog_get_fd_by_id(id);
}

/* The map that holds the program's variable, an array of one value. -1: there is none. */
static int variable_of(int program)
{
	uint32_t map[MAPS] = { 0 };
	struct bpf_prog_info info = { .nr_map_ids = MAPS, .map_ids = (uintptr_t)map };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size) != 0)
		return -1;
	for (uint32_t i = 0; i < MIN_OF(info.nr_map_ids, (uint32_t)MAPS); i++) {
		int fd = bpf_map_get_fd_by_id(map[i]);
		struct bpf_map_info facts = { 0 };
		uint32_t octets = sizeof(facts);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &facts, &octets) == 0 &&
		    facts.type == BPF_MAP_TYPE_ARRAY &&
		    facts.value_size == sizeof(struct xdp_filter))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static struct xdp_filter *map_filter(int program)
{
	int fd = variable_of(program);
	void *at = MAP_FAILED;

	if (fd >= 0) {
		at = mmap(NULL, sizeof(struct xdp_filter), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
		close(fd);
	}
	return at == MAP_FAILED ? NULL : at;
}

/* For a moment no program is attached. The kernel drops frames to UDP port 4791 meanwhile. */
static int attach_again(int program, uint32_t ifindex)
{
	if (bpf_xdp_detach((int)ifindex, 0, NULL) != 0)
		return -1;
	return attach(program, ifindex);
}

static bool take(struct xdp *x, uint32_t ifindex)
{
	int program = program_on(ifindex);

	if (program < 0)
		return false;
	x->filter = map_filter(program);
	x->link = x->filter != NULL ? attach_again(program, ifindex) : -1;
	close(program);
	return x->link >= 0;
}

struct xdp *xdp_take(uint32_t ifindex, char *why, size_t why_size)
{
	struct xdp *x = calloc(1, sizeof(*x));

	if (x != NULL && take(x, ifindex))
		return x;
	snprintf(why, why_size, "cannot take over the XDP program: %s", strerror(errno));
	if (x != NULL && x->filter != NULL)
		munmap(x->filter, sizeof(*x->filter));
	free(x);
	return NULL;
}

void xdp_set_addresses(struct xdp *x, const struct port *p)
{
	struct xdp_filter *f = x->filter;

	for (uint32_t i = 0; i < p->addresses; i++)
		memcpy(f->address[i], p->address[i].gid.octet, sizeof(f->address[i]));
	/* Release: the program in the kernel sees the rows before it sees their number. */
	__atomic_store_n(&f->addresses, p->addresses, __ATOMIC_RELEASE);
}

void xdp_release(struct xdp *x)
{
	if (x == NULL)
		return;
	close(x->link);
	munmap(x->filter, sizeof(*x->filter));
	free(x);
}
