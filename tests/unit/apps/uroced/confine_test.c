/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Confines a process with threads created at different times, and each thread tries what must be
 * forbidden. The process is a child of the test, so the test itself is not affected.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uroced_confine.h"

#define THREADS 4

/* The results of one thread after all were confined: errnos, and its own status. */
struct attempt {
	int exec, packet_socket, mount, namespace, trace, write, take;
	unsigned long long permitted, effective, inheritable, no_new_privs, filter;
};

/* Shared with the child: threads from before it was confined, and one made afterwards. */
struct trial {
	struct attempt attempt[THREADS + 1];
	int error;
	char why[256];
};

struct starter {
	pthread_t thread;
	struct attempt *attempt;
	sem_t *go;
};

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static unsigned long long own_status(const char *name, int base)
{
	unsigned long long value = 0;
	size_t length = strlen(name);
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, length) == 0)
			value = strtoull(line + length, NULL, base);
	if (f != NULL)
		fclose(f);
	return value;
}

static void *try_all(void *arg)
{
	char *const argv[] = { (char *)"/bin/true", NULL };
	struct starter *s = arg;
	struct attempt *a = s->attempt;
	int fd;

	while (sem_wait(s->go) != 0)
		continue;
	a->exec = error_of(execve("/bin/true", argv, NULL));
	a->mount = error_of(mount("none", "/mnt", "tmpfs", 0, NULL));
	a->namespace = error_of(unshare(CLONE_NEWUSER));
	a->trace = error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	a->write = error_of(process_vm_writev(getpid(), NULL, 0, NULL, 0, 0));
	a->take = error_of(syscall(SYS_pidfd_getfd, -1, 0, 0));
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	a->packet_socket = error_of(fd);
	if (fd >= 0)
		close(fd);
	a->permitted = own_status("CapPrm:", 16);
	a->effective = own_status("CapEff:", 16);
	a->inheritable = own_status("CapInh:", 16);
	a->no_new_privs = own_status("NoNewPrivs:", 10);
	a->filter = own_status("Seccomp:", 10);
	return NULL;
}

static bool start(struct starter *s, struct attempt *a, sem_t *go)
{
	s->attempt = a;
	s->go = go;
	a->exec = -1;
	return pthread_create(&s->thread, NULL, try_all, s) == 0;
}

/* In a process with only these threads: Criterion's own threads block all signals. */
static int in_the_child(const struct confine_needs *needs, struct trial *t)
{
	struct starter starter[THREADS + 1];
	sem_t go;

	sem_init(&go, 0, 0);
	for (int i = 0; i < THREADS; i++)
		if (!start(&starter[i], &t->attempt[i], &go))
			return 1;
	t->error = confine(needs, t->why, sizeof(t->why));
	if (!start(&starter[THREADS], &t->attempt[THREADS], &go))
		return 2;
	for (int i = 0; i <= THREADS; i++)
		sem_post(&go);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(starter[i].thread, NULL);
	return 0;
}

/* Takes no signal before it may go, and then each that waits for it. */
static void *come_late(void *arg)
{
	struct starter *s = arg;
	sigset_t none;

	while (sem_wait(s->go) != 0)
		continue;
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	s->attempt->permitted = own_status("CapPrm:", 16);
	return NULL;
}

static int with_a_late_thread(const struct confine_needs *needs, struct trial *t)
{
	struct starter late = { .attempt = &t->attempt[0] };
	sigset_t all, before;
	sem_t go;

	late.go = &go;
	sem_init(&go, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&late.thread, NULL, come_late, &late) != 0)
		return 1;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->error = confine(needs, t->why, sizeof(t->why));
	sem_post(&go);
	pthread_join(late.thread, NULL);
	return 0;
}

static struct trial *in_a_child(int (*run)(const struct confine_needs *, struct trial *),
				const struct confine_needs *needs)
{
	struct trial *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("only root has capabilities to drop");
	cr_assert_neq(t, MAP_FAILED);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(run(needs, t));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the child ended with status %x", status);
	return t;
}

static struct trial *confine_and_try(const struct confine_needs *needs)
{
	struct trial *t = in_a_child(in_the_child, needs);

	cr_assert_eq(t->error, 0, "confine: %s", t->why);
	return t;
}

Test(confine, no_thread_can_execute_mount_or_trace)
{
	struct confine_needs needs = { .port = false };
	const struct trial *t = confine_and_try(&needs);

	for (int i = 0; i <= THREADS; i++) {
		const struct attempt *a = &t->attempt[i];

		cr_expect_eq(a->exec, EPERM, "thread %d executes a program", i);
		cr_expect_eq(a->mount, EPERM, "thread %d mounts", i);
		cr_expect_eq(a->namespace, EPERM, "thread %d makes a namespace", i);
		cr_expect_eq(a->trace, EPERM, "thread %d traces", i);
		cr_expect_eq(a->write, EPERM, "thread %d writes into processes", i);
		cr_expect_eq(a->take, EPERM, "thread %d takes descriptors of processes", i);
		cr_expect_eq(a->packet_socket, EPERM,
			     "thread %d opens a packet socket without a port", i);
	}
}

Test(confine, an_engine_with_a_port_keeps_network_access)
{
	struct confine_needs needs = { .port = true };
	const struct trial *t = confine_and_try(&needs);

	for (int i = 0; i <= THREADS; i++) {
		cr_expect_eq(t->attempt[i].exec, EPERM, "thread %d executes a program", i);
		cr_expect_eq(t->attempt[i].packet_socket, 0, "thread %d has lost the network: %s",
			     i, strerror(t->attempt[i].packet_socket));
	}
}

/* The kernel's report of each thread, besides what the threads can do. */
Test(confine, every_thread_keeps_the_same_capabilities)
{
	struct confine_needs needs = { .port = true };
	const uint64_t most = 1ull << CAP_SYS_PTRACE | 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW |
			      1ull << CAP_IPC_LOCK;
	const struct trial *t = confine_and_try(&needs);
	uint64_t kept = confine_capabilities(&needs);

	cr_expect_eq(kept & ~most, 0, "%lx stays", kept);
	for (int i = 0; i <= THREADS; i++) {
		const struct attempt *a = &t->attempt[i];

		cr_expect_eq(a->permitted, kept, "thread %d has %llx", i, a->permitted);
		cr_expect_eq(a->effective, kept, "thread %d has %llx", i, a->effective);
		cr_expect_eq(a->inheritable, 0, "thread %d passes on %llx", i, a->inheritable);
		cr_expect_eq(a->no_new_privs, 1, "thread %d may get new privileges", i);
		cr_expect_eq(a->filter, 2, "thread %d has no filter", i);
	}
}

/* ... and one that comes when confine() no longer waits for it: the signal does not end the process. */
Test(confine, a_late_thread_drops_its_capabilities_then)
{
	struct confine_needs needs = { .port = true };
	const struct trial *t = in_a_child(with_a_late_thread, &needs);

	cr_expect_eq(t->error, ETIMEDOUT, "confine: %d", t->error);
	cr_expect_str_eq(t->why, "1 threads keep their capabilities");
	cr_expect_eq(t->attempt[0].permitted, confine_capabilities(&needs), "the thread has %llx",
		     t->attempt[0].permitted);
}

/* A misspelt name would forbid nothing. */
Test(confine, the_forbidden_calls_exist)
{
	for (int i = 0; confine_forbidden[i] != NULL; i++)
		cr_expect_neq(seccomp_syscall_resolve_name(confine_forbidden[i]), __NR_SCMP_ERROR,
			      "%s is not a system call", confine_forbidden[i]);
}
