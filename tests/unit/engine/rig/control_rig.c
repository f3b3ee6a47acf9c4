/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/statistics.h"
#include "lcore/inside.h"
#include "control/connection/porters.h"
#include "engine/uroce.h"

#define NOBODY 65534

struct uroce_engine *engine;
char path[64];

static void start_eal(void)
{
	char prefix[64];
	char *argv[] = { (char *)"test",
			 (char *)"--no-huge",
			 (char *)"--no-shconf",
			 (char *)"-m64",
			 (char *)"--no-pci",
			 (char *)"--lcores=0@(0-1)",
			 (char *)"--no-telemetry",
			 (char *)"--log-level=*:error",
			 prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=uroce-test-%d", getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(argv), argv), 0);
}

struct uroce_engine *make_engine(char *why, size_t size)
{
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = 1,
				   .lcore_ids = { rte_get_main_lcore() },
				   .adaptive = true,
				   .socket_gid = -1,
				   .socket_path = path,
				   .pool_size = 1024 };

	return uroce_create(&o, why, size);
}

void control_rig_make(void)
{
	char why[256];

	start_eal();
	engine = make_engine(why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
}

void control_rig_open(void)
{
	snprintf(path, sizeof(path), "/tmp/uroce-control-test-%d.sock", getpid());
	control_rig_make();
	cr_assert_eq(uroce_start(engine), 0);
}

void control_rig_close(void)
{
	char lock[80], folder[256];

	uroce_destroy(engine);
	cr_expect_neq(access(path, F_OK), 0, "the socket is gone");
	snprintf(lock, sizeof(lock), "%s.lock", path);
	unlink(lock);
	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(folder);
}

/* ---- a client ---- */

static uint32_t sequence;

int ask(int fd, enum command what, struct command_request *q, size_t q_size,
	struct command_reply *r, size_t r_size, const struct carrier_descriptors *in,
	struct carrier_descriptors *out)
{
	return message_exchange(fd, what, ++sequence, ENOUGH_MS, q, q_size, r, r_size, in, out);
}

int ask_handle(int fd, enum command what, uint32_t handle, uint32_t *made)
{
	struct request_handle q = { .handle = handle };
	struct reply_handle r;
	struct carrier_descriptors out = { 0 };
	/* replies of different sizes begin alike; the shortest has only the header */
	int error = ask(fd, what, &q.h, sizeof(q), &r.h,
			made != NULL ? sizeof(r) : sizeof(struct command_reply), NULL, &out);

	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
	if (error == 0 && made != NULL)
		*made = r.handle;
	return error;
}

void statistics(struct reply_statistics *s)
{
	uroce_statistics(engine, s);
}

int attach_keeping_all(struct reply_hello *r, int *arena, int *bell)
{
	struct request_hello q = { .pid = (uint32_t)getpid(), .program = "control_test" };
	struct carrier_descriptors out = { 0 };
	int fd = message_connect(path);

	cr_assert_geq(fd, 0, "connect: %s", strerror(errno));
	message_prove(q.proof);
	cr_assert_eq(ask(fd, COMMAND_HELLO, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, &out), 0);
	cr_assert_eq(out.count, 3, "the arena and two eventfds");
	cr_assert_eq(r->lcores, 1);
	*arena = out.fd[0];
	close(out.fd[1]);
	*bell = out.fd[2];
	return fd;
}

/* A new connection with HELLO; its arena and eventfds are closed at once. */
int attach_keeping(struct reply_hello *r, int *arena)
{
	int bell, fd = attach_keeping_all(r, arena, &bell);

	close(bell);
	return fd;
}

int attach(void)
{
	struct reply_hello r;
	int arena, fd = attach_keeping(&r, &arena);

	close(arena);
	return fd;
}

uint32_t open_context(int fd)
{
	struct request_empty q;
	struct reply_context r;
	struct carrier_descriptors out = { 0 };

	cr_assert_eq(ask(fd, COMMAND_OPEN_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out),
		     0);
	cr_assert_eq(out.count, 2, "the event descriptor and the token");
	close(out.fd[0]);
	close(out.fd[1]);
	cr_assert_neq(r.handle, 0);
	return r.handle;
}

int create_cq(int fd, uint32_t context, uint32_t channel, uint32_t cqe, uint32_t *handle)
{
	struct request_create_cq q = { .context = context, .channel = channel, .cqe = cqe };
	struct reply_create_cq r;
	int error = ask(fd, COMMAND_CREATE_CQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0) {
		cr_assert_geq(r.cqe, cqe);
		cr_assert_gt(r.ring_size, r.cqe);
		*handle = r.handle;
	}
	return error;
}

int create_qp(int fd, struct request_create_qp *q, struct reply_create_qp *r)
{
	return ask(fd, COMMAND_CREATE_QP, &q->h, sizeof(*q), &r->h, sizeof(*r), NULL, NULL);
}

char memory[CONTROL_RIG_MEMORY];

int reg_mr(int fd, uint32_t pd, uint32_t access, uint64_t length, uint32_t *handle)
{
	struct request_reg_mr q = { .pd = pd,
				    .access = access,
				    .address = (uintptr_t)memory,
				    .iova = (uintptr_t)memory,
				    .length = length };
	struct reply_reg_mr r;
	int error = ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0) {
		cr_assert_neq(r.lkey, 0);
		*handle = r.handle;
	}
	return error;
}

void make_objects(int fd, struct objects *o)
{
	struct request_create_qp q = { .type = QP_TYPE_RC,
				       .max_send_wr = 10,
				       .max_recv_wr = 10,
				       .max_send_sge = 2,
				       .max_recv_sge = 2,
				       .max_inline = 64 };
	struct reply_create_qp r;

	o->context = open_context(fd);
	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, o->context, &o->pd), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_CREATE_CHANNEL, o->context, &o->channel), 0);
	cr_assert_eq(create_cq(fd, o->context, o->channel, 100, &o->cq), 0);
	cr_assert_eq(reg_mr(fd, o->pd, ACCESS_LOCAL_WRITE, sizeof(memory), &o->mr), 0);
	q.pd = o->pd;
	q.send_cq = q.recv_cq = o->cq;
	cr_assert_eq(create_qp(fd, &q, &r), 0);
	cr_assert_eq(r.qpn & 15, 0, "lcore 0's");
	o->qp = r.handle;
}

/* ---- waiting ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void expect_counts(uint32_t clients, uint32_t qps, uint32_t cqs, uint32_t mrs)
{
	int64_t end = now_ms() + ENOUGH_MS;
	struct reply_statistics s;

	for (;;) {
		statistics(&s);
		if (s.clients == clients && s.qps == qps && s.cqs == cqs && s.mrs == mrs)
			return;
		if (now_ms() > end)
			break;
		poll(NULL, 0, 1);
	}
	cr_assert_fail("%u clients, %u queue pairs, %u CQs, %u regions; not %u, %u, %u, %u",
		       s.clients, s.qps, s.cqs, s.mrs, clients, qps, cqs, mrs);
}

/* The control thread opens files of its own now and then (addresses, device files), locked. */
int count_descriptors(void)
{
	struct engine *inside = (struct engine *)engine;
	int64_t end = now_ms() + ENOUGH_MS;
	DIR *d;
	int n = 0;

	/* A porter's end is seen a moment after its message. */
	pthread_mutex_lock(&inside->control_lock);
	while (porters_busy(inside) > 0 && now_ms() < end) {
		pthread_mutex_unlock(&inside->control_lock);
		poll(NULL, 0, 1);
		pthread_mutex_lock(&inside->control_lock);
	}
	d = opendir("/proc/self/fd");
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	pthread_mutex_unlock(&inside->control_lock);
	return n;
}

void expect_descriptors(int wanted)
{
	int64_t end = now_ms() + ENOUGH_MS;

	while (count_descriptors() != wanted && now_ms() < end)
		poll(NULL, 0, 1);
	cr_assert_eq(count_descriptors(), wanted, "%d descriptors, not %d", count_descriptors(),
		     wanted);
}

double seconds_of_control(void)
{
	struct engine *inside = (struct engine *)engine;
	struct timespec t;
	clockid_t clock;

	cr_assert_eq(pthread_getcpuclockid(inside->control->thread, &clock), 0);
	cr_assert_eq(clock_gettime(clock, &t), 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double seconds_without_processor(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ran, waited = 0;

	if (f != NULL && fscanf(f, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (f != NULL)
		fclose(f);
	return (double)waited / 1e9;
}

void as_nobody(int (*check)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("not root: there is no other user");
	cr_assert_eq(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(100);
		_exit(check());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned int)status);
}

void expect_serving(void)
{
	struct request_empty q;
	struct reply_device r;
	int fd = message_connect(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	cr_assert_str_eq(r.name, "uroce0");
	close(fd);
}

size_t request_size(enum command what)
{
	static const size_t size[] = {
#define X(NAME, request, reply) sizeof(struct request),
		COMMANDS(X)
#undef X
	};

	return size[what];
}

/* Sends octets with descriptors; returns the error of the reply, or -1: the connection ended. */
int throw_at(int fd, const void *octets, size_t length, const int *fds, uint32_t count,
	     struct command_reply *reply)
{
	char space[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	uint8_t answer[LIMIT_COMMAND_BYTES];
	struct iovec iov = { (void *)(uintptr_t)octets, length };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (count > 0) {
		struct cmsghdr *c;

		m.msg_control = space;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	cr_assert_eq(sendmsg(fd, &m, MSG_NOSIGNAL), (ssize_t)length);
	cr_assert_eq(poll(&p, 1, ENOUGH_MS), 1, "neither a reply nor the end came");
	n = recv(fd, answer, sizeof(answer), 0);
	if (n <= 0)
		return -1;
	cr_assert_geq(n, (ssize_t)sizeof(*reply));
	memcpy(reply, answer, sizeof(*reply));
	return reply->error;
}

pid_t process_with_number(pid_t (*make)(void), pid_t wanted)
{
	for (int tries = 0; tries < 500; tries++) {
		FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");
		bool set = f != NULL && fprintf(f, "%d", (int)wanted - 1) > 0;
		pid_t pid;

		if (f == NULL || fclose(f) != 0 || !set)
			return 0;
		pid = make();
		if (pid == wanted)
			return pid;
		process_end(pid);
	}
	return 0;
}

void process_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
