/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains, targets and their SRQs, in one process and in two. Runs with an engine at
 * $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "rig/engine_objects.h"

#define SLOT 4096u

static struct endpoint e;
static char path[] = "/tmp/uroce-xrcd-XXXXXX";
static int file;

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(context, &init);
}

static struct ibv_srq *create_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e.pd,
		.xrcd = xrcd,
		.cq = e.cq,
	};

	errno = 0;
	return ibv_create_srq_ex(e.context, &init);
}

static struct ibv_qp *create_target(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = xrcd };

	errno = 0;
	return ibv_create_qp_ex(context, &init);
}

static struct ibv_qp *open_target(struct ibv_xrcd *xrcd, uint32_t qpn, enum ibv_qp_type type)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_context = &e,
		.qp_type = type,
	};

	errno = 0;
	return ibv_open_qp(xrcd->context, &attr);
}

static struct ibv_qp *create_initiator(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.cap = { DEPTH, 0, 4, 0, 64 },
		.qp_type = IBV_QPT_XRC_SEND,
	};

	errno = 0;
	return ibv_create_qp(e.pd, &init);
}

static void setup(void)
{
	file = mkstemp(path);
	cr_assert_geq(file, 0);
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
	close(file);
	unlink(path);
}

TestSuite(xrc, .init = setup, .fini = teardown, .timeout = 60);

static void post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + wr_id * SLOT, SLOT, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static int send_to(struct ibv_qp *qp, uint32_t srqn, uint8_t octet)
{
	uint8_t *text = e.buffer + BUFFER - SLOT;
	struct ibv_sge sge = { (uintptr_t)text, SLOT, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1000,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .qp_type = { .xrc = { .remote_srqn = srqn } } };
	struct ibv_send_wr *bad;

	memset(text, octet, SLOT);
	return ibv_post_send(qp, &wr, &bad);
}

/* A message arrives: checks both completions and its octets. */
static void message(struct ibv_qp *initiator, uint32_t target, uint32_t srqn, uint64_t wr_id,
		    uint8_t octet)
{
	const struct ibv_wc *received;
	struct ibv_wc wc[2];

	cr_assert_eq(send_to(initiator, srqn, octet), 0);
	poll_completions(e.cq, wc, 2, "a message through the target");
	cr_expect_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_expect_eq(wc[1].status, IBV_WC_SUCCESS);
	received = wc[0].opcode & IBV_WC_RECV ? &wc[0] : &wc[1];
	cr_expect_eq(received->opcode, IBV_WC_RECV);
	cr_expect_eq(received->wr_id, wr_id);
	cr_expect_eq(received->qp_num, target);
	cr_expect_eq(received->byte_len, SLOT);
	cr_expect_eq(e.buffer[wr_id * SLOT], octet);
	cr_expect_eq(e.buffer[(wr_id + 1) * SLOT - 1], octet);
}

static uint32_t number_of(struct ibv_srq *srq)
{
	uint32_t number = 0;

	cr_expect_eq(ibv_get_srq_num(srq, &number), 0);
	cr_expect_neq(number, 0);
	cr_expect_eq(number >> 24, 0);
	return number;
}

/* protocol-map 170, 171 */
Test(xrc, one_target_fills_the_srq_that_a_message_names)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_qp *target = create_target(e.context, xrcd);
	struct ibv_qp *initiator = create_initiator();
	struct ibv_srq *srq[2];

	cr_assert(xrcd != NULL && target != NULL && initiator != NULL, "%m");
	cr_assert_eq(endpoint_connect(&e, initiator, target->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, target, initiator->qp_num), 0);
	for (uint64_t i = 0; i < 2; i++) {
		srq[i] = create_srq(xrcd);
		cr_assert_not_null(srq[i], "%m");
		post(srq[i], 2 * i);
		post(srq[i], 2 * i + 1);
	}
	message(initiator, target->qp_num, number_of(srq[1]), 2, 0x11);
	message(initiator, target->qp_num, number_of(srq[0]), 0, 0x22);
	message(initiator, target->qp_num, number_of(srq[1]), 3, 0x33);
	cr_expect_eq(ibv_close_xrcd(xrcd), EBUSY);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), EBUSY, "SRQs are in it");
	cr_expect_eq(ibv_destroy_srq(srq[0]), 0);
	cr_expect_eq(ibv_destroy_srq(srq[1]), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
}

/* hostile H-41 */
static void refused(const char *what, uint32_t srqn, struct ibv_xrcd *xrcd)
{
	struct ibv_qp *target = create_target(e.context, xrcd);
	struct ibv_qp *initiator = create_initiator();
	struct ibv_async_event event;
	struct ibv_wc wc;

	cr_assert_eq(endpoint_connect(&e, initiator, target->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, target, initiator->qp_num), 0);
	cr_assert_eq(send_to(initiator, srqn, 0x44), 0);
	poll_completions(e.cq, &wc, 1, what);
	cr_expect_eq(wc.status, IBV_WC_REM_INV_REQ_ERR, "%s: %s", what,
		     ibv_wc_status_str(wc.status));
	while (poll(&(struct pollfd){ e.context->async_fd, POLLIN, 0 }, 1, 100) == 1 &&
	       ibv_get_async_event(e.context, &event) == 0)
		ibv_ack_async_event(&event);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
}

/* hostile H-41: the number of an SRQ outside the domain. */
Test(xrc, a_message_for_an_srq_outside_the_domain_is_refused)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_xrcd *other = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *plain = ibv_create_srq(e.pd, &init);
	struct ibv_srq *srq = create_srq(other);
	uint32_t number = number_of(srq);
	struct ibv_wc wc;

	post(srq, 0);
	post(plain, 1);
	refused("a number that nobody has", 0xabcdef, xrcd);
	refused("zero", 0, xrcd);
	refused("an SRQ of another domain", number, xrcd);
	/* An ordinary SRQ was made just before; its number is one less if nothing else was made. */
	refused("the number before", number - 1, xrcd);
	refused("an ordinary SRQ", (number - 1) & 0xffff, xrcd);
	refused("an SRQ of the past", (number & 0xffff) | 0xff0000, xrcd);
	cr_expect_eq(ibv_poll_cq(e.cq, 1, &wc), 0, "the SRQs are untouched");
	cr_expect_eq(ibv_destroy_srq(plain), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_close_xrcd(other), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

Test(xrc, numbers_beyond_24_bits_and_opcodes_of_others_are_refused_at_once)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_qp *initiator = create_initiator();
	struct ibv_qp *target = create_target(e.context, xrcd);
	struct ibv_send_wr wr = { .opcode = IBV_WR_TSO }, *bad;
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad_recv;

	cr_assert_eq(endpoint_connect(&e, initiator, target->qp_num), 0);
	cr_expect_eq(send_to(initiator, 1u << 24, 0), EINVAL);
	cr_expect_eq(ibv_post_send(initiator, &wr, &bad), EINVAL);
	cr_expect_neq(ibv_post_recv(initiator, &recv, &bad_recv), 0, "it receives nothing");
	cr_assert_eq(endpoint_connect(&e, target, initiator->qp_num), 0);
	cr_expect_neq(ibv_post_recv(target, &recv, &bad_recv), 0, "nor does it, by itself");
	wr.opcode = IBV_WR_SEND;
	cr_expect_neq(ibv_post_send(target, &wr, &bad), 0, "it sends nothing");
	cr_expect_eq(ibv_destroy_qp(target), 0);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

static enum ibv_wc_status write_through(struct ibv_qp *initiator, uint32_t srqn, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 64, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)e.buffer + 2 * SLOT, rkey },
				  .qp_type = { .xrc = { .remote_srqn = srqn } } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	cr_assert_eq(ibv_post_send(initiator, &wr, &bad), 0);
	poll_completions(e.cq, &wc, 1, "a WRITE through the target");
	return wc.status;
}

static enum ibv_wc_status bind(struct ibv_qp *initiator, struct ibv_mw *mw,
			       struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED,
				  .bind_mw = { mw, ibv_inc_rkey(mw->rkey), info } };
	struct ibv_mw_bind first = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	cr_assert_eq(mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(initiator, mw, &first)
					       : ibv_post_send(initiator, &wr, &bad),
		     0);
	poll_completions(e.cq, &wc, 1, "a bind");
	return wc.status;
}

/* protocol-map 156, 170; hostile H-36 */
Test(xrc, a_target_reaches_windows_of_type_1_only)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_qp *target = create_target(e.context, xrcd);
	struct ibv_qp *initiator = create_initiator();
	struct ibv_srq *srq = create_srq(xrcd);
	struct ibv_mr *mr =
		ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = { mr, (uintptr_t)e.buffer + 2 * SLOT, SLOT,
					 IBV_ACCESS_REMOTE_WRITE };
	struct ibv_mw *mw[2] = { ibv_alloc_mw(e.pd, IBV_MW_TYPE_1),
				 ibv_alloc_mw(e.pd, IBV_MW_TYPE_2) };

	cr_assert(target && initiator && srq && mr && mw[0] && mw[1], "%m");
	cr_assert_eq(endpoint_connect(&e, initiator, target->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, target, initiator->qp_num), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(bind(initiator, mw[i], info), IBV_WC_SUCCESS, "type %d", i + 1);
	memset(e.buffer, 0x5c, 64);
	cr_expect_eq(write_through(initiator, number_of(srq), mw[0]->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[2 * SLOT + 63], 0x5c);
	memset(e.buffer, 0x5d, 64);
	cr_expect_eq(write_through(initiator, number_of(srq), mw[1]->rkey), IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(e.buffer[2 * SLOT + 63], 0x5c);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_dealloc_mw(mw[i]), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

/* ---- wrong arguments ---- */

Test(xrc, wrong_domains_are_refused)
{
	const uint32_t all = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct ibv_xrcd *shared = open_xrcd(e.context, file, O_CREAT);
	char other[] = "/tmp/uroce-xrcd-XXXXXX";
	int unused = mkstemp(other);
	const struct {
		const char *what;
		struct ibv_xrcd_init_attr init;
		int error;
	} cases[] = {
		{ "no descriptor named", { IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT }, EINVAL },
		{ "no flags named", { IBV_XRCD_INIT_ATTR_FD, -1, O_CREAT }, EINVAL },
		{ "an unknown attribute", { all | 1u << 9, -1, O_CREAT }, EOPNOTSUPP },
		{ "an unknown flag", { all, -1, O_CREAT | O_APPEND }, EINVAL },
		{ "no such descriptor", { all, 987654, O_CREAT }, EBADF },
		{ "a negative one", { all, -7, O_CREAT }, EBADF },
		{ "none, and not to be made", { all, -1, 0 }, EAGAIN },
		{ "a file without one", { all, unused, 0 }, EAGAIN },
		{ "exclusively, a file that has one", { all, file, O_CREAT | O_EXCL }, EINVAL },
	};

	cr_assert_not_null(shared, "%m");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_xrcd_init_attr init = cases[i].init;
		uint64_t objects = engine_objects();

		errno = 0;
		cr_expect_null(ibv_open_xrcd(e.context, &init), "%s", cases[i].what);
		cr_expect_eq(errno, cases[i].error, "%s: %m", cases[i].what);
		cr_expect_eq(engine_objects(), objects, "%s", cases[i].what);
	}
	cr_expect_eq(ibv_close_xrcd(shared), 0);
	cr_expect_null(open_xrcd(e.context, file, 0), "the last one closed it");
	cr_expect_eq(errno, EAGAIN);
	shared = open_xrcd(e.context, file, O_CREAT | O_EXCL);
	cr_assert_not_null(shared);
	cr_expect_eq(ibv_close_xrcd(shared), 0);
	close(unused);
	unlink(other);
}

Test(xrc, wrong_srqs_and_queue_pairs_are_refused)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_xrcd *other = open_xrcd(e.context, -1, O_CREAT);
	struct ibv_qp *target = create_target(e.context, xrcd);
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e.pd,
		.cq = e.cq,
	};
	struct ibv_qp_init_attr plain = { .qp_type = IBV_QPT_XRC_RECV,
					  .send_cq = e.cq,
					  .recv_cq = e.cq };
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_open_attr open = { .qp_num = target->qp_num,
					 .xrcd = xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	uint64_t objects = engine_objects();

#define EXPECT_NONE(call, error)                                \
	do {                                                    \
		errno = 0;                                      \
		cr_expect_null(call);                           \
		cr_expect_eq(errno, error, "%s: %m", #call);    \
		cr_expect_eq(engine_objects(), objects, #call); \
	} while (0)
	EXPECT_NONE(ibv_create_srq_ex(e.context, &srq), EINVAL); /* no domain */
	srq.xrcd = xrcd;
	srq.cq = NULL;
	EXPECT_NONE(ibv_create_srq_ex(e.context, &srq), EINVAL);
	srq.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	EXPECT_NONE(ibv_create_srq_ex(e.context, &srq), EINVAL);
	EXPECT_NONE(ibv_create_qp(e.pd, &plain), EINVAL);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = e.pd;
	ex.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	EXPECT_NONE(ibv_create_qp_ex(e.context, &ex), EINVAL); /* no domain */
	EXPECT_NONE(ibv_open_qp(e.context, &open), EINVAL); /* nothing named */
	EXPECT_NONE(open_target(xrcd, e.qp[0]->qp_num, IBV_QPT_XRC_RECV), EINVAL);
	EXPECT_NONE(open_target(xrcd, 0, IBV_QPT_XRC_RECV), EINVAL);
	EXPECT_NONE(open_target(xrcd, target->qp_num, IBV_QPT_RC), EINVAL);
	EXPECT_NONE(open_target(other, target->qp_num, IBV_QPT_XRC_RECV), EINVAL);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	objects--;
	EXPECT_NONE(open_target(xrcd, open.qp_num, IBV_QPT_XRC_RECV), EINVAL);
#undef EXPECT_NONE
	cr_expect_eq(ibv_close_xrcd(other), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

/* ---- two processes ---- */

/* The other process: makes a target in the file's domain, tells its number, and lives on. */
static void other_process(int out)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);
	struct ibv_xrcd *xrcd = context != NULL ? open_xrcd(context, file, O_CREAT) : NULL;
	struct ibv_qp *target = xrcd != NULL ? create_target(context, xrcd) : NULL;
	uint32_t qpn = target != NULL ? target->qp_num : 0;

	if (write(out, &qpn, sizeof(qpn)) != sizeof(qpn))
		_exit(1);
	pause();
	_exit(0);
}

static pid_t start_other(uint32_t *qpn)
{
	struct pollfd p = { .events = POLLIN };
	int pipes[2];
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		other_process(pipes[1]);
	}
	p.fd = pipes[0];
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "the other process says nothing");
	cr_assert_eq(read(pipes[0], qpn, sizeof(*qpn)), (ssize_t)sizeof(*qpn));
	cr_assert_neq(*qpn, 0, "the other process cannot make a target");
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

static void end_other(pid_t pid)
{
	uint32_t clients;
	struct reply_statistics s;
	int status;

	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	/* The engine notices without being told; the objects are gone when it counts one client. */
	for (int i = 0; i < WAIT_SECONDS * 100; i++) {
		engine_statistics(&s);
		clients = s.clients;
		if (clients == 1)
			return;
		usleep(10000);
	}
	cr_assert_fail("the engine keeps a dead process");
}

/* protocol-map 171 */
Test(xrc, a_target_outlives_its_creator_while_another_process_has_it_open)
{
	uint32_t qpn;
	pid_t other = start_other(&qpn);
	struct ibv_xrcd *xrcd = open_xrcd(e.context, file, 0);
	struct ibv_qp *initiator = create_initiator(), *target;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_srq *srq;

	cr_assert_not_null(xrcd, "the other process's domain is found by the file: %m");
	target = open_target(xrcd, qpn, IBV_QPT_XRC_RECV);
	cr_assert_not_null(target, "%m");
	cr_expect_eq(target->qp_num, qpn);
	cr_expect_eq(target->qp_context, &e);
	srq = create_srq(xrcd);
	cr_assert_not_null(srq);
	cr_assert_eq(endpoint_connect(&e, initiator, qpn), 0);
	cr_assert_eq(endpoint_connect(&e, target, initiator->qp_num), 0);
	for (uint64_t i = 0; i < 4; i++)
		post(srq, i);
	/* to the other process's target, into our memory */
	message(initiator, qpn, number_of(srq), 0, 0x55);
	end_other(other);
	message(initiator, qpn, number_of(srq), 1, 0x66);
	cr_expect_eq(ibv_query_qp(target, &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_RTS);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(ibv_modify_qp(target, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(
		poll(&(struct pollfd){ e.context->async_fd, POLLIN, 0 }, 1, WAIT_SECONDS * 1000), 1,
		"no event");
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(event.element.qp, target);
	ibv_ack_async_event(&event);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
}

Test(xrc, every_holder_gets_a_targets_events_and_the_last_one_ends_it)
{
	struct ibv_xrcd *xrcd = open_xrcd(e.context, file, O_CREAT);
	struct ibv_qp *first = create_target(e.context, xrcd), *second;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	uint64_t objects = engine_objects();
	struct ibv_async_event event;
	bool heard[2] = { false, false };

	second = open_target(xrcd, first->qp_num, IBV_QPT_XRC_RECV);
	cr_assert_not_null(second, "%m");
	cr_assert_eq(endpoint_to_init(first), 0);
	cr_assert_eq(ibv_modify_qp(second, &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(poll(&(struct pollfd){ e.context->async_fd, POLLIN, 0 }, 1,
				  WAIT_SECONDS * 1000),
			     1, "event %d does not come", i);
		cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
		heard[0] |= event.element.qp == first;
		heard[1] |= event.element.qp == second;
		ibv_ack_async_event(&event);
	}
	cr_expect(heard[0] && heard[1]);
	cr_expect_eq(ibv_destroy_qp(first), 0);
	cr_expect_eq(engine_objects(), objects);
	cr_expect_eq(ibv_close_xrcd(xrcd), EBUSY);
	cr_expect_eq(ibv_destroy_qp(second), 0);
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
}

Test(xrc, a_domain_ends_with_the_process_that_opened_it)
{
	uint32_t qpn;
	pid_t other = start_other(&qpn);

	end_other(other);
	cr_expect_null(open_xrcd(e.context, file, 0));
	cr_expect_eq(errno, EAGAIN);
}
