/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/peer_atomic.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

/*
 * A client process. It opens its /proc/self/mem, sends the descriptor and waits for orders. The
 * test data are at the same address in both processes, because they were mapped before the fork.
 */
struct client_process {
	pid_t pid;
	int socket;
	int mem_fd;
	uint8_t *data; /* 3 private pages, the last one unmapped in the client */
};

static void send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, octet = 0;
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	m.msg_control = control;
	m.msg_controllen = sizeof(control);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(socket, &m, 0) != 1)
		_exit(3);
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], octet;
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int fd;

	m.msg_control = control;
	m.msg_controllen = sizeof(control);
	cr_assert_eq(poll(&p, 1, 10000), 1, "the client sent no descriptor");
	cr_assert_eq(recvmsg(socket, &m, MSG_CMSG_CLOEXEC), 1);
	cr_assert_not_null(CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/*
 * Orders: 'c' answer whether the third octet of the first page is what was written; 'e' exec cat.
 */
static void client_main(int socket, uint8_t *data, uid_t uid)
{
	char word;

	if (uid != 0 && (setgid(uid) < 0 || setuid(uid) < 0))
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1);
	munmap(data + 2 * PAGE, PAGE);
	memset(data, 0x11, 2 * PAGE);
	send_fd(socket, open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	while (read(socket, &word, 1) == 1) {
		if (word == 'c' && write(socket, data + 2, 1) != 1)
			break;
		if (word == 'e') {
			dup2(socket, 0);
			dup2(socket, 1);
			execl("/bin/cat", "cat", (char *)NULL);
			_exit(4);
		}
	}
	_exit(0);
}

static struct client_process new_client(uid_t uid)
{
	struct client_process c;
	int ends[2];

	c.data = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(c.data, MAP_FAILED);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	c.pid = fork();
	cr_assert_geq(c.pid, 0);
	if (c.pid == 0) {
		close(ends[0]);
		client_main(ends[1], c.data, uid);
	}
	close(ends[1]);
	c.socket = ends[0];
	c.mem_fd = receive_fd(c.socket);
	return c;
}

static void end_client(struct client_process *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->socket);
	munmap(c->data, 3 * PAGE);
}

static uint8_t ask(struct client_process *c)
{
	struct pollfd p = { .fd = c->socket, .events = POLLIN };
	uint8_t octet;

	cr_assert_eq(write(c->socket, "c", 1), 1);
	cr_assert_eq(poll(&p, 1, 10000), 1, "the client does not answer");
	cr_assert_eq(read(c->socket, &octet, 1), 1);
	return octet;
}

static bool copy(struct peer_memory *m, void *peer, void *local, uint32_t n, bool to_peer)
{
	struct peer_copy c = {
		.peer_address = (uintptr_t)peer, .local = local, .length = n, .to_peer = to_peer
	};

	peer_memory_copy(m, &c, 1);
	return c.ok;
}

static void exchange(uid_t uid, bool by_pid)
{
	struct client_process c = new_client(uid);
	struct peer_memory m;
	uint8_t octets[16] = { 0 };

	cr_assert_eq(peer_memory_open(&m, c.mem_fd, by_pid ? c.pid : 0, geteuid()), 0);
	cr_assert_eq(m.pid != 0, by_pid);
	cr_assert(copy(&m, c.data + PAGE - 8, octets, 16, false));
	cr_assert_eq(octets[15], 0x11);
	octets[2] = 0x77;
	cr_assert(copy(&m, c.data, octets, 16, true));
	cr_assert_eq(ask(&c), 0x77);
	peer_memory_close(&m);
	end_client(&c);
}

Test(peer, octets_are_copied_both_ways)
{
	exchange(0, false);
	exchange(0, true);
}

Test(peer, a_client_of_another_user_is_reached_through_its_descriptor)
{
	struct passwd *nobody = getpwnam("nobody");

	if (geteuid() != 0)
		cr_skip_test("only root can be two users");
	cr_assert_not_null(nobody);
	exchange(nobody->pw_uid, false);
}

/*
 * The pid of another user's client may belong to another process by now: the descriptor decides
 * what is read. hostile H-97: memory of another program.
 */
Test(peer, memory_of_another_user_is_never_read_by_pid)
{
	struct client_process mine = new_client(0), other = new_client(0);
	struct peer_copy batch[64];
	uint8_t octets[64][8];
	struct peer_memory m;

	memset(octets, 0, sizeof(octets));
	cr_assert_eq(peer_memory_open(&m, mine.mem_fd, other.pid, geteuid() + 1), 0);
	cr_assert(copy(&m, mine.data, (uint8_t[8]){ 0x22 }, 8, true));
	for (uint32_t i = 0; i < 64; i++)
		batch[i] = (struct peer_copy){ .peer_address = (uintptr_t)mine.data,
					       .local = octets[i],
					       .length = 8 };
	peer_memory_copy(&m, batch, 64);
	for (uint32_t i = 0; i < 64; i++) {
		cr_expect(batch[i].ok);
		cr_expect_eq(octets[i][0], 0x22, "octet %x of another program", octets[i][0]);
	}
	peer_memory_close(&m);
	end_client(&mine);
	end_client(&other);
}

/* hostile H-97: memory of another program. */
Test(peer, other_descriptors_are_refused)
{
	static const char *const paths[] = { "/proc/self/maps", "/dev/null", "/proc/self/status",
					     "/tmp" };
	struct peer_memory m;
	int fd;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		cr_assert_geq(fd, 0);
		cr_assert_eq(peer_memory_open(&m, fd, getpid(), getuid()), EBADF, "%s", paths[i]);
		close(fd);
	}
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(peer_memory_open(&m, fd, getpid(), getuid()), EBADF, "not for writing");
	close(fd);
	cr_assert_eq(peer_memory_open(&m, -1, getpid(), getuid()), EBADF);
}

/* Good and bad addresses in one batch: each copy has its own result, in both directions. */
static void mixed_batch(bool by_pid, bool to_peer)
{
	struct client_process c = new_client(0);
	struct peer_memory m;
	struct peer_copy batch[150];
	uint8_t octets[150][8];

	memset(octets, 0, sizeof(octets));
	cr_assert_eq(peer_memory_open(&m, c.mem_fd, by_pid ? c.pid : 0, geteuid()), 0);
	for (uint32_t i = 0; i < 150; i++) {
		batch[i] = (struct peer_copy){ .peer_address = (uintptr_t)c.data + 8 * i,
					       .local = octets[i],
					       .length = 8,
					       .to_peer = to_peer,
					       .ok = i % 2 != 0 };
		if (i % 7 == 3)
			batch[i].peer_address = (uintptr_t)c.data + 2 * PAGE - 4; /* half of it */
		if (i % 7 == 5)
			batch[i].peer_address = i % 2 ? UINT64_MAX - 3 : UINT64_C(1) << 63;
	}
	peer_memory_copy(&m, batch, 150);
	for (uint32_t i = 0; i < 150; i++) {
		bool good = i % 7 != 3 && i % 7 != 5;

		cr_assert_eq(batch[i].ok, good, "copy %u", i);
		if (good && !to_peer)
			cr_assert_eq(octets[i][7], 0x11);
	}
	peer_memory_close(&m);
	end_client(&c);
}

/* hostile H-101: memory that goes away. */
Test(peer, only_the_copy_with_a_bad_address_fails)
{
	mixed_batch(false, false);
	mixed_batch(false, true);
	mixed_batch(true, false);
	mixed_batch(true, true);
}

/* Later copies of a chain would be visible before the one that failed. */
Test(peer, nothing_of_a_chain_is_written_behind_a_failure)
{
	struct client_process c = new_client(0);
	uint8_t octets[8] = "\x22\x22\x22\x22\x22\x22\x22";
	struct peer_copy batch[3];
	struct peer_memory m;

	cr_assert_eq(peer_memory_open(&m, c.mem_fd, 0, geteuid()), 0);
	for (uint32_t i = 0; i < 3; i++)
		batch[i] = (struct peer_copy){ .peer_address = (uintptr_t)c.data,
					       .local = octets,
					       .length = 8,
					       .to_peer = true,
					       .chain = 5 };
	batch[0].peer_address = (uintptr_t)c.data + 2 * PAGE; /* nothing is there */
	batch[2].peer_address = (uintptr_t)c.data + PAGE;
	batch[2].chain = 6;
	peer_memory_copy(&m, batch, 3);
	cr_assert_not(batch[0].ok);
	cr_assert_not(batch[1].ok, "a copy of the chain behind the failure is good");
	cr_assert(batch[2].ok, "a copy of another chain fails");
	cr_assert_eq(ask(&c), 0x11, "a copy of the chain behind the failure was made");
	peer_memory_close(&m);
	end_client(&c);
}

/* A pid proves nothing: the program must know the octets at its own AT_RANDOM. */
Test(peer, a_program_is_found_by_its_own_proof_alone)
{
	struct client_process c = new_client(0);
	struct peer_proof proof;
	uint64_t at;
	int fd;

	/* a fork has its parent's AT_RANDOM */
	memcpy(&proof, (const void *)getauxval(AT_RANDOM), sizeof(proof));
	cr_assert_eq(peer_memory_find(c.pid, &proof, &fd, &at), 0);
	cr_assert_eq(at, getauxval(AT_RANDOM));
	close(fd);
	((uint8_t *)&proof)[sizeof(proof) - 1] ^= 1;
	cr_assert_eq(peer_memory_find(c.pid, &proof, &fd, &at), EPERM);
	cr_assert_eq(fd, -1);
	end_client(&c);
}

/* An address that is certainly mapped in this program. */
static uint64_t first_mapping(pid_t pid)
{
	char path[64], line[256];
	unsigned long start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	cr_assert_not_null(fgets(line, sizeof(line), f));
	cr_assert_eq(sscanf(line, "%lx-", &start), 1);
	fclose(f);
	return start;
}

/*
 * After an exec the pid is that of another program: nothing is read from it or written to it.
 * hostile H-101: memory that goes away.
 */
Test(peer, an_address_space_that_is_gone_returns_errors)
{
	struct client_process c = new_client(0);
	struct pollfd p = { .fd = c.socket, .events = POLLIN };
	struct peer_copy batch[8];
	struct peer_memory m;
	uint64_t octets[8];
	char echo[4];

	cr_assert_eq(peer_memory_open(&m, c.mem_fd, c.pid, geteuid()), 0);
	cr_assert(peer_memory_alive(&m));
	cr_assert_eq(write(c.socket, "e", 1), 1);
	cr_assert_eq(write(c.socket, "cat", 3), 3);
	cr_assert_eq(poll(&p, 1, 10000), 1, "cat does not run");
	cr_assert_eq(read(c.socket, echo, 3), 3);
	cr_assert_not(peer_memory_alive(&m));
	for (uint32_t i = 0; i < 8; i++)
		batch[i] = (struct peer_copy){ .peer_address = first_mapping(c.pid) + 8 * i,
					       .local = &octets[i],
					       .length = 8,
					       .ok = true };
	peer_memory_copy(&m, batch, 8);
	for (uint32_t i = 0; i < 8; i++) {
		cr_assert_not(batch[i].ok, "read from the new program");
		batch[i].to_peer = true;
	}
	peer_memory_copy(&m, batch, 8);
	for (uint32_t i = 0; i < 8; i++)
		cr_assert_not(batch[i].ok);
	peer_memory_close(&m);
	end_client(&c);
}

#define ADDS 5000u

struct adder {
	struct peer_memory *m;
	uint64_t address;
};

static nanotime monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

static int add_one(const struct peer_memory *m, uint64_t address, uint64_t *original)
{
	struct peer_atomic a = { .value = 1 };
	int error;

	while ((error = peer_memory_atomic(m, address, &a, monotonic())) == EBUSY)
		;
	*original = a.original;
	return error;
}

static void *add(void *arg)
{
	struct adder *a = arg;
	uint64_t original;

	for (uint32_t i = 0; i < ADDS; i++)
		cr_assert_eq(add_one(a->m, a->address, &original), 0);
	return NULL;
}

static uint64_t swap(const struct peer_memory *m, uint64_t address, uint64_t compare,
		     uint64_t value)
{
	struct peer_atomic a = { .compare_swap = true, .compare = compare, .value = value };

	cr_assert_eq(peer_memory_atomic(m, address, &a, 0), 0);
	return a.original;
}

Test(peer, atomics_of_several_lcores_lose_nothing, .timeout = 100)
{
	struct client_process c = new_client(0);
	struct peer_memory m;
	pthread_t thread[3];
	struct adder a = { &m, (uintptr_t)c.data + 64 };
	uint64_t original;

	cr_assert_eq(peer_memory_open(&m, c.mem_fd, 0, 0), 0);
	cr_assert_eq(swap(&m, a.address, 0x1111111111111111, 0), 0x1111111111111111);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, add, &a);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(swap(&m, a.address, 1, 99), 3 * ADDS);
	cr_assert_eq(add_one(&m, a.address, &original), 0);
	cr_assert_eq(original, 3 * ADDS, "a comparison that fails stores nothing");
	cr_assert_eq(add_one(&m, 8, &original), EFAULT);
	cr_assert_eq(add_one(&m, 8, &original), EFAULT, "unlocked");
	peer_memory_close(&m);
	end_client(&c);
}
