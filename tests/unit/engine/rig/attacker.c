/* SPDX-License-Identifier: BSD-3-Clause */
#include "attacker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"

#define NOBODY	 65534
#define ON_WAY	 32u
#define TAKES_MS 60000 /* only bounds a hang: thousands of commands on a busy machine */

static void be_nobody(int go, int said, void (*take)(struct taken *t), bool (*last)(void))
{
	struct taken t = { 0 };
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* its memory is its own to show again */
	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(1);
	take(&t);
	if (write(said, &t, sizeof(t)) != sizeof(t) || read(go, &end, 1) < 0)
		_exit(1);
	_exit(last == NULL || last() ? 0 : 1);
}

void attack_begin(struct attacker *a, void (*take)(struct taken *t))
{
	attack_begin_with(a, take, NULL);
}

void attack_begin_with(struct attacker *a, void (*take)(struct taken *t), bool (*last)(void))
{
	int go[2], said[2];

	if (geteuid() != 0)
		cr_skip_test("another user is wanted");
	cr_assert_eq(chmod(path, 0666), 0);
	cr_assert_eq(pipe2(go, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(said, O_CLOEXEC), 0);
	a->pid = fork();
	cr_assert_geq(a->pid, 0);
	if (a->pid == 0) {
		close(go[1]);
		be_nobody(go[0], said[1], take, last);
	}
	close(go[0]);
	close(said[1]);
	a->go = go[1];
	a->said = said[0];
}

bool attack_is_over(const struct attacker *a, int within_ms)
{
	struct pollfd p = { .fd = a->said, .events = POLLIN };

	return poll(&p, 1, within_ms) != 0;
}

struct taken attack_result(struct attacker *a)
{
	struct pollfd p = { .fd = a->said, .events = POLLIN };
	struct taken t;

	cr_assert_eq(poll(&p, 1, TAKES_MS), 1, "the attacker says nothing");
	cr_assert_eq(read(a->said, &t, sizeof(t)), (ssize_t)sizeof(t), "the attacker ended");
	return t;
}

void attack_let_go(struct attacker *a)
{
	close(a->go);
	a->go = -1;
}

void attack_end(struct attacker *a)
{
	int status;

	if (a->go >= 0)
		attack_let_go(a);
	close(a->said);
	cr_assert_eq(waitpid(a->pid, &status, 0), a->pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", status);
}

/* Descriptors beside it are closed by the kernel. False: the connection ended. */
static bool take_reply(int fd, struct taken *t)
{
	uint8_t octets[LIMIT_COMMAND_BYTES];
	const struct command_reply *r = (const struct command_reply *)(const void *)octets;

	if (recv(fd, octets, sizeof(octets), 0) < (ssize_t)sizeof(*r)) {
		t->error = ENODEV;
		return false;
	}
	if (r->error == 0) {
		t->n++;
	} else if (t->error == 0) {
		t->error = r->error;
		memcpy(t->why, r->why, sizeof(t->why));
	}
	return true;
}

void take_many(int fd, enum command what, struct command_request *q, size_t q_size, uint64_t most,
	       struct taken *t)
{
	uint64_t sent = 0, answered = 0;

	t->error = 0;
	q->magic = COMMAND_MAGIC;
	q->version = COMMAND_VERSION;
	q->command = (uint16_t)what;
	q->length = (uint32_t)q_size;
	for (;;) {
		while (sent < most && sent - answered < ON_WAY && t->error == 0) {
			q->sequence = (uint32_t)++sent;
			if (send(fd, q, q_size, MSG_NOSIGNAL) != (ssize_t)q_size)
				t->error = errno;
		}
		if (sent == answered || !take_reply(fd, t))
			return;
		answered++;
	}
}

static int try_hello(struct taken *t)
{
	struct request_hello q = { .pid = (uint32_t)getpid(), .program = "attacker" };
	struct carrier_descriptors in = { .count = 1 }, out = { 0 };
	int fd = message_connect(path);
	struct reply_hello r;

	if (fd < 0) {
		t->error = errno;
		return -1;
	}
	in.fd[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	message_prove(q.proof);
	t->error = ask(fd, COMMAND_HELLO, &q.h, sizeof(q), &r.h, sizeof(r), &in, &out);
	close(in.fd[0]);
	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
	if (t->error == 0)
		return fd;
	memcpy(t->why, r.h.why, sizeof(t->why));
	close(fd);
	return -1;
}

static int try_context(int fd, struct taken *t, uint32_t *context)
{
	struct carrier_descriptors out = { 0 };
	struct request_empty q = { 0 };
	struct reply_context r;

	t->error = ask(fd, COMMAND_OPEN_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);
	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
	*context = r.handle;
	if (t->error != 0)
		memcpy(t->why, r.h.why, sizeof(t->why));
	return t->error;
}

int try_attach(struct taken *t, uint32_t *context)
{
	int fd = try_hello(t);

	if (fd < 0 || try_context(fd, t, context) == 0)
		return fd;
	close(fd);
	return -1;
}
