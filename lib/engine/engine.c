/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as programs hold it (uroce.h): creation and destruction. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "base/bits.h"
#include "drivers/buffers.h"
#include "drivers/client_memory/peer.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/node.h"
#include "engine/carrier_direct.h"
#include "engine/inside.h"
#include "engine/leave.h"
#include "lcore/exception/exception.h"
#include "lcore/window.h"
#include "queue/pointers.h"

#define ETHERNET_OVERHEAD 22u /* header, tag, FCS */

/* ---- facts ---- */

static int set_mtu(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	uint32_t mtu = o->mtu != 0	 ? o->mtu
		       : e->port != NULL ? e->port->mtu
					 : LIMIT_MTU_WITHOUT_PORT;

	if (e->port != NULL && mtu > e->port->mtu) {
		snprintf(why, why_size,
			 "--mtu %u exceeds the %u octets of port %s: lower --mtu or raise "
			 "the port's",
			 mtu, e->port->mtu, e->port->name);
		return EINVAL;
	}
	engine_take_mtu(e, mtu);
	if (e->active_mtu == 0) {
		snprintf(why, why_size, "--mtu %u is too small: RoCE needs %u or more", mtu,
			 256 + HEADERS_MOST);
		return EINVAL;
	}
	return 0;
}

static int set_identity(struct engine *e, const struct uroce_options *o)
{
	snprintf(e->name, sizeof(e->name), "%s", o->name != NULL ? o->name : "uroce0");
	if (getrandom(&e->id, sizeof(e->id), 0) != sizeof(e->id))
		return errno;
	if (e->port != NULL) {
		e->mac = e->port->mac;
		e->asks_port_for_sums = (e->port->offloads & OFFLOAD_IPV4_CKSUM_RX) != 0;
	} else {
		memcpy(e->mac.octet, &e->id, 6);
		e->mac.octet[0] =
			(uint8_t)((e->mac.octet[0] & 0xfcu) | 2u); /* locally administered */
	}
	e->mac_word = mac_word(e->mac.octet);
	e->vlan = o->vlan;
	e->sum_loop = o->sum_loop;
	e->adaptive = o->adaptive;
	e->urgent = o->urgent;
	return 0;
}

/* ---- parts ---- */

static int make_pool(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	uint32_t mtu = e->port != NULL ? e->port->mtu : MAX_OF(o->mtu, LIMIT_MTU_WITHOUT_PORT);
	uint32_t n = o->pool_size != 0 ? o->pool_size
		     : e->port != NULL ? LIMIT_POOL_BASE + LIMIT_POOL_LCORE * o->lcores
				       : LIMIT_POOL_HOST_BASE + LIMIT_POOL_HOST_LCORE * o->lcores;
	uint32_t room = RTE_PKTMBUF_HEADROOM + (uint32_t)round_up(mtu + ETHERNET_OVERHEAD, 64);
	char name[RTE_MEMPOOL_NAMESIZE];

	e->pool = o->pool;
	if (e->pool != NULL) {
		e->buffers = e->pool->size / o->lcores;
		return 0;
	}
	e->buffers = n / o->lcores;
	snprintf(name, sizeof(name), "up-%08x", (uint32_t)e->id);
	e->pool = buffers_make(name, n, (uint16_t)room, e->port);
	e->control->owns_pool = e->pool != NULL;
	if (e->pool != NULL)
		return 0;
	snprintf(why, why_size, "no memory for %u packet buffers of %u octets", n, room);
	if (!buffers_are_private(e->port))
		snprintf(why + strlen(why), why_size - strlen(why), ": give EAL -m %u",
			 (uint32_t)(((uint64_t)n * (room + 256)) >> 20) + 64);
	return ENOMEM;
}

static int make_keys(struct engine *e)
{
	uint8_t random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random) ||
	    getrandom(&e->hash_secret, sizeof(e->hash_secret), 0) != sizeof(e->hash_secret))
		return errno;
	e->control->key_memory = calloc(1, key_table_size(LIMIT_ENGINE_MRS));
	if (e->control->key_memory == NULL)
		return ENOMEM;
	key_table_init(&e->keys, e->control->key_memory, LIMIT_ENGINE_MRS, random);
	return 0;
}

static int make_strangers(struct engine *e)
{
	char name[RTE_RING_NAMESIZE];

	/* If the kernel answers, the engine does not need these frames. */
	if (e->port == NULL || e->port->kernel_answers)
		return 0;
	snprintf(name, sizeof(name), "us-%08x", (uint32_t)e->id);
	e->strangers = rte_ring_create(name, LIMIT_STRANGERS, e->port->socket, RING_F_SC_DEQ);
	return e->strangers != NULL ? 0 : ENOMEM;
}

static int make_lcores(struct engine *e, uint32_t n)
{
	e->lcore = aligned_alloc(RTE_CACHE_LINE_SIZE, n * sizeof(*e->lcore));
	if (e->lcore == NULL)
		return ENOMEM;
	memset(e->lcore, 0, n * sizeof(*e->lcore));
	for (uint32_t i = 0; i < n; i++) {
		int error = lcore_init(e, &e->lcore[i], i);

		if (error != 0)
			return error;
		e->lcores = i + 1;
	}
	return 0;
}

static struct engine *engine_new(const struct uroce_options *o)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct control *c = calloc(1, sizeof(*c));

	if (e == NULL || c == NULL) {
		free(e);
		free(c);
		return NULL;
	}
	e->control = c;
	e->port = port_of_program(o->port);
	e->control_fd = -1;
	LIST_INIT(&e->qps);
	LIST_INIT(&e->control->xrcds);
	LIST_INIT(&e->ahs);
	pthread_mutex_init(&e->control_lock, NULL);
	c->engine = e;
	c->options = *o;
	c->options.name = NULL; /* the caller's strings end with the call */
	c->options.socket_path = NULL;
	c->epoll_fd = -1;
	c->wake.fd = -1;
	c->listener.engine = e;
	c->listener.watch.fd = -1;
	c->listener.lock_fd = -1;
	c->listener.files_fd = -1;
	c->link_up = e->port == NULL || e->port->link_up;
	LIST_INIT(&c->connections);
	TAILQ_INIT(&c->ending);
	disposal_open(&c->disposal);
	LIST_INIT(&c->parked);
	LIST_INIT(&c->graves);
	LIST_INIT(&c->binds);
	return e;
}

static int engine_build(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	int error = set_identity(e, o);

	if (error == 0)
		error = set_mtu(e, o, why, why_size);
	if (error == 0)
		error = make_pool(e, o, why, why_size);
	if (error == 0)
		error = make_keys(e);
	if (error == 0)
		error = directory_init(e);
	if (error == 0)
		error = srq_numbers_init(e);
	if (error == 0)
		error = make_strangers(e);
	if (error == 0)
		error = make_lcores(e, o->lcores);
	if (error != 0)
		return error;
	gid_table_update(e);
	error = exception_open(e, why, why_size);
	if (error != 0)
		return error;
	error = control_open(e, o, why, why_size);
	return error != 0 ? error : control_start(e, why, why_size);
}

/* No thread polls the engine, and no other code has a pointer to it. */
static void engine_free(struct engine *e)
{
	struct control *c = e->control;
	bool nothing_stuck;

	carrier_direct_unregister(e);
	control_stop(e);
	carrier_direct_orphan(e);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL && !e->client[i]->dying)
			client_end(e->client[i]);
	clients_close(e);
	nothing_stuck = graves_close(e);
	clients_close(e);
	disposal_close(&c->disposal);
	control_close(e);
	exception_close(e);
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_destroy(&e->lcore[i]);
	pointers_free_frames(e->strangers);
	windows_destroy(e);
	if (e->port != NULL)
		e->port->ops->close(e->port);
	directory_destroy(e);
	handle_table_destroy(&c->srq_numbers);
	/* A copy that hangs still uses a packet buffer. */
	if (c->owns_pool && nothing_stuck)
		rte_mempool_free(e->pool);
	free(e->lcore);
	free(c->key_memory);
	pthread_mutex_destroy(&e->control_lock);
	free(c);
	free(e);
}

static struct engine *engine_make(const struct uroce_options *o, char *why, size_t why_size)
{
	struct port *port = port_of_program(o->port);
	struct node_policy own;
	struct engine *e;
	int error;

	node_prefer(&own, port != NULL ? port->node : -1);
	e = engine_new(o);
	error = e == NULL ? ENOMEM : live_add(e);
	if (error == ENOSPC)
		snprintf(why, why_size, "this process has %u engines already",
			 LIMIT_EMBEDDED_ENGINES);
	if (error == 0)
		error = engine_build(e, o, why, why_size);
	node_prefer_end(&own);
	if (error == 0) {
		live_open(e);
		live_leave(e);
		return e;
	}
	if (why[0] == '\0')
		snprintf(why, why_size, "cannot create the engine: %s", strerror(error));
	if (e != NULL) {
		live_remove(e);
		e->port = NULL; /* stays the caller's */
		engine_free(e);
	}
	errno = error;
	return NULL;
}

struct uroce_engine *uroce_create(const struct uroce_options *options, char *why, size_t why_size)
{
	struct uroce_options o;
	struct engine *e;

	errno = EINVAL;
	if (!struct_take(&o, sizeof(o), options, "uroce_options", why, why_size) ||
	    engine_options_check(&o, why, why_size) != 0)
		return NULL;
	if (o.port != NULL && !ethdev_claim(port_of_program(o.port), o.vlan, why, why_size)) {
		errno = EBUSY;
		return NULL;
	}
	clock_init();
	/* Before there is an engine, whose control thread reads the whole port at any time. */
	if (o.port != NULL)
		port_of_program(o.port)->taken = true;
	e = engine_make(&o, why, why_size);
	if (e == NULL && o.port != NULL)
		port_of_program(o.port)->taken = false;
	return (struct uroce_engine *)e;
}

void engine_leave_buffers(struct uroce_engine *u)
{
	if (!rte_eal_has_hugepages())
		((struct engine *)u)->control->owns_pool = false;
}

int uroce_destroy(struct uroce_engine *u)
{
	struct engine *e;
	int error = u == NULL ? 0 : live_enter(u, &e);

	if (u == NULL || error != 0)
		return error;
	if (!running_end(e)) {
		live_leave(e);
		return EBUSY;
	}
	live_remove(e);
	engine_free(e);
	return 0;
}

int uroce_register(struct uroce_engine *u)
{
	struct engine *e;
	int error = live_enter(u, &e);

	if (error != 0)
		return error;
	error = carrier_direct_register(e);
	live_leave(e);
	return error;
}
