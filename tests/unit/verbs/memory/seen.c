/* SPDX-License-Identifier: BSD-3-Clause */
#include "seen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/plain.h"

#define PEER	     0xbb
#define PROGRAM	     0xcc
#define NEIGHBOUR    0xee
#define WAIT_SECONDS 60
#define ACCESS	     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* ---- what the program sees ---- */

void seen_note(struct seen *s, const char *format, ...)
{
	size_t n = strlen(s->text);
	va_list list;

	if (n > 0 && n + 2 < sizeof(s->text)) {
		memcpy(s->text + n, ", ", 3);
		n += 2;
	}
	va_start(list, format);
	vsnprintf(s->text + n, sizeof(s->text) - n, format, list);
	va_end(list);
}

/* -1: the page cannot be read. */
static int read_octet(const void *at)
{
	int ends[2], value = -1;
	uint8_t octet;

	need(pipe(ends) == 0, "pipe");
	if (write(ends[1], at, 1) == 1 && read(ends[0], &octet, 1) == 1)
		value = octet;
	close(ends[0]);
	close(ends[1]);
	return value;
}

void seen_look(struct seen *s, const char *what, const void *at)
{
	int value = read_octet(at);

	if (value < 0)
		seen_note(s, "%s: fault", what);
	else if (value == 0)
		seen_note(s, "%s: zero", what);
	else if (value == PEER)
		seen_note(s, "%s: peer", what);
	else if (value == PROGRAM)
		seen_note(s, "%s: program", what);
	else if (value == NEIGHBOUR)
		seen_note(s, "%s: neighbour", what);
	else
		seen_note(s, "%s: page %d", what, value - 1);
}

void seen_fill(void *at, size_t octets)
{
	memset(at, PROGRAM, octets);
}

/* "rw-p" of the mapping there, "none" if there is none. */
static void find_access(const void *at, char access[5])
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], found[5];

	need(f != NULL, "/proc/self/maps");
	strcpy(access, "none");
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 &&
		    (uintptr_t)at >= start && (uintptr_t)at < end)
			memcpy(access, found, 5);
	fclose(f);
}

void seen_access(struct seen *s, const char *what, const void *at)
{
	char access[5];

	find_access(at, access);
	access[3] = strcmp(access, "none") == 0
			    ? 'e'
			    : '\0'; /* private or shared: the same only after deregistration */
	seen_note(s, "%s: %s", what, access);
}

void seen_deregister(struct seen *s, const void *at)
{
	char access[5];

	need(ibv_dereg_mr(s->mr) == 0, "ibv_dereg_mr");
	find_access(at, access);
	if (strcmp(access, "none") == 0)
		seen_note(s, "then: none");
	else
		seen_note(s, "then: %s", access[3] == 'p' ? "private" : "shared");
}

/* ---- two queue pairs of this process ---- */

static void connect_both(struct seen *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	for (int i = 0; i < 2; i++)
		need(ibv_modify_qp(s->qp[i], &attr, IBV_QP_STATE) == 0, "to RESET");
	for (int i = 0; i < 2; i++)
		connect_plain(s->qp[i], &s->gid, s->qp[1 - i]->qp_num, ACCESS, IBV_MTU_1024);
}

static enum ibv_wc_status wait_for_it(struct seen *s)
{
	time_t end = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;

	while (ibv_poll_cq(s->cq, 1, &wc) == 0)
		need(time(NULL) < end, "no completion of the WRITE came");
	return wc.status;
}

void seen_write(struct seen *s, const char *what, const void *at)
{
	struct ibv_sge sge = { (uintptr_t)s->source, sizeof(s->source), s->source_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	enum ibv_wc_status status;

	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = s->mr->rkey;
	need(ibv_post_send(s->qp[0], &wr, &bad) == 0, "ibv_post_send");
	status = wait_for_it(s);
	seen_note(s, "%s: %s", what, status == IBV_WC_SUCCESS ? "done" : "refused");
	if (status != IBV_WC_SUCCESS)
		connect_both(s);
}

static void open_device(struct seen *s)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list != NULL && list[0] != NULL, "a device");
	s->context = ibv_open_device(list[0]);
	need(s->context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
	need(s->pd != NULL && s->cq != NULL, "PD and CQ");
	need(ibv_query_gid(s->context, 1, 1, &s->gid) == 0, "ibv_query_gid");
	init.send_cq = init.recv_cq = s->cq;
	for (int i = 0; i < 2; i++) {
		s->qp[i] = ibv_create_qp(s->pd, &init);
		need(s->qp[i] != NULL, "ibv_create_qp");
	}
	connect_both(s);
	memset(s->source, PEER, sizeof(s->source));
	s->source_mr = ibv_reg_mr(s->pd, s->source, sizeof(s->source), 0);
	need(s->source_mr != NULL, "ibv_reg_mr");
}

/*
 * The kernel gives new mappings the highest place that is free. Just below the libraries a hole that a row makes would be
 * such a place, and whatever thread of this process maps memory next would be where nothing should be.
 */
#define FAR_FROM_OTHERS ((void *)0x200000000000)

static void register_memory(struct seen *s)
{
	s->p = mmap(FAR_FROM_OTHERS, 2 * SEEN_OCTETS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	need(s->p != MAP_FAILED, "address space");
	need(mmap(s->p, SEEN_OCTETS, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == s->p,
	     "memory");
	for (size_t i = 0; i < SEEN_PAGES; i++)
		memset(s->p + i * SEEN_PAGE, (int)i + 1, SEEN_PAGE);
	s->neighbour =
		mmap(NULL, SEEN_OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(s->neighbour != MAP_FAILED, "memory");
	memset(s->neighbour, NEIGHBOUR, SEEN_OCTETS);
	s->mr = ibv_reg_mr(s->pd, s->p, SEEN_OCTETS, ACCESS);
	s->neighbour_mr = ibv_reg_mr(s->pd, s->neighbour, SEEN_OCTETS, ACCESS);
	need(s->mr != NULL && s->neighbour_mr != NULL, "ibv_reg_mr");
}

static bool is_promoted(const struct seen *s)
{
	char access[5];

	find_access(s->p, access);
	return access[3] == 's';
}

/* ---- the rows ---- */

#define NOT_PROMOTED 77

static void run_row(const struct seen_row *row, bool promoted, int to)
{
	static struct seen s;

	setenv("UROCE_PROMOTE", promoted ? "on" : "off", 1);
	open_device(&s);
	register_memory(&s);
	if (promoted && !is_promoted(&s))
		_exit(NOT_PROMOTED);
	row->run(&s);
	for (size_t i = 0; i < SEEN_OCTETS; i++)
		if (s.neighbour[i] != NEIGHBOUR) {
			seen_note(&s, "ANOTHER REGION WAS WRITTEN");
			break;
		}
	need(write(to, s.text, sizeof(s.text)) == sizeof(s.text), "write");
	_exit(0);
}

/* Returns the status of the process that did it. */
static int do_row(const struct seen_row *row, bool promoted, char text[1024])
{
	int ends[2], status;
	pid_t pid;

	need(pipe(ends) == 0, "pipe");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0)
		run_row(row, promoted, ends[1]);
	close(ends[1]);
	memset(text, 0, 1024);
	if (read(ends[0], text, 1024) != 1024)
		strcpy(text, "the program ended");
	close(ends[0]);
	need(waitpid(pid, &status, 0) == pid, "waitpid");
	return status;
}

static int compare(const struct seen_row *row, bool promoted)
{
	const char *expected = promoted && row->on != NULL ? row->on : row->off;
	char text[1024];
	int status = do_row(row, promoted, text);

	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PROMOTED) {
		printf("skipped: this kernel or user does not promote\n");
		exit(77);
	}
	if (status == 0 && strcmp(text, expected) == 0)
		return 0;
	printf("%s, %s, status %#x:\n\tseen:     %s\n\texpected: %s\n", row->name,
	       promoted ? "promoted" : "not promoted", (unsigned int)status, text, expected);
	return 1;
}

/* How many results are not as expected. */
static int compare_all(const struct seen_row *row, uint32_t count)
{
	int failed = 0;

	for (uint32_t i = 0; i < count; i++)
		for (int promoted = 0; promoted < 2; promoted++)
			failed += compare(&row[i], promoted);
	return failed;
}

int main(void)
{
	int failed = compare_all(seen_rows, seen_row_count) +
		     compare_all(seen_fork_rows, seen_fork_row_count);

	printf("%u rows, %d failed\n", seen_row_count + seen_fork_row_count, failed);
	return failed != 0;
}
