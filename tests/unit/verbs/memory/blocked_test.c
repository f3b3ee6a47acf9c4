/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory whose access blocks: pages of a userfaultfd that are never filled. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/waiting.h"

#define PAGE	 4096u
#define PAGES	 2u
#define ELEMENTS 4 /* enough for the engine to read them by pid and block at the page */
#define TURNS	 200

static struct endpoint e, beside;
static struct ibv_mr *mr;
static uint8_t *area;
static int faults;

static void open_endpoint(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (faults < 0)
		cr_skip_test("no privilege for a full userfaultfd");
	range.range.start = (uintptr_t)area;
	range.range.len = PAGES * PAGE;
	cr_assert_eq(ioctl(faults, UFFDIO_API, &api), 0);
	cr_assert_eq(ioctl(faults, UFFDIO_REGISTER, &range), 0);
	endpoint_open(&e);
	endpoint_open(&beside);
	mr = ibv_reg_mr(e.pd, area, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr, "ibv_reg_mr: %m");
}

static void close_endpoint(void)
{
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	endpoint_close(&beside);
	endpoint_close(&e);
	close(faults);
	munmap(area, PAGES * PAGE);
}

TestSuite(blocked, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

/* Posts a WRITE from that page and waits until the engine accesses it. */
static void write_from(uint32_t page)
{
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = ELEMENTS,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct pollfd p = { .fd = faults, .events = POLLIN };

	for (uint32_t i = 0; i < ELEMENTS; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)area + page * PAGE + 8 * i, 8, mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer;
	wr.wr.rdma.rkey = e.mr->rkey;
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "nobody came to page %u", page);
}

static void fill(uint32_t page)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)area + page * PAGE, PAGE } };
	struct ibv_wc wc;

	cr_assert_eq(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
	poll_completions(e.cq, &wc, 1, "a WRITE out of a page that was filled");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

/* Reads a line of the engine's /proc/PID/task/TID/FILE; none if the thread has ended. */
static void read_of_thread(const char *thread, const char *file, char *text, int size)
{
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", getenv("UROCED_PID"), thread, file);
	f = fopen(path, "re");
	if (f == NULL || fgets(text, size, f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
}

/* Whether the engine has a mover, and whether the thread that is its lcore sleeps. */
static bool look_at_threads(bool *lcore_sleeps)
{
	char path[64], text[256];
	struct dirent *entry;
	bool has_mover = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/task", getenv("UROCED_PID"));
	d = opendir(path);
	cr_assert_not_null(d, "%s: %m", path);
	while ((entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		read_of_thread(entry->d_name, "comm", text, sizeof(text));
		has_mover |= strcmp(text, "uroce-mover\n") == 0;
		if (strcmp(text, "uroce-lcore\n") != 0)
			continue;
		read_of_thread(entry->d_name, "stat", text, sizeof(text));
		*lcore_sleeps = strstr(text, ") S ") != NULL;
	}
	closedir(d);
	return has_mover;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The engine does not map its memory, so it has a mover, and no lcore blocks. */
static void get_mover(void)
{
	double until = now() + WAIT_SECONDS;
	bool sleeps = false;

	write_from(0);
	while (!look_at_threads(&sleeps))
		cr_assert(now() < until, "no mover came");
	fill(0);
}

Test(blocked, an_lcore_sleeps_while_a_copy_blocks)
{
	double until = now() + WAIT_SECONDS;
	bool sleeps;

	get_mover();
	write_from(1);
	for (sleeps = false; !sleeps; look_at_threads(&sleeps))
		cr_assert(now() < until, "it is awake all the time");
	fill(1);
}

/*
 * Lets the engine go on: messages of another pair are sent, arrive and are acknowledged one after
 * the other. They are empty, so they do not need the mover.
 */
static void let_engine_go_on(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	for (int i = 0; i < TURNS; i++) {
		cr_assert_eq(ibv_post_send(beside.qp[0], &wr, &bad), 0);
		poll_completions(beside.cq, &wc, 1, "an empty WRITE");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
}

/* Work that the mover cannot do yet: a SEND to the first queue pair after a WRITE of that one. */
static void hold_up(uint32_t page)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 32, e.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE },
			   *bad;

	get_mover();
	write_from(page);
	cr_assert_eq(ibv_post_recv(e.qp[0], &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(e.qp[1], &send, &bad), 0);
	let_engine_go_on(); /* it arrives */
}

static int go_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static void fill_alone(uint32_t page)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)area + page * PAGE, PAGE } };

	cr_assert_eq(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
}

/* The program gets its memory back with the completion, not before (protocol-map 137). */
Test(blocked, a_flushed_request_is_in_no_copy)
{
	struct ibv_wc wc[2];

	hold_up(1);
	cr_assert_eq(go_to(e.qp[0], IBV_QPS_ERR), 0);
	let_engine_go_on();
	cr_expect_eq(ibv_poll_cq(e.cq, 2, wc), 0, "its memory is still read and written");
	fill_alone(1);
	poll_completions(e.cq, wc, 2, "a WRITE and a receive");
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(wc[i].qp_num, e.qp[0]->qp_num);
		cr_expect_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR, "%s",
			     ibv_wc_status_str(wc[i].status));
	}
}

static int reset(void *qp)
{
	return go_to(qp, IBV_QPS_RESET);
}

static int destroy(void *qp)
{
	return ibv_destroy_qp(qp);
}

/* A copy waits behind page 1. The call returns only when that page was filled. */
static void must_wait(const char *what, int (*call)(void *object), void *object)
{
	struct waiting w;
	bool sleeps;

	waiting_start(&w, what, call, object);
	sleeps = waiting_sleeps(&w);
	if (sleeps) {
		let_engine_go_on(); /* it has had time to answer */
		sleeps = pthread_tryjoin_np(w.thread, NULL) != 0;
	}
	cr_expect(sleeps, "%s is over, but its memory is still read and written", what);
	fill_alone(1);
	if (sleeps)
		waiting_end(&w);
	cr_expect_eq(w.result, 0, "%s: %s", what, strerror(w.result));
}

static void cut_off(const char *what, int (*call)(void *qp))
{
	hold_up(1);
	must_wait(what, call, e.qp[0]);
}

/*
 * After a reset or a destroying verb it gets the memory back when the call returns. hostile H-139:
 * destroyed objects are not used.
 */
Test(blocked, memory_of_a_reset_queue_pair_is_in_no_copy)
{
	cut_off("a queue pair's way to RESET", reset);
}

/* hostile H-126: timers of destroyed objects; H-139: destroyed objects are not used. */
Test(blocked, memory_of_a_destroyed_object_is_in_no_copy)
{
	cut_off("the end of a queue pair", destroy);
	e.qp[0] = endpoint_create_qp(&e);
}

/* ---- queue pairs that only receive ---- */

/* XRC: SRQ, target and initiator, connected. */
struct xrc {
	struct ibv_xrcd *domain;
	struct ibv_srq *srq;
	struct ibv_qp *target, *initiator;
	uint32_t srqn;
};

static void connect_xrc(struct ibv_qp *qp, uint32_t peer)
{
	bool is_target = qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr a;

	cr_assert_eq(endpoint_to_init(qp), 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 1 } },
	};
	cr_assert_eq(
		ibv_modify_qp(
			qp, &a,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN |
				(is_target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
		0);
	if (is_target)
		return;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = PATIENT_TIMEOUT,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1 };
	cr_assert_eq(ibv_modify_qp(qp, &a,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
					   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

static void open_xrc(struct xrc *x)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							  IBV_XRCD_INIT_ATTR_OFLAGS,
					     .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e.pd,
		.cq = e.cq,
	};
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct ibv_qp_init_attr initiator = { .send_cq = e.cq,
					      .cap = { DEPTH, 0, 4, 0, 64 },
					      .qp_type = IBV_QPT_XRC_SEND };

	x->domain = srq.xrcd = target.xrcd = ibv_open_xrcd(e.context, &domain);
	cr_assert_not_null(x->domain, "ibv_open_xrcd: %m");
	x->srq = ibv_create_srq_ex(e.context, &srq);
	x->target = ibv_create_qp_ex(e.context, &target);
	x->initiator = ibv_create_qp(e.pd, &initiator);
	cr_assert(x->srq != NULL && x->target != NULL && x->initiator != NULL, "%m");
	cr_assert_eq(ibv_get_srq_num(x->srq, &x->srqn), 0);
	connect_xrc(x->target, x->initiator->qp_num);
	connect_xrc(x->initiator, x->target->qp_num);
}

static void xrc_message(struct xrc *x)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 32, e.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE,
				    .qp_type = { .xrc = { .remote_srqn = x->srqn } } },
			   *bad;

	cr_assert_eq(ibv_post_srq_recv(x->srq, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(x->initiator, &send, &bad), 0);
}

/* hostile H-139: destroyed objects are not used. */
Test(blocked, memory_of_a_destroyed_xrc_target_is_in_no_copy)
{
	struct xrc x;

	open_xrc(&x);
	get_mover();
	write_from(1);
	xrc_message(&x);
	let_engine_go_on(); /* it arrives */
	must_wait("the end of an XRC target", destroy, x.target);
	cr_expect_eq(ibv_destroy_qp(x.initiator), 0);
	cr_expect_eq(ibv_destroy_srq(x.srq), 0);
	cr_expect_eq(ibv_close_xrcd(x.domain), 0);
}

#define FRAME 100u

static const uint8_t group_mac[6] = { 1, 0, 0x5e, 0, 1, 5 };

/* A work queue with its table, RSS queue pair and rule for the group, and a sender of frames. */
struct spread {
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *rss, *sender;
	struct ibv_flow *flow;
};

static void open_spread(struct spread *s)
{
	static uint8_t key[40];
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = e.pd, .cq = e.cq
	};
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &s->wq };
	struct ibv_qp_init_attr_ex rss = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = e.pd,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key,
				  IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 },
	};
	struct ibv_qp_init_attr raw = { .send_cq = e.cq,
					.recv_cq = e.cq,
					.cap = { DEPTH, 1, 1, 1, 2 * FRAME },
					.qp_type = IBV_QPT_RAW_PACKET };
	struct {
		struct ibv_flow_attr a;
		struct ibv_flow_spec_eth eth;
	} rule = { .a = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 1,
			  .port = 1 },
		   .eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	s->wq = ibv_create_wq(e.context, &wq);
	cr_assert_not_null(s->wq, "ibv_create_wq: %m");
	cr_assert_eq(ibv_modify_wq(s->wq, &ready), 0);
	s->table = rss.rwq_ind_tbl = ibv_create_rwq_ind_table(e.context, &table);
	s->rss = ibv_create_qp_ex(e.context, &rss);
	s->sender = ibv_create_qp(e.pd, &raw);
	cr_assert(s->table != NULL && s->rss != NULL && s->sender != NULL, "%m");
	memcpy(rule.eth.val.dst_mac, group_mac, sizeof(group_mac));
	memset(rule.eth.mask.dst_mac, 0xff, sizeof(group_mac));
	s->flow = ibv_create_flow(s->rss, &rule.a);
	cr_assert_not_null(s->flow, "ibv_create_flow: %m");
	cr_assert_eq(ibv_modify_qp(s->sender, &init, IBV_QP_STATE | IBV_QP_PORT), 0);
	cr_assert_eq(go_to(s->sender, IBV_QPS_RTR), 0);
	cr_assert_eq(go_to(s->sender, IBV_QPS_RTS), 0);
}

static void spread_message(struct spread *s)
{
	uint8_t frame[FRAME] = { 0 };
	struct ibv_sge to = { (uintptr_t)e.buffer, FRAME, e.mr->lkey };
	struct ibv_sge from = { (uintptr_t)frame, FRAME, 0 };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE },
			   *bad;

	memcpy(frame, group_mac, sizeof(group_mac));
	frame[12] = 0x88; /* an EtherType for experiments */
	frame[13] = 0xb5;
	cr_assert_eq(ibv_post_wq_recv(s->wq, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(s->sender, &send, &bad), 0);
}

static int reset_wq(void *wq)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };

	return ibv_modify_wq(wq, &attr);
}

Test(blocked, memory_of_a_reset_work_queue_is_in_no_copy)
{
	struct spread s;

	open_spread(&s);
	get_mover();
	write_from(1);
	spread_message(&s);
	let_engine_go_on(); /* it arrives */
	must_wait("a work queue's way to RESET", reset_wq, s.wq);
	cr_expect_eq(ibv_destroy_flow(s.flow), 0);
	cr_expect_eq(ibv_destroy_qp(s.rss), 0);
	cr_expect_eq(ibv_destroy_rwq_ind_table(s.table), 0);
	cr_expect_eq(ibv_destroy_wq(s.wq), 0);
	cr_expect_eq(ibv_destroy_qp(s.sender), 0);
}
