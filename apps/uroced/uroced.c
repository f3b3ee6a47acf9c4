/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroced: an engine for unmodified programs. It reads its options, opens the port, starts the
 * engine and its socket, and waits until it is told to end.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "base/bits.h"
#include "config/limits.h"
#include "control/statistics.h"
#include "cpus.h"
#include "drivers/ethdev/ethdev.h"
#include "engine/leave.h"
#include "engine/port.h"
#include "output.h"
#include "protocol/command.h"
#include "uroced_confine.h"
#include "uroced_console.h"
#include "uroced_drivers.h"
#include "uroced_eal.h"
#include "uroced_eal_options.h"
#include "uroced_log.h"
#include "uroced_notify.h"
#include "uroced_options.h"
#include "uroced_port.h"
#include "uroced_reload.h"
#include "uroced_runtime.h"
#include "uroced_telemetry.h"

#define MTU_OF_4096 4176u
#define PAUSE_MS    200

/* ---- this host ---- */

static unsigned long read_count(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long n = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static bool free_hugepages(void)
{
	return read_count("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") > 0 ||
	       read_count("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages") > 0;
}

/* Each client needs several descriptors. */
static void raise_descriptor_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

static int make_folder(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return errno;
	if (lstat(path, &st) != 0)
		return errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? 0 : EPERM;
}

/* The default socket: the system's for root, otherwise the user's own. */
static int default_socket(struct uroced_options *o)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char folder[96];
	int error;

	if (geteuid() == 0)
		snprintf(folder, sizeof(folder), "/run/uroce");
	else if (runtime != NULL && runtime[0] == '/' && strlen(runtime) < 80)
		snprintf(folder, sizeof(folder), "%s/uroce", runtime);
	else
		snprintf(folder, sizeof(folder), "/tmp/uroce-%u", geteuid());
	error = make_folder(folder, geteuid() == 0 ? 0755 : 0700);
	if (error != 0) {
		SAY(ERR, "%s: %s: choose another path with --socket", folder, strerror(error));
		return 1;
	}
	snprintf(o->socket, sizeof(o->socket), "%s/uroced.sock", folder);
	return 0;
}

/* ---- the engine ---- */

static int choose_lcores(struct uroced_options *o)
{
	unsigned int id;

	RTE_LCORE_FOREACH(id)
	{
		if (o->engine.lcores == LIMIT_LCORES) {
			SAY(ERR, "EAL has more than %u lcores: choose fewer with -l", LIMIT_LCORES);
			return OPTIONS_USAGE;
		}
		o->engine.lcore_ids[o->engine.lcores++] = id;
	}
	return 0;
}

/* ---- privileges ---- */

/*
 * The socket is given to its group later, without CAP_CHOWN, which only a member of the group may
 * do.
 */
static int join_group(int64_t group)
{
	int n = getgroups(0, NULL), error = 0;
	gid_t *groups;

	if (group < 0 || getegid() == (gid_t)group)
		return 0;
	groups = malloc(((size_t)n + 1) * sizeof(*groups));
	if (groups == NULL)
		return ENOMEM;
	n = getgroups(n, groups);
	for (int i = 0; i < n; i++)
		if (groups[i] == (gid_t)group)
			n = -1;
	if (n >= 0)
		groups[n] = (gid_t)group;
	/* EPERM: either already a member, or making the socket will fail and report it. */
	if (n >= 0 && setgroups((size_t)n + 1, groups) != 0 && errno != EPERM)
		error = errno;
	free(groups);
	return error;
}

/* A failure is only reported: an engine with too many privileges is better than none. */
static void drop_privileges(const struct uroced_options *o)
{
	struct confine_needs needs = { .port = o->engine.port != NULL,
				       .physical = rte_eal_iova_mode() == RTE_IOVA_PA };
	char why[256] = "";
	int error = join_group(o->engine.socket_gid);

	if (error == 0)
		error = confine(&needs, why, sizeof(why));
	if (error != 0)
		SAY(WARNING, "cannot drop privileges: %s (--confine off keeps them)",
		    why[0] != '\0' ? why : strerror(error));
}

static struct uroce_engine *start_engine(struct uroced_options *o)
{
	struct uroce_engine *e;
	char why[256];
	int error;

	o->engine.size = sizeof(o->engine);
	o->engine.socket_path = o->socket;
	e = uroce_create(&o->engine, why, sizeof(why));
	if (e == NULL) {
		say_option(o, "%s", why);
		uroce_port_close(o->engine.port);
		return NULL;
	}
	error = uroce_start(e);
	if (error == 0)
		return e;
	SAY(ERR, "cannot start the lcores: %s", strerror(error));
	uroce_destroy(e);
	return NULL;
}

/* The MTU at the start; 0: no port. The engine that serves changes the port's meanwhile. */
static uint32_t ethernet_mtu(const struct uroced_options *o)
{
	if (o->engine.port == NULL || o->engine.mtu != 0)
		return o->engine.mtu;
	return port_of_program(o->engine.port)->mtu;
}

static void announce(const struct uroce_engine *e, const struct uroced_options *o, uint32_t mtu)
{
	char text[512];

	uroce_describe(e, text, sizeof(text));
	if (mtu != 0 && mtu < MTU_OF_4096)
		SAY(WARNING,
		    "an Ethernet MTU of %u is too small for IB MTU 4096: raise it to %u (%s)", mtu,
		    MTU_OF_4096,
		    o->engine.mtu != 0 ? "--mtu, and the port's"
		    : o->netdev[0] != '\0'
			    ? "ip link set mtu"
			    : "--mtu; with framesz, bsize or mtu of a software port");
	printf("uroced: serving %s on %s\n", text, o->socket);
	fflush(stdout);
}

/*
 * Runs the commands of a file, then the terminal's. 0, or the status with which the engine is to
 * end.
 */
static int open_console(struct uroce_engine *e, struct uroced_options *o)
{
	char why[5120];
	int status = 0;

	if (!o->interactive && o->cmdline_file[0] == '\0')
		return 0;
	if (!console_open(e, o)) {
		SAY(ERR, "no memory for the prompt");
		return 1;
	}
	if (o->cmdline_file[0] != '\0')
		status = console_run_file(o->cmdline_file, why, sizeof(why));
	if (status != 0) {
		say_option(o, "%s", why);
		return status;
	}
	if (o->interactive && !console_wants_end() && !console_attach()) {
		SAY(ERR, "cannot read commands from standard input");
		return 1;
	}
	return 0;
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Says once that there is no link, after the time that a card may need for one. The engine serves
 * nevertheless: the link may come. *until: 0 once nothing is to be said any more.
 */
static void look_for_link(const struct uroced_options *o, time_t *until)
{
	const struct port *p;

	if (*until == 0)
		return;
	p = o->engine.port != NULL ? port_of_program(o->engine.port) : NULL;
	if (p == NULL || __atomic_load_n(&p->link_up, __ATOMIC_RELAXED)) {
		*until = 0;
	} else if (seconds() >= *until) {
		SAY(WARNING, "%s has no link: look at its cable and at the other end",
		    o->netdev[0] != '\0' ? o->netdev : o->port);
		*until = 0;
	}
}

/* How long the main thread may wait, in ms; -1: for ever. */
static int longest_wait(const struct uroced_options *o, bool looks_for_link)
{
	int watchdog = notify_period();

	if (o->engine.exit_when_idle == 0 && !looks_for_link)
		return watchdog;
	return watchdog >= 0 ? MIN_OF(watchdog, PAUSE_MS) : PAUSE_MS;
}

/* The control path answers, or this waits with it, and the service manager hears nothing. */
static void feed_watchdog(struct uroce_engine *e)
{
	struct reply_statistics s;

	if (notify_period() < 0)
		return;
	uroce_statistics(e, &s);
	notify("WATCHDOG=1");
}

/*
 * Reads the pending signals: SIGHUP reloads the options; false: another one, which ends the engine.
 */
static bool take_signal(struct uroce_engine *e, struct uroced_options *o, int signals)
{
	struct signalfd_siginfo s;

	if (read(signals, &s, sizeof(s)) != sizeof(s))
		return true;
	if (s.ssi_signo != SIGHUP)
		return false;
	notify("RELOADING=1");
	reload(e, o);
	notify("READY=1");
	return true;
}

/* Readable when the port's device is taken away; -1: it cannot be. */
static int removal(const struct uroced_options *o)
{
	return o->engine.port == NULL ? -1 : ethdev_removed_fd(port_of_program(o->engine.port));
}

/*
 * Waits for a signal, `quit`, the idle timeout, or the removal of the port's device. 1: the last,
 * after which programs hear that the device is gone, and the kernel waits until this process is.
 */
static int wait_for_end(struct uroce_engine *e, struct uroced_options *o, int signals)
{
	struct pollfd p[3] = { { .fd = signals, .events = POLLIN },
			       { .fd = o->interactive ? STDIN_FILENO : -1, .events = POLLIN },
			       { .fd = removal(o), .events = POLLIN } };
	time_t link_until = seconds() + LIMIT_LINK_WAIT_S;

	while (!console_wants_end() && !uroce_idle_expired(e)) {
		look_for_link(o, &link_until);
		if (poll(p, 3, longest_wait(o, link_until != 0)) < 0 && errno != EINTR)
			break;
		feed_watchdog(e);
		if (p[2].revents != 0) {
			SAY(ERR, "%s was removed from this machine: ending", o->port);
			return 1;
		}
		if (p[0].revents != 0 && !take_signal(e, o, signals))
			break;
		if (p[1].revents != 0 && !console_input())
			break;
	}
	return 0;
}

/* A terminal that goes away ends an engine without a file to read again. */
static int block_signals(bool reloads)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (reloads)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(struct uroced_options *o, int signals, const cpu_set_t *cpus)
{
	struct uroce_engine *e;
	int status = choose_lcores(o);
	uint32_t mtu;

	/* The main and the control thread do not poll, so they may run on every allowed CPU. */
	pthread_setaffinity_np(pthread_self(), sizeof(*cpus), cpus);
	if (status == 0 && o->socket[0] == '\0')
		status = default_socket(o);
	if (status == 0)
		status = uroced_open_port(o, o->engine.lcores);
	if (status != 0)
		return status;
	if (!o->unconfined)
		drop_privileges(o);
	mtu = ethernet_mtu(o);
	e = start_engine(o);
	if (e == NULL)
		return 1;
	telemetry_open(e, o);
	announce(e, o, mtu);
	status = open_console(e, o);
	if (status == 0) {
		notify("READY=1");
		status = wait_for_end(e, o, signals);
	}
	notify("STOPPING=1");
	console_close();
	telemetry_close();
	engine_leave_buffers(e);
	uroce_destroy(e);
	return status;
}

static int help(void)
{
	fputs(uroced_usage, stdout);
	return output_status("uroced");
}

int main(int argc, char **argv)
{
	struct eal_facts facts = { .hugepages = free_hugepages(), .pid = getpid() };
	struct uroced_options options = { .config = "" };
	struct eal_arguments eal;
	cpu_set_t cpus;
	char why[512];
	int own, status, signals;

	output_keep_closed();
	log_open(false);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	cpus_write(&cpus, facts.cpus, sizeof(facts.cpus));
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help();
	status = eal_arguments_make(&eal, argc, argv, &facts, &own, why, sizeof(why));
	if (status == 0)
		status = eal_options_check(&eal, why, sizeof(why));
	if (status == 0)
		status = uroced_options_parse(&options, argc - own, argv + own, why, sizeof(why));
	if (status == OPTIONS_HELP)
		return help();
	if (status == OPTIONS_OK && options.cmdline_file[0] != '\0')
		status = console_check_file(options.cmdline_file, why, sizeof(why));
	if (status == OPTIONS_OK)
		status = uroced_check_devices(&eal, &options, why, sizeof(why));
	if (status != OPTIONS_OK) {
		say_option(&options, "%s", why);
		return status;
	}
	raise_descriptor_limit();
	notify_open();
	reload_begin(&options, argc - own, argv + own);
	signals = block_signals(options.config[0] != '\0');
	runtime_folder_remove_at_exit();
	if (eal.own_prefix)
		runtime_folder_make(facts.pid);
	drivers_choose(&eal, options.port);
	status = start_eal(&eal);
	runtime_folder_hold(rte_eal_get_runtime_dir());
	if (status != 0)
		return status;
	start_eal_say(&eal, uroced_port_is_missing(&options));
	if (eal.fell_back)
		SAY(NOTICE, "no free hugepages: using ordinary memory (--no-huge -m 512)");
	runtime_folder_remove_dead(rte_eal_get_runtime_dir());
	log_choose(options.log);
	status = run(&options, signals, &cpus);
	end_eal();
	return status;
}
