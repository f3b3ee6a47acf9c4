/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "control/cm/cm_control.h"
#include "drivers/client_memory/peer.h"
#include "drivers/port.h"
#include "engine/port.h"
#include "lcore/inside.h"

#define FRAMES 64u

struct engine *rig;
struct client *rig_client;
uint32_t rig_made[OBJECT_KINDS][RIG_OBJECTS];
uint32_t rig_mades[OBJECT_KINDS];
void (*rig_sent)(const uint8_t *frame, uint32_t length);
const struct mac rig_mac = { { 2, 0, 0, 0, 0, 1 } }, rig_host_mac = { { 2, 0, 0, 0, 0, 2 } };

static struct rte_mbuf *waiting[FRAMES];
static uint32_t first, frames;
static pid_t body; /* the process whose memory the client has */
static struct call call;

/* ---- the port ---- */

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **to, uint16_t n)
{
	uint16_t i = 0;

	for (; i < n && frames > 0; frames--)
		to[i++] = waiting[first++ % FRAMES];
	return i;
}

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **from, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		demand(rte_pktmbuf_is_contiguous(from[i]));
		if (rig_sent != NULL)
			rig_sent(rte_pktmbuf_mtod(from[i], const uint8_t *), from[i]->data_len);
		rte_pktmbuf_free(from[i]);
	}
	return n;
}

static int bell_fd(struct port *p, uint16_t queue)
{
	return -1;
}

static bool refresh(struct port *p)
{
	return false;
}

static void nothing(struct port *p)
{
}

static const struct port_ops ops = { .rx_burst = rx_burst,
				     .tx_burst = tx_burst,
				     .bell_fd = bell_fd,
				     .refresh = refresh,
				     .close = nothing };
static struct port port = { .ops = &ops,
			    .name = "fuzz",
			    .mac = { { 2, 0, 0, 0, 0, 1 } },
			    .mtu = 1500,
			    .queues = 1,
			    .socket = -1,
			    .link_up = true,
			    .nap = TIME_MS };

void rig_frame(const uint8_t *octets, size_t length)
{
	struct rte_mbuf *m = frames < FRAMES ? rte_pktmbuf_alloc(rig->pool) : NULL;
	char *to = m != NULL ? rte_pktmbuf_append(m, (uint16_t)length) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(to, octets, length);
	waiting[(first + frames++) % FRAMES] = m;
}

void rig_poll(void)
{
	uroce_poll((struct uroce_engine *)rig, 0);
}

struct gid rig_address(uint8_t host)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [15] = host } };
}

/* ---- the engine ---- */

static void start_eal(void)
{
	char prefix[64];
	char *argv[] = { (char *)"fuzz",
			 (char *)"--no-huge",
			 (char *)"--no-shconf",
			 (char *)"-m64",
			 (char *)"--no-pci",
			 (char *)"--lcores=0@(0-1)",
			 (char *)"--no-telemetry",
			 (char *)"--log-level=*:critical",
			 prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=uroce-fuzz-%d", getpid());
	demand(rte_eal_init(ARRAY_SIZE(argv), argv) >= 0);
	rmdir(rte_eal_get_runtime_dir()); /* nobody comes back to do it */
}

static void make_engine(void)
{
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = 1,
				   .lcore_ids = { rte_get_main_lcore() },
				   .socket_gid = -1,
				   .port = port_for_program(&port),
				   .addresses = 1,
				   .pool_size = 1023 };
	const struct gid own = rig_address(1);
	char why[256];

	memcpy(o.address[0].octet, own.octet, 16);
	o.address[0].prefix = 24;
	rig = (struct engine *)uroce_create(&o, why, sizeof(why));
	demand(rig != NULL || (fprintf(stderr, "%s\n", why), false));
}

/* ---- the client ---- */

static void make_body(void)
{
	void *at = mmap((void *)(uintptr_t)RIG_MEMORY, RIG_MEMORY_OCTETS, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	demand(at == (void *)(uintptr_t)RIG_MEMORY);
	body = fork();
	demand(body >= 0);
	while (body == 0) { /* it sleeps for ever: whatever is written over its code is never run */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		pause();
	}
	munmap(at, RIG_MEMORY_OCTETS);
}

/* As HELLO does it (control/connection/client.c). */
static void make_client(void)
{
	struct arena *arena = arena_create_shared("fuzz");
	char path[64];
	int error, fd;

	demand(arena != NULL);
	rig_client = client_create(rig, arena, geteuid(), false, &error);
	demand(rig_client != NULL);
	rig_client->memory = calloc(1, sizeof(*rig_client->memory));
	snprintf(path, sizeof(path), "/proc/%d/mem", body);
	fd = open(path, O_RDWR | O_CLOEXEC);
	demand(fd >= 0 && peer_memory_open(rig_client->memory, fd, 0, geteuid()) == 0);
	rig_client->objects->pid = body;
	client_start(rig_client);
}

/* The host's MAC address is asked for, and answered. */
static void meet_host(void)
{
	struct request_path q = {
		.path = { .dgid = rig_address(2), .port_num = 1, .is_global = 1, .sgid_index = 1 }
	};
	const struct gid us = rig_address(1), host = rig_address(2);
	uint8_t f[60] = { 0 };

	rig_command(COMMAND_RESOLVE_PATH, &q, sizeof(q), NULL, NULL);
	memcpy(f, rig_mac.octet, 6);
	memcpy(f + 6, rig_host_mac.octet, 6);
	memcpy(f + 12, "\x08\x06\0\1\x08\0\6\4\0\2", 10);
	memcpy(f + 22, rig_host_mac.octet, 6);
	memcpy(f + 28, host.octet + 12, 4);
	memcpy(f + 32, rig_mac.octet, 6);
	memcpy(f + 38, us.octet + 12, 4);
	rig_frame(f, sizeof(f));
	rig_poll();
	neighbour_agent_frames(rig, clock_now());
}

void rig_open(void)
{
	if (rig != NULL)
		return;
	signal(SIGPIPE, SIG_IGN);
	make_body();
	start_eal();
	make_engine();
	pthread_mutex_lock(&rig->control_lock);
	make_client();
	meet_host();
	pthread_mutex_unlock(&rig->control_lock);
}

/* ---- commands ---- */

int rig_command(enum command what, void *request, size_t length, struct carrier_descriptors *in,
		const struct command_reply **r)
{
	struct command_request *h = request;

	*h = (struct command_request){ .magic = COMMAND_MAGIC,
				       .version = COMMAND_VERSION,
				       .command = (uint16_t)what,
				       .length = (uint32_t)length };
	memset(&call, 0, offsetof(struct call, reply));
	call.engine = rig;
	call.client = rig_client;
	call.request = request;
	call.length = length;
	if (in != NULL)
		call.in = *in;
	command_execute(&call);
	if (call.finish != NULL)
		call_wait(&call);
	demand(call.reply.length == call.reply_length);
	demand(call.reply.error >= 0);
	demand(call.reply.error == 0 || call.reply_length == sizeof(call.reply));
	demand(memchr(call.reply.why, '\0', sizeof(call.reply.why)) != NULL);
	call_close_descriptors(&call);
	if (r != NULL)
		*r = &call.reply;
	return call.reply.error;
}

int rig_handle(enum command what, uint32_t handle)
{
	struct request_handle q = { .handle = handle };

	return rig_command(what, &q, sizeof(q), NULL, NULL);
}

/* The host does not answer, so that its entry grows old, whatever the input does. */
static bool knows_host(void)
{
	const struct gid own = rig_address(1), host = rig_address(2);
	struct mac mac;

	return flow_resolve(rig, &own, &host, &mac) == FLOW_PORT;
}

void rig_begin(void)
{
	pthread_mutex_lock(&rig->control_lock);
	if (!knows_host())
		meet_host();
	demand(knows_host());
	memset(rig_mades, 0, sizeof(rig_mades));
}

/* The objects of an input are freed with its contexts, ids and channels. */
static void end_all(enum object_kind kind, enum command what)
{
	const struct handle_table *t = &rig_client->objects->table[kind];

	for (uint32_t handle = 1; handle <= t->used && t->count > 0; handle++)
		if (t->slot[handle] != NULL)
			rig_handle(what, handle);
	demand(t->count == 0);
}

void rig_end(void)
{
	end_all(OBJECT_CM_ID, COMMAND_CM_DESTROY_ID);
	end_all(OBJECT_CM_CHANNEL, COMMAND_CM_DESTROY_CHANNEL);
	end_all(OBJECT_CONTEXT, COMMAND_CLOSE_CONTEXT);
	for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++)
		demand(rig_client->objects->table[kind].count == 0);
	rig_poll();
	pthread_mutex_unlock(&rig->control_lock);
}
