/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile H-54, H-62: what a program of another user learns about queue pairs of others, and
 * whether it can pass them off as its own. The queue pairs are root's; the stranger is the user
 * nobody.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/command.h"
#include "protocol/command_cm.h"
#include "rig.h"

#define NOBODY		65534
#define CONTROLLED_QKEY 0x80010000u /* of queue pair 1 */

static int ask_pipe[2], answer_pipe[2];
static pid_t stranger;

/* The number of listed ids that have this queue pair number. */
static uint32_t shown(uint32_t qpn, uint32_t *ids)
{
	struct request_cm_list q = { .h = { .magic = COMMAND_MAGIC,
					    .version = COMMAND_VERSION,
					    .command = COMMAND_CM_LIST,
					    .length = sizeof(q) } };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct reply_cm_list list;
	uint32_t n = 0;

	strncpy(to.sun_path, getenv("UROCE_SOCKET"), sizeof(to.sun_path) - 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0, "%m");
	cr_assert_eq(send(fd, &q, sizeof(q), 0), (ssize_t)sizeof(q));
	cr_assert_eq(recv(fd, &list, sizeof(list), 0), (ssize_t)sizeof(list));
	cr_assert_eq(list.h.error, 0);
	for (uint32_t i = 0; i < list.count; i++)
		n += list.id[i].qpn == qpn;
	*ids = list.count;
	close(fd);
	return n;
}

/* What the stranger reported. */
struct findings {
	uint32_t shown, ids;
	int connect_error, nonsense_error; /* with root's number; with an unused number */
	int own_error; /* with its own number */
	int qkey_error;
};

static int connect_as(uint16_t port, uint32_t qpn)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_caller(channel, RDMA_PS_TCP, port);
	struct rdma_conn_param param = { .qp_num = qpn };
	int error = rdma_connect(id, &param) == 0 ? 0 : errno;

	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return error;
}

static int own_number(uint16_t port)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_caller(channel, RDMA_PS_TCP, port);
	int error;

	give_qp(id);
	error = connect_as(port, id->qp->qp_num);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return error;
}

/*
 * A datagram queue pair with the Q_Key of queue pair 1 could forge connection management messages.
 */
static int take_controlled_qkey(uint16_t port)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_caller(channel, RDMA_PS_TCP, port);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = CONTROLLED_QKEY };
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	int error =
		ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	ibv_destroy_qp(qp);
	ibv_dealloc_pd(pd);
	ibv_destroy_cq(cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return error;
}

static _Noreturn void be_stranger(void)
{
	struct findings f = { 0 };
	uint32_t what[2]; /* queue pair number, port */

	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1); /* a change of user clears it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(ask_pipe[0], what, sizeof(what)) != sizeof(what))
		_exit(3);
	f.shown = shown(what[0], &f.ids);
	f.connect_error = connect_as((uint16_t)what[1], what[0]);
	f.nonsense_error = connect_as((uint16_t)what[1], what[0] ^ 0xabcd0);
	f.own_error = own_number((uint16_t)what[1]);
	f.qkey_error = take_controlled_qkey((uint16_t)what[1]);
	_exit(write(answer_pipe[1], &f, sizeof(f)) == sizeof(f) ? 0 : 4);
}

/* hostile H-54, H-62 */
Test(foreign, numbers_and_keys_belong_to_their_owners, .timeout = 60)
{
	struct connection c;
	struct findings f;
	uint32_t what[2], ids;
	int status;

	if (geteuid() != 0)
		cr_skip_test("only root can change its user");
	cr_assert(pipe(ask_pipe) == 0 && pipe(answer_pipe) == 0, "%m");
	stranger = fork(); /* before verbs are used, so that the child shares nothing */
	cr_assert_geq(stranger, 0, "%m");
	if (stranger == 0)
		be_stranger();
	connection_open(&c);
	what[0] = c.called->qp->qp_num;
	what[1] = ntohs(rdma_get_src_port(c.listener));
	cr_assert_eq(write(ask_pipe[1], what, sizeof(what)), (ssize_t)sizeof(what));
	close(answer_pipe[1]);
	cr_assert_eq(read(answer_pipe[0], &f, sizeof(f)), (ssize_t)sizeof(f), "no answer");
	cr_assert_eq(waitpid(stranger, &status, 0), stranger);
	cr_assert_eq(status, 0);
	cr_expect_eq(f.ids, 3, "it counts %u ids", f.ids);
	cr_expect_eq(f.shown, 0, "it sees the number");
	cr_assert_eq(shown(what[0], &ids), 1, "root does not see the number");
	cr_expect_eq(f.connect_error, EINVAL, "it connects with root's queue pair: %d",
		     f.connect_error);
	cr_expect_eq(f.nonsense_error, EINVAL, "errors reveal which numbers exist");
	cr_expect_eq(f.own_error, 0, "its own number: %s", strerror(f.own_error));
	cr_expect_eq(f.qkey_error, EPERM, "Q_Key: %s", strerror(f.qkey_error));
}
