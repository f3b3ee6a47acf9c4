/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int make_channel(int fd, uint32_t *channel)
{
	struct request_empty q;
	struct reply_handle r;
	struct carrier_descriptors out = { 0 };

	cr_assert_eq(
		ask(fd, COMMAND_CM_CREATE_CHANNEL, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out),
		0);
	cr_assert_eq(out.count, 1, "the channel's descriptor");
	*channel = r.handle;
	return out.fd[0];
}

void party_begin(struct party *p)
{
	p->fd = attach();
	p->events = make_channel(p->fd, &p->channel);
}

void party_channel(struct party *p, struct party *other)
{
	other->fd = p->fd;
	other->events = make_channel(p->fd, &other->channel);
}

void party_end(struct party *p)
{
	close(p->events);
	close(p->fd);
}

void parties_begin(struct party *server, struct party *client)
{
	control_rig_open();
	party_begin(server);
	party_begin(client);
}

void parties_end(struct party *server, struct party *client)
{
	party_end(server);
	party_end(client);
	control_rig_close();
}

int cm_create(struct party *p, uint32_t space, uint32_t *id)
{
	struct request_cm_create_id q = { .channel = p->channel,
					  .port_space = space,
					  .qp_type = QP_TYPE_RC };
	struct reply_handle r;
	int error = ask(p->fd, COMMAND_CM_CREATE_ID, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*id = error == 0 ? r.handle : 0;
	return error;
}

int cm_handle(struct party *p, enum command what, uint32_t handle)
{
	struct request_handle q = { .handle = handle };
	struct reply_empty r;
	int error = ask(p->fd, what, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		cr_expect_str_empty(r.h.why, "nothing is wrong, but the reply says: %s", r.h.why);
	return error;
}

int cm_destroy(struct party *p, uint32_t id, uint32_t *events)
{
	struct request_handle q = { .handle = id };
	struct reply_destroy r;
	int error = ask(p->fd, COMMAND_CM_DESTROY_ID, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0 && events != NULL)
		*events = r.events;
	return error;
}

struct cm_address address_of(const char *text, uint16_t port)
{
	struct cm_address a = { .port = port };

	if (text == NULL)
		return a;
	if (inet_pton(AF_INET, text, a.ip.octet + 12) == 1) {
		a.ip.octet[10] = a.ip.octet[11] = 0xff;
		a.family = 4;
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, a.ip.octet), 1, "%s", text);
		a.family = 6;
	}
	return a;
}

const char *own_address(void)
{
	static char text[64];
	struct request_empty q;
	struct reply_device d;
	int fd = attach();

	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &d.h, sizeof(d), NULL, NULL), 0);
	close(fd);
	for (uint32_t i = 1; i < LIMIT_GIDS; i++)
		if (gid_is_ipv4(&d.gid[i]))
			return inet_ntop(AF_INET, d.gid[i].octet + 12, text, sizeof(text));
	cr_assert_fail("the engine has no IPv4 address");
	return NULL;
}

int cm_bind(struct party *p, uint32_t id, const char *address, uint16_t port)
{
	struct request_cm_bind q = { .id = id, .address = address_of(address, port) };
	struct reply_cm_query r;

	return ask(p->fd, COMMAND_CM_BIND, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_listen(struct party *p, uint32_t id, int backlog)
{
	struct request_cm_listen q = { .id = id, .backlog = backlog };
	struct reply_empty r;

	return ask(p->fd, COMMAND_CM_LISTEN, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_resolve(struct party *p, uint32_t id, const char *address, uint16_t port, uint32_t timeout)
{
	struct request_cm_resolve q = { .id = id,
					.timeout = timeout,
					.destination = address_of(address, port) };
	struct reply_cm_query r;

	return ask(p->fd, COMMAND_CM_RESOLVE_ADDR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_route(struct party *p, uint32_t id)
{
	struct request_cm_timeout q = { .id = id, .timeout = ENOUGH_MS };
	struct reply_empty r;

	return ask(p->fd, COMMAND_CM_RESOLVE_ROUTE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_option(struct party *p, uint32_t id, uint32_t name, const void *value, uint32_t length)
{
	struct request_cm_option q = { .id = id, .name = name, .length = length };
	struct reply_empty r;

	memcpy(q.value, value, length);
	return ask(p->fd, COMMAND_CM_SET_OPTION, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_migrate(struct party *p, uint32_t id, uint32_t channel)
{
	struct request_cm_migrate q = { .id = id, .channel = channel };
	struct reply_destroy r;

	return ask(p->fd, COMMAND_CM_MIGRATE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_query(struct party *p, uint32_t id, struct reply_cm_query *r)
{
	struct request_handle q = { .handle = id };

	return ask(p->fd, COMMAND_CM_QUERY, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

int cm_connect_as(struct party *p, enum command what, uint32_t id, uint32_t qpn,
		  const char *private_data)
{
	struct request_cm_connect q = { .id = id,
					.parameters = { .qpn = qpn,
							.responder_resources = 4,
							.initiator_depth = 3,
							.retry_count = 5,
							.rnr_retry_count = 6 } };
	struct reply_empty r;

	if (private_data != NULL) {
		q.parameters.private_length = (uint8_t)(strlen(private_data) + 1);
		memcpy(q.parameters.private_data, private_data, q.parameters.private_length);
	}
	return ask(p->fd, what, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_reject_with(struct party *p, uint32_t id, const char *private_data)
{
	struct request_cm_reject q = { .id = id, .reason = 28 };
	struct reply_empty r;

	q.private_length = (uint32_t)strlen(private_data) + 1;
	memcpy(q.private_data, private_data, q.private_length);
	return ask(p->fd, COMMAND_CM_REJECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

int cm_attributes_of(struct party *p, uint32_t id, uint32_t state, struct reply_cm_qp_attr *r)
{
	struct request_cm_init_qp_attr q = { .id = id, .state = state };

	return ask(p->fd, COMMAND_CM_INIT_QP_ATTR, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

uint32_t listener_at(struct party *p, uint32_t space, uint16_t port, int backlog)
{
	uint32_t id;

	cr_assert_eq(cm_create(p, space, &id), 0);
	cr_assert_eq(cm_bind(p, id, "0.0.0.0", port), 0);
	cr_assert_eq(cm_listen(p, id, backlog), 0);
	return id;
}

uint32_t id_towards(struct party *p, uint32_t space, uint16_t port)
{
	uint32_t id;

	cr_assert_eq(cm_create(p, space, &id), 0);
	cr_assert_eq(cm_resolve(p, id, "127.0.0.1", port, 100), 0);
	expect_event(p, ADDR_RESOLVED, 0, NULL);
	cr_assert_eq(cm_route(p, id), 0);
	expect_event(p, ROUTE_RESOLVED, 0, NULL);
	return id;
}

int cm_get(struct party *p, struct reply_cm_event *e)
{
	struct request_handle q = { .handle = p->channel };

	return ask(p->fd, COMMAND_CM_GET_EVENT, &q.h, sizeof(q), &e->h, sizeof(*e), NULL, NULL);
}

void expect_event(struct party *p, uint32_t wanted, int status, struct reply_cm_event *e)
{
	struct pollfd ready = { .fd = p->events, .events = POLLIN };
	struct reply_cm_event own;
	uint8_t octet;

	if (e == NULL)
		e = &own;
	for (;;) {
		int error;

		cr_assert_eq(poll(&ready, 1, ENOUGH_MS), 1, "event %u did not come", wanted);
		cr_assert_eq(read(p->events, &octet, 1), 1, "the engine is gone");
		error = cm_get(p, e);
		if (error == 0)
			break;
		cr_assert_eq(error, EAGAIN, "CM_GET_EVENT: %s", strerror(error));
	}
	cr_assert_eq(e->event, wanted, "event %u instead of %u", e->event, wanted);
	cr_assert_eq(e->status, status, "event %u: status %d", e->event, e->status);
}

void expect_no_event(struct party *p)
{
	struct reply_cm_event e;

	cr_assert_eq(cm_get(p, &e), EAGAIN, "event %u", e.event);
}
