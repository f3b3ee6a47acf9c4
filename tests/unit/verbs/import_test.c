/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import between processes. The test conducts: two processes of its own, an exporter and an
 * importer, do what they are asked to and answer. Memory is shared with the conductor, who so sees
 * what the engine did to it; but each of the two has only its own area there and something else
 * of the same address in the place of the other's, which is found if a copy goes to the wrong one.
 *
 * Runs with an engine at $UROCE_SOCKET. With $EXPORTER_UID or $IMPORTER_UID (and as root) that
 * process is another user's: then the engine's copies of its memory are made by a thread.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/message.h"
#include "endpoint.h"

#define AREA	  8192u /* too small to be promoted: the engine copies from process to process */
#define HALF	  (AREA / 2)
#define STORM_MAX 100000
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum request {
	OPEN, /* a context with a PD and a region of one's own area; answers with its token */
	IMPORT, /* the context of the token that comes along */
	IMPORT_PD,
	IMPORT_MR,
	REGISTER, /* one's own area, in the current PD */
	CONNECT, /* two queue pairs in the current PD, to each other */
	POST,
	BLOCK, /* registers memory, reading which waits for ever */
	STORM, /* POST again and again, until one fails */
	DEREGISTER,
	UNIMPORT_MR,
	UNIMPORT_OWN, /* the region that was registered: left to others */
	DEALLOC_PD,
	UNIMPORT_PD,
	ALLOC_DM,
	IMPORT_DM,
	WRITE_DM,
	READ_DM,
	FREE_DM,
	REGISTER_DM,
	CLOSE,
};

struct ask {
	enum request what;
	uint32_t handle;
	uint64_t value;
	/* POST */
	enum ibv_wr_opcode opcode;
	int num_sge;
	struct ibv_sge sge[2];
	uint64_t remote;
	uint32_t rkey;
};

struct answer {
	int error;
	int status; /* of the completion */
	uint32_t handle, handle_2;
	uint32_t lkey, rkey;
	uint64_t value;
};

/* ---- messages, maybe with a descriptor ---- */

static bool send_with(int link, const void *octets, size_t n, int fd)
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

static bool receive_with(int link, void *octets, size_t n, int *fd)
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

/* ---- one of the two processes ---- */

struct player {
	struct endpoint e; /* context, pd, cq, qp, gid */
	struct ibv_mr *mr;
	struct ibv_mr *imported;
	struct ibv_dm *dm;
	uint8_t *area;
	int token; /* to be sent with the answer; -1: none */
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
		for (int i = 0; i < STORM_MAX && a->status == IBV_WC_SUCCESS; i++)
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

static void become(const char *variable)
{
	const char *user = getenv(variable);
	uid_t uid = user != NULL ? (uid_t)atoi(user) : geteuid();

	if (uid == geteuid())
		return;
	/* Who changes his user may not look at himself, as a rule; /proc/self/mem is that. */
	if (setresuid(uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(3);
}

static void play(int link, uint8_t *own, uint8_t *others)
{
	struct player p = { .area = own };
	struct ask q;
	int fd;

	/* What is here is not what the other has there. */
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

/* ---- the conductor ---- */

struct process {
	pid_t pid;
	int link;
};

static struct process exporter, importer;
static uint8_t *areas; /* the exporter's, then the importer's */
static struct reply_statistics before;
static struct answer exported; /* of OPEN */
static int token; /* that came with it */

static void statistics(struct reply_statistics *s)
{
	struct request_empty q;
	int fd = message_connect(getenv("UROCE_SOCKET"));

	cr_assert_geq(fd, 0, "no engine at $UROCE_SOCKET");
	cr_assert_eq(message_exchange(fd, COMMAND_STATISTICS, 1, 5000, &q.h, sizeof(q), &s->h,
				      sizeof(*s), NULL, NULL),
		     0);
	close(fd);
}

static void start(struct process *p, uint8_t *own, uint8_t *others)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (p == &importer)
			close(exporter.link);
		become(p == &importer ? "IMPORTER_UID" : "EXPORTER_UID");
		play(pair[1], own, others);
	}
	close(pair[1]);
	p->link = pair[0];
}

static void kill_process(struct process *p)
{
	if (p->pid == 0)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->link);
	p->pid = 0;
}

static struct answer take_answer(struct process *p, enum request what, int *fd)
{
	struct pollfd wait = { .fd = p->link, .events = POLLIN };
	struct answer a;

	cr_assert_eq(poll(&wait, 1, (WAIT_SECONDS + 10) * 1000), 1, "no answer to request %d",
		     (int)what);
	cr_assert(receive_with(p->link, &a, sizeof(a), fd), "a process ended at request %d",
		  (int)what);
	return a;
}

static int request(struct process *p, const struct ask *q, int fd, struct answer *a, int *got)
{
	int mine;

	cr_assert(send_with(p->link, q, sizeof(*q), fd), "a process has ended");
	*a = take_answer(p, q->what, &mine);
	if (got != NULL)
		*got = mine;
	else if (mine >= 0)
		close(mine);
	return a->error;
}

static int tell(struct process *p, enum request what, uint32_t handle, uint64_t value)
{
	struct ask q = { .what = what, .handle = handle, .value = value };
	struct answer a;

	return request(p, &q, -1, &a, NULL);
}

static void start_both(void)
{
	struct ask open = { .what = OPEN };

	memset(areas, 'e', HALF);
	memset(areas + AREA, 'i', HALF);
	start(&exporter, areas, areas + AREA);
	start(&importer, areas + AREA, areas);
	cr_assert_eq(request(&exporter, &open, -1, &exported, &token), 0, "%s",
		     strerror(exported.error));
	cr_assert_geq(token, 0, "no token");
}

static void end_both(void)
{
	kill_process(&exporter);
	kill_process(&importer);
	close(token);
}

static void begin(void)
{
	statistics(&before);
	areas = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(areas, MAP_FAILED);
	start_both();
}

/* Nothing is left of anybody. */
static void end(void)
{
	time_t until = time(NULL) + WAIT_SECONDS;
	struct reply_statistics now;

	end_both();
	do
		statistics(&now);
	while (memcmp(now.objects, before.objects, sizeof(now.objects)) != 0 && time(NULL) < until);
	for (uint32_t i = 0; i < STATISTICS_KINDS; i++)
		cr_expect_eq(now.objects[i], before.objects[i], "%u objects of kind %u, not %u",
			     now.objects[i], i, before.objects[i]);
	cr_expect_eq(now.mrs, before.mrs);
	cr_expect_eq(now.qps, before.qps);
	munmap(areas, 2 * AREA);
}

TestSuite(import, .init = begin, .fini = end, .timeout = 120);

/* The importer has the exporter's context, PD and region. */
static struct answer import_all(void)
{
	struct ask q = { .what = IMPORT };
	struct answer a;

	cr_assert_eq(request(&importer, &q, token, &a, NULL), 0, "import_device: %s",
		     strerror(a.error));
	cr_assert_eq(tell(&importer, IMPORT_PD, exported.handle, 0), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = exported.handle_2 };
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_expect_eq(a.lkey, exported.lkey);
	cr_expect_eq(a.rkey, exported.rkey);
	cr_expect_eq(a.value, AREA);
	return a;
}

/* What becomes of a WRITE of the first half of one area, `from`, to the second of another. */
static int write_status(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)from, HALF, lkey } },
			 .remote = (uintptr_t)to + HALF,
			 .rkey = rkey };
	struct answer a;

	cr_assert_eq(request(p, &q, -1, &a, NULL), 0);
	return a.status;
}

static void expect_filled(const uint8_t *octets, size_t n, int with)
{
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(octets[i], with, "octet %zu is %c", i, octets[i]);
}

static uint8_t *exporters(void)
{
	return areas;
}

static uint8_t *importers(void)
{
	return areas + AREA;
}

static struct answer register_importers(void)
{
	struct ask q = { .what = REGISTER };
	struct answer a;

	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	return a;
}

/* ---- memory of either side by queue pairs of either side ---- */

Test(import, the_importer_reads_and_writes_the_exporters_memory)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters(), AREA, 'e');
}

Test(import, the_exporter_reads_and_writes_the_importers_memory)
{
	struct answer own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&exporter, exporters(), exported.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(importers() + HALF, HALF, 'e');
	cr_assert_eq(write_status(&exporter, importers(), own.lkey, exporters(), exported.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters() + HALF, HALF, 'i');
}

Test(import, a_list_of_both_memories_is_gathered_and_scattered)
{
	struct answer mr = import_all(), own = register_importers(), a;
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 2,
			 .sge = { { (uintptr_t)exporters(), 100, mr.lkey },
				  { (uintptr_t)importers(), 300, own.lkey } },
			 .remote = (uintptr_t)importers() + HALF,
			 .rkey = own.rkey };

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	expect_filled(importers() + HALF, 100, 'e');
	expect_filled(importers() + HALF + 100, 300, 'i');
	q.opcode = IBV_WR_RDMA_READ;
	q.sge[0].addr += HALF;
	q.sge[1].addr += 2048;
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	expect_filled(exporters() + HALF, 100, 'e');
	expect_filled(importers() + 2048, 300, 'i');
}

Test(import, atomics_reach_the_exporters_memory)
{
	struct answer mr = import_all(), own = register_importers(), a;
	uint64_t *counter = (uint64_t *)(void *)(exporters() + 1024);
	uint64_t *result = (uint64_t *)(void *)(importers() + 2048);
	struct ask q = { .what = POST,
			 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			 .value = 5,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)result, 8, own.lkey } },
			 .remote = (uintptr_t)counter,
			 .rkey = mr.rkey };

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	*counter = 37;
	cr_assert_eq(request(&importer, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.status, IBV_WC_SUCCESS);
	cr_assert_eq(*counter, 42);
	cr_assert_eq(*result, 37);
}

/* ---- who goes first ---- */

Test(import, the_region_dies_with_its_exporter_and_the_domain_does_not)
{
	struct answer mr = import_all(), own = register_importers();

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	kill_process(&exporter);
	/* Its end is noticed by the engine at once, but at its own pace. */
	for (int tries = 0;; tries++) {
		int status = write_status(&importer, importers(), own.lkey, importers(), own.rkey);
		struct reply_statistics now;

		cr_assert_eq(status, IBV_WC_SUCCESS, "the importer's own memory: %d", status);
		statistics(&now);
		if (now.clients == before.clients + 1)
			break;
		cr_assert_lt(tries, 10000, "the exporter's end is not noticed");
	}
	expect_filled(importers(), AREA, 'i');
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, importers(), own.rkey),
		     IBV_WC_LOC_PROT_ERR);
	expect_filled(importers(), AREA, 'i');
	/* New ones in the domain work; the dead region's key does not in them either. */
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), mr.rkey),
		     IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(tell(&importer, IMPORT_MR, exported.handle_2, 0), EINVAL);
	cr_expect_eq(tell(&importer, IMPORT_PD, exported.handle, 0), EINVAL);
}

Test(import, the_importers_end_changes_nothing_for_the_exporter)
{
	struct answer mr = import_all(), own = register_importers();
	struct reply_statistics now;

	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	kill_process(&importer);
	for (int tries = 0; tries < 10000; tries++) {
		statistics(&now);
		if (now.clients == before.clients + 1)
			break;
		poll(NULL, 0, 1);
	}
	cr_assert_eq(now.clients, before.clients + 1, "the importer's end is not noticed");
	cr_assert_eq(
		write_status(&exporter, exporters(), exported.lkey, exporters(), exported.rkey),
		IBV_WC_SUCCESS);
	cr_assert_eq(write_status(&exporter, exporters(), exported.lkey, importers(), own.rkey),
		     IBV_WC_REM_ACCESS_ERR);
}

Test(import, either_may_free_the_domain_first)
{
	struct answer own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), EBUSY, "its region is in it");
	cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
	cr_assert_eq(tell(&importer, DEALLOC_PD, 0, 0), EBUSY);
	cr_assert_eq(tell(&exporter, CLOSE, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
}

Test(import, a_new_domain_of_the_exporter_is_another_one)
{
	struct ask open = { .what = OPEN };
	struct answer again, own;

	import_all();
	own = register_importers();
	cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	for (int i = 0; i < 70; i++) {
		/* as many as handles rest, so that the old one comes again */
		cr_assert_eq(request(&exporter, &open, -1, &again, NULL), 0);
		cr_assert_eq(tell(&exporter, DEREGISTER, 0, 0), 0);
		cr_assert_eq(tell(&exporter, DEALLOC_PD, 0, 0), 0);
	}
	cr_assert_eq(request(&exporter, &open, -1, &again, NULL), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, importers(), own.lkey, exporters(), again.rkey),
		     IBV_WC_REM_ACCESS_ERR);
}

Test(import, unimport_gives_back_and_the_exporter_goes_on)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&importer, DEALLOC_PD, 0, 0), EBUSY, "the imported region is in it");
	cr_assert_eq(tell(&importer, UNIMPORT_MR, 0, 0), 0);
	cr_assert_eq(tell(&importer, UNIMPORT_PD, 0, 0), 0);
	cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&exporter, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
}

Test(import, an_exporter_may_leave_its_region_to_others)
{
	struct answer mr = import_all();

	cr_assert_eq(tell(&exporter, UNIMPORT_OWN, 0, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	cr_assert_eq(write_status(&importer, exporters(), mr.lkey, exporters(), mr.rkey),
		     IBV_WC_SUCCESS);
	expect_filled(exporters(), AREA, 'e');
}

Test(import, what_was_imported_can_be_exported_again)
{
	struct ask q = { .what = IMPORT };
	struct answer first, pd, mr, a;
	int second;

	cr_assert_eq(request(&importer, &q, token, &first, &second), 0);
	q = (struct ask){ .what = IMPORT_PD, .handle = exported.handle };
	cr_assert_eq(request(&importer, &q, -1, &pd, NULL), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = exported.handle_2 };
	cr_assert_eq(request(&importer, &q, -1, &mr, NULL), 0);
	q = (struct ask){ .what = IMPORT };
	cr_assert_eq(request(&exporter, &q, second, &a, NULL), 0);
	cr_assert_eq(tell(&exporter, IMPORT_PD, pd.handle, 0), 0);
	q = (struct ask){ .what = IMPORT_MR, .handle = mr.handle_2 };
	cr_assert_eq(request(&exporter, &q, -1, &a, NULL), 0);
	cr_assert_eq(a.lkey, exported.lkey);
	close(second);
}

static void storm(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ask q = { .what = STORM,
			 .opcode = IBV_WR_RDMA_WRITE,
			 .num_sge = 1,
			 .sge = { { (uintptr_t)from, HALF, lkey } },
			 .remote = (uintptr_t)to + HALF,
			 .rkey = rkey };

	cr_assert(send_with(p->link, &q, sizeof(q), -1));
}

/* Each round kills one of the two, or both, somewhere in the middle of their traffic. */
Test(import, one_is_killed_while_the_other_moves_its_memory)
{
	for (int round = 0; round < 24; round++) {
		struct process *victim = round % 3 == 0 ? &exporter : &importer;
		struct process *other = round % 3 == 0 ? &importer : &exporter;
		struct answer mr = import_all(), own = register_importers(), a;
		int fd;

		cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
		cr_assert_eq(tell(&exporter, CONNECT, 0, 0), 0);
		storm(&importer, exporters(), mr.lkey, importers(), own.rkey);
		storm(&exporter, importers(), own.lkey, exporters(), mr.rkey);
		poll(NULL, 0, round);
		kill_process(victim);
		if (round % 3 == 2)
			kill_process(other);
		if (round % 3 != 2) {
			a = take_answer(other, STORM, &fd);
			cr_assert(a.status == IBV_WC_LOC_PROT_ERR ||
					  a.status == IBV_WC_REM_ACCESS_ERR ||
					  a.status == IBV_WC_REM_OP_ERR,
				  "round %d: %s", round, ibv_wc_status_str(a.status));
		}
		end_both();
		start_both();
	}
}

/*
 * The importer's queue pair is held up, the engine's lcore for a moment; ended is whose memory it
 * is. Another user's may block as it likes: only those wait who use it.
 */
Test(import, memory_that_blocks_is_its_exporters_fault)
{
	struct ask q = { .what = BLOCK };
	struct answer own, blocking, a;
	int fd, status = 0;

	import_all();
	own = register_importers();
	if (getenv("EXPORTER_UID") != NULL || getenv("IMPORTER_UID") != NULL)
		return;
	if (request(&exporter, &q, -1, &blocking, NULL) != 0) {
		cr_log_warn("userfaultfd is not to be had: %s", strerror(blocking.error));
		return;
	}
	cr_assert_eq(tell(&importer, IMPORT_MR, blocking.handle_2, 0), 0);
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	q = (struct ask){ .what = POST,
			  .opcode = IBV_WR_RDMA_WRITE,
			  .num_sge = 1,
			  /* several packets: they are read by one call, which waits */
			  .sge = { { blocking.value, HALF, blocking.lkey } },
			  .remote = (uintptr_t)importers() + HALF,
			  .rkey = own.rkey };
	cr_assert(send_with(importer.link, &q, sizeof(q), -1));
	cr_assert_eq(waitpid(exporter.pid, &status, 0), exporter.pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
	close(exporter.link);
	exporter.pid = 0;
	a = take_answer(&importer, POST, &fd);
	cr_expect_eq(a.status, IBV_WC_LOC_PROT_ERR, "%s", ibv_wc_status_str(a.status));
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0, "the importer goes on");
	cr_assert_eq(write_status(&importer, importers(), own.lkey, importers(), own.rkey),
		     IBV_WC_SUCCESS);
}

/* ---- device memory ---- */

Test(import, device_memory_is_shared_and_outlives_who_allocated_it)
{
	struct ask q = { .what = ALLOC_DM, .value = 8192 };
	struct answer dm, mr;

	import_all();
	cr_assert_eq(request(&exporter, &q, -1, &dm, NULL), 0);
	cr_assert_eq(tell(&importer, IMPORT_DM, dm.handle, 0), 0);
	cr_assert_eq(tell(&exporter, WRITE_DM, 0x12345678, 4096), 0);
	q = (struct ask){ .what = READ_DM, .value = 4096 };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	kill_process(&exporter);
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	q = (struct ask){ .what = REGISTER_DM, .value = 8192 };
	cr_assert_eq(request(&importer, &q, -1, &mr, NULL), 0);
	cr_assert_eq(tell(&importer, FREE_DM, 0, 0), EBUSY, "a region is of it");
	cr_assert_eq(tell(&importer, CONNECT, 0, 0), 0);
	q = (struct ask){ .what = POST,
			  .opcode = IBV_WR_RDMA_WRITE,
			  .num_sge = 1,
			  .sge = { { 4096, 4, mr.lkey } },
			  .remote = 8,
			  .rkey = mr.rkey };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.status, IBV_WC_SUCCESS);
	q = (struct ask){ .what = READ_DM, .value = 8 };
	cr_assert_eq(request(&importer, &q, -1, &dm, NULL), 0);
	cr_assert_eq(dm.handle, 0x12345678);
	cr_assert_eq(tell(&importer, DEREGISTER, 0, 0), 0);
	cr_assert_eq(tell(&importer, FREE_DM, 0, 0), 0);
}

/* ---- tokens ---- */

static int import_error(int fd)
{
	struct ibv_context *c;

	errno = 0;
	c = ibv_import_device(fd);
	if (c == NULL)
		return errno;
	ibv_close_device(c); /* and with it fd */
	return 0;
}

/* The token's octets in a file of our own, which is sealed in the same way. */
static int forge(bool sealed)
{
	uint8_t octets[sizeof(struct context_token)];
	int fd = memfd_create("forged", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	cr_assert_eq(pread(token, octets, sizeof(octets), 0), (ssize_t)sizeof(octets));
	cr_assert_eq(write(fd, octets, sizeof(octets)), (ssize_t)sizeof(octets));
	if (sealed)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS,
				   F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			     0);
	return fd;
}

Test(import, only_the_token_itself_will_do)
{
	int pipes[2], folder = open("/tmp", O_RDONLY | O_DIRECTORY),
		      null = open("/dev/null", O_RDWR);
	int plain = open("/proc/self/exe", O_RDONLY), copy = forge(false), forged = forge(true);

	cr_assert_eq(pipe(pipes), 0);
	cr_expect_eq(import_error(-1), EBADF);
	cr_expect_eq(import_error(9999), EBADF);
	cr_expect_eq(import_error(pipes[0]), EINVAL, "an empty pipe");
	cr_expect_eq(import_error(folder), EINVAL);
	cr_expect_eq(import_error(null), EINVAL);
	cr_expect_eq(import_error(plain), EINVAL);
	cr_expect_eq(import_error(copy), EINVAL, "its octets in another file");
	cr_expect_eq(import_error(forged), EINVAL, "... that is sealed as it is");
	cr_expect_eq(import_error(dup(token)), 0);
	cr_expect_eq(fcntl(token, F_GETFD) >= 0, 1, "what was imported was a duplicate");
}

Test(import, nobody_can_change_a_token)
{
	cr_expect_eq(pwrite(token, "x", 1, 0), -1);
	cr_expect_eq(ftruncate(token, 0), -1);
	cr_expect_eq(ftruncate(token, 1 << 20), -1);
	cr_expect_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, token, 0), MAP_FAILED);
}

Test(import, a_token_leads_to_its_engine)
{
	char *socket = strdup(getenv("UROCE_SOCKET"));

	setenv("UROCE_SOCKET", "/nonexistent", 1);
	cr_expect_null(ibv_get_device_list(NULL)[0], "no engine is there by itself");
	cr_expect_eq(import_error(dup(token)), 0);
	setenv("UROCE_SOCKET", socket, 1);
	free(socket);
}

Test(import, a_closed_contexts_token_is_nothing)
{
	struct ibv_context *c = ibv_import_device(dup(token));

	cr_assert_not_null(c);
	cr_assert_eq(tell(&exporter, CLOSE, 0, 0), 0);
	cr_expect_eq(import_error(token), EINVAL);
	errno = 0;
	cr_expect_null(ibv_import_pd(c, exported.handle));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_close_device(c), 0);
}

Test(import, handles_are_not_enough)
{
	struct ibv_context *c = open_only_device();
	struct ibv_pd *pd = ibv_alloc_pd(c), *again;

	for (uint32_t guess = 0; guess < 100; guess++) {
		if (guess == pd->handle)
			continue;
		errno = 0;
		cr_expect_null(ibv_import_pd(c, guess));
		cr_expect_eq(errno, EINVAL);
		errno = 0;
		cr_expect_null(ibv_import_mr(pd, guess));
		cr_expect_eq(errno, EINVAL);
		errno = 0;
		cr_expect_null(ibv_import_dm(c, guess));
		cr_expect_eq(errno, EINVAL);
	}
	again = ibv_import_pd(c, pd->handle);
	cr_assert_not_null(again, "one's own may be imported, too");
	ibv_unimport_pd(again);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(c), 0);
}

/* Context and child of a fork: what the child allocates is its own. */
Test(import, a_forks_child_allocates_device_memory)
{
	struct ibv_context *c = open_only_device();
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_device_attr_ex device;
	int status = -1;
	pid_t child;

	child = fork();
	if (child == 0) {
		struct ibv_dm *dm = ibv_alloc_dm(c, &attr);
		uint32_t word = 7, back = 0;

		_exit(ibv_query_device_ex(c, NULL, &device) != 0 || device.max_dm_size == 0 ||
		      dm == NULL || ibv_memcpy_to_dm(dm, 0, &word, 4) != 0 ||
		      ibv_memcpy_from_dm(&back, dm, 0, 4) != 0 || back != 7 ||
		      ibv_alloc_pd(c) != NULL || ibv_free_dm(dm) != 0);
	}
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	cr_expect_eq(ibv_close_device(c), 0);
}
