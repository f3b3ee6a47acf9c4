/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program without privilege registers memory while it has one thread, so that it is promoted, and
 * then forks with several. The fork takes the memory back: the child has the contents of one moment,
 * no call of a thread fails, and regions and windows do not change. Runs as root with
 * an engine at $UROCE_SOCKET that every program may connect to; each round is a process of nobody.
 */
#include <errno.h>
#include <ftw.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/plain.h"

#define NOBODY	     65534
#define PAGE	     ((size_t)4096)
#define OCTETS	     ((size_t)4 << 20)
#define PAIRS	     2
#define WAIT_SECONDS 60
#define LATE	     7 /* seconds; the engine lets commands wait for copies for longer */
#define NOT_PROMOTED 77
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* Offsets in the memory. The rest is not touched before the end. */
#define FIRST_AT  ((size_t)0)
#define ATOMIC_AT (OCTETS / 4)
#define WRITE_AT  (OCTETS / 2)
#define WINDOW_AT (OCTETS / 2 + 8 * PAGE)
#define SECOND_AT (OCTETS - PAGE)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq[PAIRS];
static struct ibv_qp *qp[PAIRS][2];
static union ibv_gid gid;
static uint8_t *memory;
static struct ibv_mr *mr, *source_mr;
static uint64_t source[PAIRS];
static uint32_t stop;
static uint64_t rounds[2], added[PAIRS];

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED) != 0;
}

/* ---- queue pairs of this process ---- */

static void open_pair(int i)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	cq[i] = ibv_create_cq(context, 16, NULL, NULL, 0);
	need(cq[i] != NULL, "ibv_create_cq");
	init.send_cq = init.recv_cq = cq[i];
	for (int k = 0; k < 2; k++) {
		qp[i][k] = ibv_create_qp(pd, &init);
		need(qp[i][k] != NULL, "ibv_create_qp");
	}
	for (int k = 0; k < 2; k++)
		connect_plain(qp[i][k], &gid, qp[i][1 - k]->qp_num, ACCESS, IBV_MTU_1024);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list != NULL && list[0] != NULL, "a device");
	context = ibv_open_device(list[0]);
	need(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	need(pd != NULL && ibv_query_gid(context, 1, 1, &gid) == 0, "PD and GID");
	for (int i = 0; i < PAIRS; i++)
		open_pair(i);
	source_mr = ibv_reg_mr(pd, source, sizeof(source), IBV_ACCESS_LOCAL_WRITE);
	need(source_mr != NULL, "ibv_reg_mr");
}

static void complete(int pair, struct ibv_send_wr *wr, const char *what)
{
	time_t end = time(NULL) + WAIT_SECONDS;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	need(ibv_post_send(qp[pair][0], wr, &bad) == 0, what);
	while (ibv_poll_cq(cq[pair], 1, &wc) == 0)
		need(time(NULL) < end, "no completion came");
	if (wc.status != IBV_WC_SUCCESS)
		printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
	need(wc.status == IBV_WC_SUCCESS, what);
}

static struct ibv_send_wr request(int pair, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ (uintptr_t)&source[pair], 8, source_mr->lkey };
	return (struct ibv_send_wr){ .sg_list = sge, .num_sge = 1, .opcode = opcode };
}

/* Writes the number into the memory there and waits until it is written. */
static void write_there(int pair, uint64_t number, size_t at, uint32_t rkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(pair, IBV_WR_RDMA_WRITE, &sge);

	source[pair] = number;
	wr.wr.rdma.remote_addr = (uintptr_t)memory + at;
	wr.wr.rdma.rkey = rkey;
	complete(pair, &wr, "an RDMA WRITE");
	need(*(volatile uint64_t *)(void *)(memory + at) == number, "it is written, but not there");
}

/* ---- threads ---- */

static void *count_up(void *unused)
{
	volatile uint64_t *first = (void *)(memory + FIRST_AT);
	volatile uint64_t *second = (void *)(memory + SECOND_AT);

	for (uint64_t i = 1; !stopped(); i++) {
		__atomic_store_n(first, i, __ATOMIC_RELEASE);
		__atomic_store_n(second, i, __ATOMIC_RELEASE);
		__atomic_store_n(&rounds[0], i, __ATOMIC_RELEASE);
	}
	return unused;
}

/* The same by the kernel. */
static void *count_up_by_reads(void *unused)
{
	size_t at[2] = { FIRST_AT + 64, SECOND_AT + 64 };
	int ends[2];

	need(pipe(ends) == 0, "pipe");
	for (uint64_t i = 1; !stopped(); i++) {
		for (int w = 0; w < 2; w++)
			need(write(ends[1], &i, sizeof(i)) == sizeof(i) &&
				     read(ends[0], memory + at[w], sizeof(i)) == sizeof(i),
			     "read(2) into the memory");
		__atomic_store_n(&rounds[1], i, __ATOMIC_RELEASE);
	}
	return unused;
}

/* From both pairs, which several lcores may serve: no addition may be lost. */
static void *add_up(void *argument)
{
	int pair = *(const int *)argument;
	struct ibv_sge sge;

	while (!stopped()) {
		struct ibv_send_wr wr = request(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);

		wr.wr.atomic.remote_addr = (uintptr_t)memory + ATOMIC_AT;
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = 1;
		complete(pair, &wr, "an atomic");
		write_there(pair, ++added[pair], WRITE_AT + (size_t)pair * 64, mr->rkey);
	}
	return NULL;
}

static void await_rounds(uint64_t more)
{
	const struct timespec nap = { .tv_nsec = 500000 };
	time_t end = time(NULL) + WAIT_SECONDS;

	for (int i = 0; i < 2; i++) {
		uint64_t from = __atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) < from + more) {
			need(time(NULL) < end, "a thread makes no progress");
			nanosleep(&nap, NULL);
		}
	}
}

/* ---- rounds ---- */

static uint64_t word(size_t at)
{
	return *(volatile uint64_t *)(void *)(memory + at);
}

static char kind_of_mapping(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], access[5], kind = '-';

	need(f != NULL, "/proc/self/maps");
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%lx-%lx %4s", &start, &end, access) == 3 &&
		    (uintptr_t)memory >= start && (uintptr_t)memory < end)
			kind = access[3];
	fclose(f);
	return kind;
}

static void begin(void)
{
	need(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "to become nobody");
	prctl(PR_SET_DUMPABLE, 1);
	setenv("UROCE_PROMOTE", "auto", 1);
	open_device();
	memory = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(memory != MAP_FAILED, "memory");
	memset(memory + PAGE, 7, PAGE);
	mr = ibv_reg_mr(pd, memory, OCTETS, ACCESS);
	need(mr != NULL, "ibv_reg_mr");
	if (kind_of_mapping() != 's')
		_exit(NOT_PROMOTED);
}

/* As at one time, and unchanged when the parent has gone on. */
static int look(int go)
{
	uint64_t seen[4] = { word(FIRST_AT), word(SECOND_AT), word(FIRST_AT + 64),
			     word(SECOND_AT + 64) };
	uint64_t written = word(WRITE_AT);
	char octet;

	for (int i = 0; i < 4; i += 2)
		if (seen[i] < seen[i + 1] || seen[i] > seen[i + 1] + 1)
			return 2;
	if (read(go, &octet, 1) != 1)
		return 3;
	return seen[0] == word(FIRST_AT) && seen[1] == word(SECOND_AT) &&
			       seen[2] == word(FIRST_AT + 64) && seen[3] == word(SECOND_AT + 64) &&
			       written == word(WRITE_AT)
		       ? 0
		       : 4;
}

static void fork_and_look(void)
{
	int go[2], status;
	pid_t child;

	need(pipe(go) == 0, "pipe");
	child = fork();
	need(child >= 0, "fork");
	if (child == 0)
		_exit(look(go[0]));
	await_rounds(2);
	need(write(go[1], "g", 1) == 1, "write");
	need(waitpid(child, &status, 0) == child, "waitpid");
	if (status != 0)
		printf("a child ended with %#x\n", (unsigned int)status);
	need(status == 0, "the child's memory is not that of the fork");
	close(go[0]);
	close(go[1]);
}

static void snapshots(void)
{
	static const int number[PAIRS] = { 0, 1 };
	pthread_t thread[2 + PAIRS];

	begin();
	need(pthread_create(&thread[0], NULL, count_up, NULL) == 0 &&
		     pthread_create(&thread[1], NULL, count_up_by_reads, NULL) == 0,
	     "threads");
	for (int i = 0; i < PAIRS; i++)
		need(pthread_create(&thread[2 + i], NULL, add_up, (void *)(uintptr_t)&number[i]) ==
			     0,
		     "threads");
	await_rounds(20);
	for (int i = 0; i < 4; i++)
		fork_and_look();
	need(kind_of_mapping() == 'p', "the memory was not taken back");
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2 + PAIRS; i++)
		pthread_join(thread[i], NULL);
	need(word(ATOMIC_AT) == added[0] + added[1], "an atomic was lost");
	need(memory[PAGE] == 7 && memory[2 * PAGE - 1] == 7 && memory[2 * PAGE] == 0,
	     "what nobody wrote has changed");
	need(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	need(madvise(memory, OCTETS, MADV_DONTNEED) == 0, "madvise");
	for (size_t i = 0; i < OCTETS; i++)
		need(memory[i] == 0, "what was discarded is there again");
}

static void *fork_once(void *unused)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	need(child > 0 && waitpid(child, NULL, 0) == child, "fork");
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return unused;
}

/* Whether the engine is told of a registration before the fork or after it, it finds the memory. */
static void registrations(void)
{
	pthread_t thread;
	uint64_t number = 0;
	bool last = false;

	begin();
	need(pthread_create(&thread, NULL, fork_once, NULL) == 0, "a thread");
	while (!last) {
		size_t at = WRITE_AT + (number % 16) * PAGE;
		struct ibv_mr *other;

		last = __atomic_load_n(&stop, __ATOMIC_ACQUIRE) != 0;
		other = ibv_reg_mr(pd, memory + at, 64 * PAGE, ACCESS);
		need(other != NULL, "ibv_reg_mr");
		write_there(0, ++number, at, other->rkey);
		if (number % 2 == 0)
			need(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + at,
					  32 * PAGE, 0) == 0,
			     "ibv_rereg_mr");
		write_there(0, ++number, at + 64, other->rkey);
		need(ibv_dereg_mr(other) == 0, "ibv_dereg_mr");
	}
	pthread_join(thread, NULL);
	need(kind_of_mapping() == 'p', "the memory was not taken back");
}

static void *wait_for_stop(void *unused)
{
	while (!stopped())
		usleep(1000);
	return unused;
}

static void fork_with_a_thread(void)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, wait_for_stop, NULL) == 0, "a thread");
	fork_once(NULL);
	pthread_join(thread, NULL);
	need(kind_of_mapping() == 'p', "the memory was not taken back");
}

/* A window stays bound, and reaches the memory. */
static void windows(void)
{
	struct ibv_mw *mw;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	begin();
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	need(mw != NULL, "ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ mr, (uintptr_t)memory + WINDOW_AT, PAGE,
					   ACCESS & ~IBV_ACCESS_MW_BIND & ~IBV_ACCESS_LOCAL_WRITE };
	/* by the queue pair at which WRITEs arrive */
	{
		struct ibv_qp *sends = qp[0][0];

		qp[0][0] = qp[0][1];
		complete(0, &wr, "a bind");
		qp[0][0] = sends;
	}
	write_there(0, 1, WINDOW_AT, wr.bind_mw.rkey);
	fork_with_a_thread();
	write_there(0, 2, WINDOW_AT, wr.bind_mw.rkey);
	write_there(1, 3, WINDOW_AT, mr->rkey);
	need(ibv_dereg_mr(mr) == EBUSY, "a region with a window");
}

/* Nobody else uses the file then. */
static void without_engine(pid_t engine, int told)
{
	(void)told;
	begin();
	memset(memory, 5, OCTETS);
	need(kill(engine, 0) == -1 && errno == EPERM, "the engine is root's");
	printf("d");
	fflush(stdout);
	while (!stopped()) { /* the parent kills it */
		struct ibv_wc wc;

		usleep(1000);
		for (int i = 0; i < 2000; i++)
			ibv_poll_cq(cq[0], 1, &wc);
		if (ibv_query_gid(context, 1, 1, &gid) != 0 || ibv_alloc_pd(context) == NULL)
			break;
	}
	fork_with_a_thread();
	for (size_t i = 0; i < OCTETS; i++)
		need(memory[i] == 5, "the memory has changed");
}

/* The fork waits for its answer, as any verb does. */
static void beside_late_engine(pid_t engine, int told)
{
	pthread_t thread[2];
	char octet;

	(void)engine;
	begin();
	need(pthread_create(&thread[0], NULL, count_up, NULL) == 0 &&
		     pthread_create(&thread[1], NULL, count_up_by_reads, NULL) == 0,
	     "threads");
	await_rounds(20);
	printf("d");
	fflush(stdout);
	need(read(told, &octet, 1) == 1, "the engine is stopped");
	fork_and_look();
	need(kind_of_mapping() == 'p', "the memory was not taken back");
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	write_there(0, 1, WRITE_AT, mr->rkey);
}

/* ---- */

static int status_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PROMOTED) {
		printf("skipped: this kernel does not promote\n");
		exit(77);
	}
	return status;
}

static int run(const char *name, void (*round)(void), int times)
{
	int failed = 0;

	for (int i = 0; i < times; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(2 * WAIT_SECONDS);
			round();
			fflush(stdout);
			_exit(0);
		}
		failed += status_of(pid) != 0;
	}
	printf("%s: %d of %d failed\n", name, failed, times);
	fflush(stdout);
	return failed;
}

static pid_t start_engine(const char *place)
{
	pid_t pid = fork();
	struct stat st;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(127);
		execl(getenv("UROCED"), "uroced", "--no-huge", "-m", "32", "--", "--socket", place,
		      "--socket-mode", "0666", "--ip", "127.0.0.1/8", NULL);
		_exit(127);
	}
	for (int tries = 0; stat(place, &st) != 0 || (st.st_mode & 0777) != 0666; tries++) {
		need(tries < 3000, "the engine's socket");
		usleep(10000);
	}
	return pid;
}

/* A program, and an engine of its own. Each tells the other its progress by octets. */
struct own {
	const char *name;
	void (*program)(pid_t engine, int told);
	void (*treat)(pid_t engine, int tell); /* once the program has said something */
};

static void be_program(const struct own *own, pid_t engine, const char *place, int told, int say)
{
	alarm(2 * WAIT_SECONDS);
	setenv("UROCE_SOCKET", place, 1);
	dup2(say, STDOUT_FILENO);
	own->program(engine, told);
	fflush(stdout);
	_exit(0);
}

static void end_engine(pid_t engine)
{
	if (waitpid(engine, NULL, WNOHANG) == 0) {
		kill(engine, SIGKILL);
		waitpid(engine, NULL, 0);
	}
}

/* Removes the files that a killed engine left behind. */
static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int run_with_own_engine(const struct own *own)
{
	char folder[] = "/tmp/uroce-taken-XXXXXX", place[64], octet;
	int out[2], in[2], status;
	pid_t engine, pid;

	need(mkdtemp(folder) != NULL && chmod(folder, 0711) == 0, "a folder");
	need(pipe(out) == 0 && pipe(in) == 0, "pipes");
	snprintf(place, sizeof(place), "%s/s", folder);
	engine = start_engine(place);
	pid = fork();
	if (pid == 0)
		be_program(own, engine, place, in[0], out[1]);
	close(out[1]);
	if (read(out[0], &octet, 1) == 1) /* else it has ended, which its status says */
		own->treat(engine, in[1]);
	status = status_of(pid);
	end_engine(engine);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	printf("%s: %d of 1 failed\n", own->name, status != 0);
	fflush(stdout);
	return status != 0;
}

static void end(pid_t engine, int tell)
{
	(void)tell;
	end_engine(engine);
}

/* It answers in time for any verb. */
static void hold_up(pid_t engine, int tell)
{
	int status;

	kill(engine, SIGSTOP);
	need(waitpid(engine, &status, WUNTRACED) == engine && WIFSTOPPED(status),
	     "a stopped engine");
	need(write(tell, "s", 1) == 1, "write");
	sleep(LATE);
	kill(engine, SIGCONT);
}

int main(void)
{
	int failed = 0;

	if (geteuid() != 0) {
		printf("skipped: only root can become nobody\n");
		return 77;
	}
	failed += run("snapshots", snapshots, 12);
	failed += run("registrations", registrations, 20);
	failed += run("windows", windows, 2);
	/* That engine has one lcore, whatever the other one has. */
	if (strcmp(getenv("UROCED_LCORES"), "1") == 0) {
		failed += run_with_own_engine(
			&(struct own){ "without an engine", without_engine, end });
		failed += run_with_own_engine(
			&(struct own){ "a late engine", beside_late_engine, hold_up });
	}
	return failed != 0;
}
