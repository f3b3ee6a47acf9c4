/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine as programs hold it (uroce.h): creation, start, stop, destruction.
 *
 * The atomics here are single flags, which need no queue: `stopping` for lcore_loop, `closed` for
 * the client's library, `idle_expired` from the control thread, `adaptive` for idle lcores. Release
 * and acquire are enough, as nothing else is ordered by them.
 */
#include "engine/uroce.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "base/bits.h"
#include "drivers/client_memory/peer.h"
#include "control/control.h"
#include "engine/carrier_direct.h"
#include "lcore/exception/exception.h"
#include "lcore/window.h"

#define MTU_WITHOUT_PORT  4200u
#define POOL_CACHE	  256u
#define ETHERNET_OVERHEAD 22u /* header, tag, FCS */

static struct engine *engine_of(const struct uroce_engine *u)
{
	return (struct engine *)(uintptr_t)u;
}

/* ---- facts ---- */

static int set_mtu(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	uint32_t mtu = o->mtu != 0 ? o->mtu : e->port != NULL ? e->port->mtu : MTU_WITHOUT_PORT;

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
	} else {
		memcpy(e->mac.octet, &e->id, 6);
		e->mac.octet[0] =
			(uint8_t)((e->mac.octet[0] & 0xfcu) | 2u); /* locally administered */
	}
	e->vlan = o->vlan;
	e->sum_loop = o->sum_loop;
	e->adaptive = o->adaptive;
	return 0;
}

static int check_options(const struct uroce_options *o, char *why, size_t why_size)
{
	const char *wrong = NULL;

	if (o->lcores == 0 || o->lcores > LIMIT_LCORES)
		wrong = "lcores must be 1 .. 16";
	else if (o->addresses > ARRAY_SIZE(o->address) || o->gateways > ARRAY_SIZE(o->gateway))
		wrong = "more than 16 addresses or 2 gateways";
	else if (o->vlan > 4094)
		wrong = "the VLAN id must be 0 .. 4094";
	else if (o->port != NULL && (o->port->queues == 0 || o->port->queues > LIMIT_LCORES))
		wrong = "the port must have 1 .. 16 queues";
	if (wrong == NULL)
		return 0;
	snprintf(why, why_size, "%s", wrong);
	return EINVAL;
}

/* ---- parts ---- */

static int make_pool(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	uint32_t mtu = e->port != NULL ? e->port->mtu : MAX_OF(o->mtu, MTU_WITHOUT_PORT);
	uint32_t n =
		o->pool_size != 0 ? o->pool_size : LIMIT_POOL_BASE + LIMIT_POOL_LCORE * o->lcores;
	uint32_t room = RTE_PKTMBUF_HEADROOM + (uint32_t)round_up(mtu + ETHERNET_OVERHEAD, 64);
	char name[RTE_MEMPOOL_NAMESIZE];

	e->pool = o->pool;
	if (e->pool != NULL)
		return 0;
	snprintf(name, sizeof(name), "up-%08x", (uint32_t)e->id);
	e->pool = rte_pktmbuf_pool_create(name, n, POOL_CACHE, 0, (uint16_t)room,
					  e->port != NULL ? e->port->socket : SOCKET_ID_ANY);
	e->control->owns_pool = e->pool != NULL;
	if (e->pool != NULL)
		return 0;
	snprintf(why, why_size, "no memory for %u packet buffers of %u octets: give EAL -m %u", n,
		 room, (uint32_t)(((uint64_t)n * (room + 256)) >> 20) + 64);
	return ENOMEM;
}

static int make_keys(struct engine *e)
{
	uint8_t random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
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

	/* If the kernel answers, nobody here needs its frames. */
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
	e->port = o->port;
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
	c->link_up = o->port == NULL || o->port->link_up;
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

struct uroce_engine *uroce_create(const struct uroce_options *o, char *why, size_t why_size)
{
	struct engine *e;
	int error;

	why[0] = '\0';
	clock_init();
	if (check_options(o, why, why_size) != 0)
		return NULL;
	e = engine_new(o);
	error = e == NULL ? ENOMEM : engine_build(e, o, why, why_size);
	if (error == 0)
		return (struct uroce_engine *)e;
	if (why[0] == '\0')
		snprintf(why, why_size, "cannot create the engine: %s", strerror(error));
	if (e != NULL) {
		e->port = NULL; /* stays the caller's */
		uroce_destroy((struct uroce_engine *)e);
	}
	errno = error;
	return NULL;
}

static void strangers_drop(struct engine *e)
{
	void *m;

	while (e->strangers != NULL && rte_ring_dequeue(e->strangers, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(e->strangers);
}

void uroce_destroy(struct uroce_engine *u)
{
	struct engine *e = engine_of(u);
	bool nothing_stuck;
	struct control *c;

	if (e == NULL)
		return;
	c = e->control;
	uroce_stop(u);
	carrier_direct_unregister(e);
	control_stop(e);
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
	strangers_drop(e);
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

/* ---- running ---- */

/* The main EAL lcore's thread belongs to the caller, so an engine thread polls that lcore. */
static void *main_lcore_thread(void *lcore)
{
	/*
	 * With an EAL lcore id the thread has a mempool cache. Without one it is slower, but not
	 * wrong.
	 */
	bool registered = rte_thread_register() == 0;

	lcore_loop(lcore);
	if (registered)
		rte_thread_unregister();
	return NULL;
}

static int launch_main(struct engine *e, struct lcore *l, unsigned int id)
{
	struct control *c = e->control;
	rte_cpuset_t cpus = rte_lcore_cpuset(id);
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&c->main_thread, NULL, main_lcore_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0)
		return error;
	c->main_thread_runs = true;
	pthread_setaffinity_np(c->main_thread, sizeof(cpus), &cpus);
	pthread_setname_np(c->main_thread, "uroce-lcore");
	return 0;
}

int uroce_start(struct uroce_engine *u)
{
	struct engine *e = engine_of(u);
	const struct uroce_options *o = &e->control->options;
	int error = 0;

	if (e->control->launched)
		return EALREADY;
	__atomic_store_n(&e->stopping, 0, __ATOMIC_RELEASE);
	e->control->launched = true;
	for (uint32_t i = 0; i < e->lcores && error == 0; i++) {
		unsigned int id = o->lcore_ids[i];

		if (id == rte_get_main_lcore())
			error = launch_main(e, &e->lcore[i], id);
		else
			error = -rte_eal_remote_launch(lcore_loop, &e->lcore[i], id);
	}
	if (error != 0)
		uroce_stop(u);
	return error;
}

/* Nobody polls from here on. The control path executes the lcores' messages itself (lcore.c). */
void uroce_stop(struct uroce_engine *u)
{
	struct engine *e = engine_of(u);
	struct control *c = e->control;

	if (!c->launched)
		return;
	__atomic_store_n(&e->stopping, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < e->lcores; i++) {
		lcore_wake(&e->lcore[i]);
		if (c->options.lcore_ids[i] != rte_get_main_lcore())
			rte_eal_wait_lcore(c->options.lcore_ids[i]);
	}
	if (c->main_thread_runs)
		pthread_join(c->main_thread, NULL);
	c->main_thread_runs = false;
	c->launched = false;
	/* The control thread still runs, and clients may still leave. */
	pthread_mutex_lock(&e->control_lock);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL)
			__atomic_store_n(&e->client[i]->page->closed, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&e->control_lock);
}

uint32_t uroce_poll(struct uroce_engine *u, uint32_t lcore)
{
	struct lcore *l = &engine_of(u)->lcore[lcore];
	uint32_t work;

	if (!lcore_sit(l))
		return 0;
	work = lcore_poll(l);
	lcore_rise(l);
	return work;
}

int uroce_register(struct uroce_engine *u)
{
	return carrier_direct_register(engine_of(u));
}

void uroce_set_adaptive(struct uroce_engine *u, bool adaptive)
{
	struct engine *e = engine_of(u);

	/* An lcore that sleeps looks at it when it wakes. */
	__atomic_store_n(&e->adaptive, adaptive, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_wake(&e->lcore[i]);
}

bool uroce_idle_expired(const struct uroce_engine *u)
{
	return __atomic_load_n(&engine_of(u)->control->idle_expired, __ATOMIC_ACQUIRE) != 0;
}

void uroce_describe(const struct uroce_engine *u, char *text, size_t size)
{
	struct engine *e = engine_of(u);
	char address[64];
	size_t n;

	pthread_mutex_lock(&e->control_lock);
	n = (size_t)snprintf(text, size, "%s", e->name);
	/* The link-local address is of little use to people. */
	for (uint32_t i = 1, shown = 0; i < LIMIT_GIDS && n < size; i++)
		if (!gid_is_zero(&e->gid[i].gid))
			n += (size_t)snprintf(text + n, size - n, "%s%s", shown++ == 0 ? " " : ",",
					      gid_text(&e->gid[i].gid, address, sizeof(address)));
	if (n < size)
		snprintf(text + n, size - n, ", %s%s, IB MTU %u",
			 e->port != NULL ? "port " : "this host only",
			 e->port != NULL ? e->port->name : "", 128u << e->active_mtu);
	pthread_mutex_unlock(&e->control_lock);
}
