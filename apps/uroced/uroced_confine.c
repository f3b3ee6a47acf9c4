/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities belong to threads, and EAL has created some threads before the port is open. libcap
 * and capset(2) change only the calling thread. libpsx changes only threads whose creation it saw,
 * which does not include DPDK's. So each thread gets a signal and drops its capabilities in the
 * handler. The kernel applies a seccomp filter and no_new_privs to all threads by itself (TSYNC).
 */
#include "uroced_confine.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define ROUNDS 50u /* the sanitizer delays signals, and one of its threads takes none */
#else
#define ROUNDS 2000u /* milliseconds: a thread may wait long for a CPU */
#endif
#define ROUND_NS 1000000

/*
 * System calls that start programs, change the host or look into other processes. No engine makes
 * them.
 */
const char *const confine_forbidden[] = { "execve",
					  "execveat",
					  "ptrace",
					  "process_vm_writev",
					  "process_madvise",
					  "pidfd_getfd",
					  "kcmp",
					  "io_uring_setup",
					  "io_uring_enter",
					  "io_uring_register",
					  "mount",
					  "umount2",
					  "move_mount",
					  "open_tree",
					  "fsopen",
					  "fsmount",
					  "fspick",
					  "fsconfig",
					  "mount_setattr",
					  "pivot_root",
					  "chroot",
					  "setns",
					  "unshare",
					  "init_module",
					  "finit_module",
					  "delete_module",
					  "kexec_load",
					  "kexec_file_load",
					  "reboot",
					  "swapon",
					  "swapoff",
					  "acct",
					  "quotactl",
					  "sethostname",
					  "setdomainname",
					  "settimeofday",
					  "clock_settime",
					  "clock_adjtime",
					  "adjtimex",
					  "syslog",
					  "vhangup",
					  "personality",
					  "add_key",
					  "request_key",
					  "keyctl",
					  "open_by_handle_at",
					  "perf_event_open",
					  "bpf",
					  "fanotify_init",
					  "mknod",
					  "mknodat",
					  "setuid",
					  "setgid",
					  "setreuid",
					  "setregid",
					  "setresuid",
					  "setresgid",
					  "setfsuid",
					  "setfsgid",
					  "setgroups",
					  NULL };

/* ---- capabilities ---- */

static uint64_t bit(unsigned int capability)
{
	return UINT64_C(1) << capability;
}

static struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

static uint64_t permitted(void)
{
	struct __user_cap_data_struct data[2] = { 0 };
	struct __user_cap_header_struct h = header;

	if (syscall(SYS_capget, &h, data) != 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

uint64_t confine_capabilities(const struct confine_needs *needs)
{
	/* The engine accesses the memory of programs with more privileges than its own. */
	uint64_t kept = bit(CAP_SYS_PTRACE);

	/*
	 * Needed for sockets of the interface, neighbours, multicast groups, and pinned memory of
	 * devices.
	 */
	if (needs->port)
		kept |= bit(CAP_NET_ADMIN) | bit(CAP_NET_RAW) | bit(CAP_IPC_LOCK);
	if (needs->physical)
		kept |= bit(CAP_SYS_ADMIN) | bit(CAP_SYS_RAWIO);
	return kept & permitted();
}

static uint64_t kept_here; /* for the handler; written before any signal is sent */

static void drop_own(void)
{
	struct __user_cap_header_struct h = header;
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)kept_here, .permitted = (uint32_t)kept_here },
		{ .effective = (uint32_t)(kept_here >> 32),
		  .permitted = (uint32_t)(kept_here >> 32) },
	};

	/* Not libc's wrapper: this runs in a signal handler. The sender checks the result. */
	syscall(SYS_capset, &h, data);
}

static void on_signal(int number)
{
	int error = errno;

	drop_own();
	errno = error;
}

/* The thread's permitted set; empty if the thread has ended. */
static uint64_t permitted_of(const char *tid)
{
	unsigned long long set = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "CapPrm: %llx", &set) == 1)
			break;
	fclose(f);
	return set;
}

/*
 * Signals every thread that still has more capabilities. Returns how many there are, or -1 with
 * errno.
 */
static int signal_threads(int number)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *d;
	int n = 0;

	if (tasks == NULL)
		return -1;
	while ((d = readdir(tasks)) != NULL) {
		if (d->d_name[0] == '.' || (permitted_of(d->d_name) & ~kept_here) == 0)
			continue;
		syscall(SYS_tgkill, getpid(), atoi(d->d_name), number);
		n++;
	}
	closedir(tasks);
	return n;
}

static int drop_capabilities(const struct confine_needs *needs, char *why, size_t why_size)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	struct sigaction now = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;
	int number = SIGRTMIN, left = 1;

	kept_here = confine_capabilities(needs);
	drop_own();
	if (sigaction(number, &now, &before) != 0)
		return errno;
	for (uint32_t i = 0; i < ROUNDS && left > 0; i++) {
		left = signal_threads(number);
		if (left > 0)
			nanosleep(&pause, NULL);
	}
	if (left == 0) {
		/*
		 * A signal may still be pending for a thread that dropped its capabilities before
		 * it came.
		 */
		if (before.sa_handler == SIG_DFL)
			before.sa_handler = SIG_IGN;
		sigaction(number, &before, NULL);
		return 0;
	}
	/* A thread that takes its signal later drops them then. The default would end the process. */
	snprintf(why, why_size, "%d threads keep their capabilities", left);
	return left < 0 ? errno : ETIMEDOUT;
}

/* ---- system calls ---- */

static int forbid_all(scmp_filter_ctx filter)
{
	int error = 0;

	for (uint32_t i = 0; confine_forbidden[i] != NULL && error == 0; i++) {
		int number = seccomp_syscall_resolve_name(confine_forbidden[i]);

		/*
		 * Unknown to the library or to this architecture: the call cannot be named, so skip
		 * it.
		 */
		if (number != __NR_SCMP_ERROR)
			error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
	}
	return error;
}

static const unsigned int namespaces[] = { CLONE_NEWNS,	   CLONE_NEWUTS, CLONE_NEWIPC,
					   CLONE_NEWUSER,  CLONE_NEWPID, CLONE_NEWNET,
					   CLONE_NEWCGROUP };

/*
 * Threads are created by clone(2). clone3(2) hides its flags from filters; libc falls back to
 * clone(2).
 */
static int forbid_namespaces(scmp_filter_ctx filter)
{
	int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]) && error == 0; i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					 SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
	return error;
}

static int filter_calls(char *why, size_t why_size)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error;

	if (filter == NULL)
		return ENOMEM;
	error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (error == 0)
		error = forbid_all(filter);
	if (error == 0)
		error = forbid_namespaces(filter);
	if (error == 0)
		error = seccomp_load(filter);
	seccomp_release(filter);
	if (error != 0)
		snprintf(why, why_size, "the kernel refuses the seccomp filter: %s",
			 strerror(-error));
	return -error;
}

int confine(const struct confine_needs *needs, char *why, size_t why_size)
{
	int error = drop_capabilities(needs, why, why_size), second = 0;

	/* The filter requires it, and the kernel applies both to all threads at once. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		second = errno;
	if (second == 0)
		second = filter_calls(why, why_size);
	if (error == 0)
		error = second;
	if (error != 0 && why[0] == '\0')
		snprintf(why, why_size, "%s", strerror(error));
	return error;
}
