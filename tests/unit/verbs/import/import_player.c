/* SPDX-License-Identifier: BSD-3-Clause */
/* One of the two processes of a test of import, see import_rig.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "import_rig.h"

bool send_with(int link, const void *octets, size_t n, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)octets, n };
	char space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = space;
		m.msg_controllen = sizeof(space);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(link, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

bool receive_with(int link, void *octets, size_t n, int *fd)
{
	struct iovec iov = { octets, n };
	char space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };

	*fd = -1;
	if (recvmsg(link, &m, MSG_CMSG_CLOEXEC) != (ssize_t)n)
		return false;
	if (m.msg_controllen > 0)
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(*fd));
	return true;
}

struct player {
	struct endpoint e; /* context, pd, cq, qp, gid */
	struct ibv_mr *mr;
	struct ibv_mr *imported;
	struct ibv_dm *dm;
	uint8_t *area;
	int token; /* sent with the answer; -1: none */
};

static void describe_mr(const struct ibv_mr *mr, struct answer *a)
{
	a->handle_2 = mr->handle;
	a->lkey = mr->lkey;
	a->rkey = mr->rkey;
	a->value = mr->length;
}

static bool register_area(struct player *p, struct answer *a)
{
	p->mr = ibv_reg_mr(p->e.pd, p->area, AREA, ACCESS);
	if (p->mr != NULL)
		describe_mr(p->mr, a);
	return p->mr != NULL;
}

static bool open_all(struct player *p, struct answer *a)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	p->e.context = list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	if (p->e.context == NULL)
		return false;
	p->e.pd = ibv_alloc_pd(p->e.context);
	if (p->e.pd == NULL || !register_area(p, a))
		return false;
	a->handle = p->e.pd->handle;
	p->token = p->e.context->cmd_fd;
	return true;
}

static bool connect_all(struct player *p)
{
	bool ok = ibv_query_gid(p->e.context, 1, GID_INDEX, &p->e.gid) == 0;

	p->e.cq = ibv_create_cq(p->e.context, 16, NULL, NULL, 0);
	for (int i = 0; ok && i < 2; i++)
		ok = p->e.cq != NULL && (p->e.qp[i] = endpoint_create_qp(&p->e)) != NULL;
	for (int i = 0; ok && i < 2; i++)
		ok = endpoint_connect(&p->e, p->e.qp[i], p->e.qp[1 - i]->qp_num) == 0;
	return ok;
}

static int wait_status(struct ibv_cq *cq)
{
	time_t until = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;

	while (time(NULL) < until)
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			return (int)wc.status;
	return -1;
}

static int post(struct player *p, const struct ask *q)
{
	struct ibv_sge sge[2] = { q->sge[0], q->sge[1] };
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = q->num_sge,
				  .opcode = q->opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (q->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = q->remote;
		wr.wr.atomic.rkey = q->rkey;
		wr.wr.atomic.compare_add = q->value;
	} else {
		wr.wr.rdma.remote_addr = q->remote;
		wr.wr.rdma.rkey = q->rkey;
	}
	if (ibv_post_send(p->e.qp[0], &wr, &bad) != 0)
		return -1;
	return wait_status(p->e.cq);
}

static bool register_blocking(struct player *p, struct answer *a)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *at = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	range.range.start = (uintptr_t)at;
	range.range.len = AREA;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		return false;
	p->mr = ibv_reg_mr(p->e.pd, at, AREA, ACCESS);
	if (p->mr == NULL)
		return false;
	describe_mr(p->mr, a);
	a->value = (uintptr_t)at;
	return true;
}

static bool do_dm(struct player *p, const struct ask *q, struct answer *a)
{
	struct ibv_alloc_dm_attr attr = { .length = q->value };
	uint32_t word = q->handle;

	switch (q->what) {
	case ALLOC_DM:
		p->dm = ibv_alloc_dm(p->e.context, &attr);
		break;
	case IMPORT_DM:
		p->dm = ibv_import_dm(p->e.context, q->handle);
		break;
	case WRITE_DM:
		errno = ibv_memcpy_to_dm(p->dm, q->value, &word, sizeof(word));
		return errno == 0;
	case READ_DM:
		errno = ibv_memcpy_from_dm(&a->handle, p->dm, q->value, sizeof(word));
		return errno == 0;
	case FREE_DM:
		errno = ibv_free_dm(p->dm);
		return errno == 0;
	default:
		p->mr = ibv_reg_dm_mr(p->e.pd, p->dm, 0, q->value, ACCESS | IBV_ACCESS_ZERO_BASED);
		if (p->mr != NULL)
			describe_mr(p->mr, a);
		return p->mr != NULL;
	}
	if (p->dm != NULL)
		a->handle = p->dm->handle;
	return p->dm != NULL;
}

static bool act(struct player *p, const struct ask *q, int fd, struct answer *a)
{
	time_t until;

	switch (q->what) {
	case OPEN:
		return open_all(p, a);
	case IMPORT:
		p->e.context = ibv_import_device(fd);
		p->token = p->e.context != NULL ? p->e.context->cmd_fd : -1;
		return p->e.context != NULL;
	case IMPORT_PD:
		p->e.pd = ibv_import_pd(p->e.context, q->handle);
		a->handle = p->e.pd != NULL ? p->e.pd->handle : 0;
		return p->e.pd != NULL;
	case IMPORT_MR:
		p->imported = ibv_import_mr(p->e.pd, q->handle);
		if (p->imported != NULL)
			describe_mr(p->imported, a);
		return p->imported != NULL;
	case REGISTER:
		return register_area(p, a);
	case CONNECT:
		return connect_all(p);
	case POST:
		a->status = post(p, q);
		return true;
	case BLOCK:
		return register_blocking(p, a);
	case STORM:
		until = time(NULL) + WAIT_SECONDS;
		while (time(NULL) < until && a->status == IBV_WC_SUCCESS)
			a->status = post(p, q);
		return true;
	case DEREGISTER:
		errno = ibv_dereg_mr(p->mr);
		return errno == 0;
	case UNIMPORT_MR:
		ibv_unimport_mr(p->imported);
		return true;
	case UNIMPORT_OWN:
		ibv_unimport_mr(p->mr);
		return true;
	case DEALLOC_PD:
		errno = ibv_dealloc_pd(p->e.pd);
		return errno == 0;
	case UNIMPORT_PD:
		ibv_unimport_pd(p->e.pd);
		return true;
	case CLOSE:
		errno = ibv_close_device(p->e.context);
		return errno == 0;
	default:
		return do_dm(p, q, a);
	}
}

void become(const char *variable)
{
	const char *user = getenv(variable);
	uid_t uid = user != NULL ? (uid_t)atoi(user) : geteuid();

	if (uid == geteuid())
		return;
	/* A process that has changed its user may usually not open its own /proc/self/mem. */
	if (setresuid(uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(3);
}

void play(int link, uint8_t *own, uint8_t *others)
{
	struct player p = { .area = own };
	struct ask q;
	int fd;

	/* Our memory at this address differs from the other's. */
	if (mmap(others, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != others)
		_exit(2);
	memset(others, 'x', AREA);
	while (receive_with(link, &q, sizeof(q), &fd)) {
		struct answer a = { 0 };

		p.token = -1;
		errno = 0;
		if (!act(&p, &q, fd, &a))
			a.error = errno;
		if (!send_with(link, &a, sizeof(a), p.token))
			break;
	}
	_exit(0);
}
