/* SPDX-License-Identifier: BSD-3-Clause */
#include "far_peer.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/engine_objects.h"

#define RECEIVED (BUFFER / 2) /* where in the buffer */

struct order {
	enum {
		CONNECT,
		LOOK,
		RECEIVE
	} what;
	union ibv_gid gid;
	uint32_t qpn;
	uint8_t value;
};

static pid_t peer;
static int orders[2], answers[2];

/* ---- in the other process ---- */

static struct endpoint far;

static void answer(const void *octets, size_t size)
{
	if (write(answers[1], octets, size) != (ssize_t)size)
		_exit(3);
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)far.buffer + RECEIVED, FAR_MESSAGE, far.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(far.qp[0], &wr, &bad) != 0)
		_exit(4);
}

static struct far_news look(void)
{
	struct ibv_qp_init_attr init;
	struct reply_statistics s;
	struct far_news n = { 0 };
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	while (ibv_poll_cq(far.cq, 1, &wc) > 0) {
		n.completions++;
		n.failed += wc.status != IBV_WC_SUCCESS;
	}
	if (ibv_query_qp(far.qp[0], &attr, IBV_QP_STATE, &init) != 0)
		_exit(5);
	n.state = attr.qp_state;
	for (uint32_t i = 0; i < BUFFER; i++)
		n.changed += far.buffer[i] != FAR_KEPT;
	engine_statistics(&s);
	n.address_mismatch = s.by_reason[REASON_ADDRESS_MISMATCH];
	n.sender_foreign = s.by_reason[REASON_SENDER_FOREIGN];
	n.peer_taken = s.by_reason[REASON_PEER_TAKEN];
	return n;
}

/* True: the message is as it should be. */
static bool receive(uint8_t value)
{
	const uint8_t *at = far.buffer + RECEIVED;
	bool good = true;
	struct ibv_wc wc;

	poll_completions(far.cq, &wc, 1, "a message across the port");
	good = wc.status == IBV_WC_SUCCESS && wc.byte_len == FAR_MESSAGE;
	for (uint32_t i = 0; i < FAR_MESSAGE; i++)
		good &= at[i] == value;
	memset(far.buffer, FAR_KEPT, BUFFER);
	post_receive();
	return good;
}

static void obey(const struct order *o)
{
	struct far_news n;
	bool good;

	switch (o->what) {
	case CONNECT:
		good = endpoint_connect_far(far.qp[0], &o->gid, o->qpn) == 0;
		post_receive();
		answer(&good, sizeof(good));
		break;
	case LOOK:
		n = look();
		answer(&n, sizeof(n));
		break;
	case RECEIVE:
		good = receive(o->value);
		answer(&good, sizeof(good));
		break;
	}
}

static _Noreturn void be_peer(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct far_peer p;
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(orders[1]);
	close(answers[0]);
	setenv("UROCE_SOCKET", getenv("UROCE_PEER_SOCKET"), 1);
	endpoint_open(&far);
	memset(far.buffer, FAR_KEPT, BUFFER);
	if (ibv_modify_qp(far.qp[0], &reset, IBV_QP_STATE) != 0)
		_exit(2);
	p = (struct far_peer){ far.gid, far.qp[0]->qp_num, (uintptr_t)far.buffer, far.mr->rkey };
	answer(&p, sizeof(p));
	while (read(orders[0], &o, sizeof(o)) == sizeof(o))
		obey(&o);
	endpoint_close(&far);
	_exit(0);
}

/* ---- in the test ---- */

static void hear(void *octets, size_t size)
{
	cr_assert_eq(read(answers[0], octets, size), (ssize_t)size, "the peer ended");
}

static void tell(const struct order *o)
{
	cr_assert_eq(write(orders[1], o, sizeof(*o)), (ssize_t)sizeof(*o));
}

void far_peer_begin(struct far_peer *p)
{
	cr_assert_not_null(getenv("UROCE_PEER_SOCKET"), "started without with_peer.sh");
	cr_assert_eq(pipe(orders), 0, "%m");
	cr_assert_eq(pipe(answers), 0, "%m");
	peer = fork();
	cr_assert_geq(peer, 0, "%m");
	if (peer == 0)
		be_peer();
	close(orders[0]);
	close(answers[1]);
	hear(p, sizeof(*p));
}

void far_peer_end(void)
{
	int status;

	close(orders[1]);
	cr_assert_eq(waitpid(peer, &status, 0), peer);
	cr_assert_eq(status, 0, "the peer ended with 0x%x", (unsigned int)status);
	close(answers[0]);
}

void far_peer_connect(const union ibv_gid *gid, uint32_t qpn)
{
	const struct order o = { .what = CONNECT, .gid = *gid, .qpn = qpn };
	bool good;

	tell(&o);
	hear(&good, sizeof(good));
	cr_assert(good, "the peer does not go to RTS");
}

struct far_news far_peer_look(void)
{
	const struct order o = { .what = LOOK };
	struct far_news n;

	tell(&o);
	hear(&n, sizeof(n));
	return n;
}

void far_peer_receives(uint8_t value)
{
	const struct order o = { .what = RECEIVE, .value = value };
	bool good;

	tell(&o);
	hear(&good, sizeof(good));
	cr_assert(good, "the peer did not receive what was sent");
}
