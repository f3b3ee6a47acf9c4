/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs, one function for each family. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "every_verb.h"

static struct ibv_sge some_memory(struct thread *t)
{
	return (struct ibv_sge){ (uintptr_t)all.memory + draw(t, 60) * 64, 1 + draw(t, 64),
				 all.mr->lkey };
}

static struct ibv_pd *a_pd(struct thread *t)
{
	return draw(t, 2) == 0 ? all.pd : all.domain;
}

static struct ibv_cq *a_cq(struct thread *t)
{
	return draw(t, 2) == 0 ? all.cq : ibv_cq_ex_to_cq(all.cq_ex);
}

/* ---- data path ---- */

static void post_send(struct thread *t)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_qp *qp[] = { all.qp, all.qp, all.restless, all.of_srq };
	struct ibv_sge sge = some_memory(t);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcodes[draw(t, 3)],
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)all.memory;
	wr.wr.rdma.rkey = all.mr->rkey;
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.rkey = all.mr->rkey;
	}
	tolerate(t, ibv_post_send(qp[draw(t, 4)], &wr, &bad));
}

static void post_message(struct thread *t)
{
	struct ibv_sge sge = some_memory(t);
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE |
						IBV_SEND_SOLICITED },
			   *bad;

	sge.length = 16;
	if (draw(t, 2) == 0) {
		tolerate(t, ibv_post_recv(all.restless, &receive, &bad_receive));
		tolerate(t, ibv_post_send(all.restless, &wr, &bad));
	} else {
		tolerate(t, ibv_post_srq_recv(all.srq, &receive, &bad_receive));
		tolerate(t, ibv_post_send(all.of_srq, &wr, &bad));
	}
}

static void post_extended(struct thread *t)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(all.extended);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, all.mr->rkey, (uintptr_t)all.memory);
	ibv_wr_set_sge(qp, all.mr->lkey, (uintptr_t)all.memory + 64, 8);
	ibv_wr_atomic_fetch_add(qp, all.mr->rkey, (uintptr_t)all.memory, 1);
	ibv_wr_set_sge(qp, all.mr->lkey, (uintptr_t)all.memory + 64, 8);
	if (draw(t, 4) == 0)
		ibv_wr_abort(qp);
	else
		tolerate(t, ibv_wr_complete(qp));
}

static void poll_cq(struct thread *t)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(a_cq(t), 16, wc);

	if (n < 0)
		die("a poll gives %d", n);
	for (int i = 0; i < n; i++)
		if (wc[i].qp_num == 0)
			die("a completion of nobody");
}

static void poll_extended(struct thread *t)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int error = ibv_start_poll(all.cq_ex, &attr);

	tolerate(t, error);
	if (error != 0)
		return;
	do {
		if (ibv_wc_read_completion_wallclock_ns(all.cq_ex) == 0 ||
		    ibv_wc_read_qp_num(all.cq_ex) == 0)
			die("a completion of nobody");
		(void)ibv_wc_read_opcode(all.cq_ex);
		(void)ibv_wc_read_byte_len(all.cq_ex);
		(void)ibv_wc_read_vendor_err(all.cq_ex);
	} while (ibv_next_poll(all.cq_ex) == 0);
	ibv_end_poll(all.cq_ex);
}

/* ---- events ---- */

static void completion_event(struct thread *t)
{
	struct ibv_cq *cq;
	void *context;

	tolerate(t, ibv_req_notify_cq(a_cq(t), (int)draw(t, 2)));
	errno = 0;
	if (ibv_get_cq_event(all.channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	else
		tolerate(t, errno);
}

static void async_event(struct thread *t)
{
	struct ibv_async_event event;

	errno = 0;
	if (ibv_get_async_event(all.context, &event) == 0)
		ibv_ack_async_event(&event);
	else
		tolerate(t, errno);
}

/* ---- completion queues ---- */

static void resize_cq(struct thread *t)
{
	tolerate(t, ibv_resize_cq(all.cq, 1024 + (int)draw(t, 8192)));
}

static void modify_cq(struct thread *t)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { (uint16_t)draw(t, 4),
							 (uint16_t)draw(t, 50) } };

	tolerate(t, ibv_modify_cq(all.cq, &attr));
}

static void create_cq(struct thread *t)
{
	struct ibv_cq *cq =
		made(t, ibv_create_cq(all.context, 1 + (int)draw(t, 64), NULL, all.channel, 0));

	if (cq != NULL)
		must(t, ibv_destroy_cq(cq));
}

static void create_cq_ex(struct thread *t)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 8,
					    .wc_flags = IBV_WC_STANDARD_FLAGS,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS |
							 IBV_CQ_INIT_ATTR_MASK_PD,
					    .flags = draw(t, 4),
					    .parent_domain = all.domain };
	struct ibv_cq_ex *cq = made(t, ibv_create_cq_ex(all.context, &init));

	if (cq != NULL)
		must(t, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void create_channel(struct thread *t)
{
	struct ibv_comp_channel *channel = made(t, ibv_create_comp_channel(all.context));

	if (channel != NULL)
		must(t, ibv_destroy_comp_channel(channel));
}

/* ---- queue pairs ---- */

static void create_qp(struct thread *t)
{
	struct ibv_srq *srq = draw(t, 2) == 0 ? all.srq : NULL;
	struct ibv_qp *qp = made(t, new_qp(a_pd(t), a_cq(t), srq));

	if (qp == NULL)
		return;
	tolerate(t, modify(qp, IBV_QPS_INIT, 0));
	must(t, ibv_destroy_qp(qp));
}

static void modify_qp(struct thread *t)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS, IBV_QPS_ERR };

	if (draw(t, 8) == 0)
		tolerate(t, modify(all.restless, states[draw(t, 5)], all.restless->qp_num));
	for (int i = 0; i < 4; i++)
		tolerate(t, modify(all.restless, states[i], all.restless->qp_num));
}

static void query_qp(struct thread *t)
{
	struct ibv_qp *qp[] = { all.qp, all.restless, all.extended };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	tolerate(t, ibv_query_qp(qp[draw(t, 3)], &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	(void)ibv_query_qp_data_in_order(all.qp, IBV_WR_RDMA_WRITE, 0);
}

static void ece(struct thread *t)
{
	struct ibv_ece ece = { 0 };

	tolerate(t, ibv_query_ece(all.qp, &ece));
	tolerate(t, ibv_set_ece(all.restless, &ece));
}

static void multicast(struct thread *t)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };

	tolerate(t, ibv_attach_mcast(all.qp, &group, 0));
	tolerate(t, ibv_detach_mcast(all.qp, &group, 0));
}

/* ---- shared receive queues ---- */

static void create_srq(struct thread *t)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1 + draw(t, 32), .max_sge = 1 } };
	struct ibv_srq *srq = made(t, ibv_create_srq(a_pd(t), &init));

	if (srq != NULL)
		must(t, ibv_destroy_srq(srq));
}

static void change_srq(struct thread *t)
{
	struct ibv_srq_attr attr = { .max_wr = 32 + draw(t, 64), .srq_limit = draw(t, 4) };
	uint32_t number;

	tolerate(t,
		 ibv_modify_srq(all.srq, &attr, draw(t, 2) == 0 ? IBV_SRQ_LIMIT : IBV_SRQ_MAX_WR));
	tolerate(t, ibv_query_srq(all.srq, &attr));
	tolerate(t, ibv_get_srq_num(all.srq, &number));
}

/* ---- memory and domains ---- */

static void reg_mr(struct thread *t)
{
	/* small regions are not promoted, large ones may be */
	size_t length = draw(t, 8) == 0 ? 128u << 10 : 1 + draw(t, 8192);
	struct ibv_mr *mr =
		made(t, ibv_reg_mr(a_pd(t), all.memory + 8192, length, IBV_ACCESS_LOCAL_WRITE));

	if (mr == NULL)
		return;
	if (draw(t, 2) == 0)
		tolerate(t, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					 IBV_ACCESS_REMOTE_READ) == 0
				    ? 0
				    : errno);
	must(t, ibv_dereg_mr(mr));
}

static void other_regions(struct thread *t)
{
	struct ibv_sge sge = some_memory(t);
	struct ibv_mr *mr = made(t, ibv_alloc_null_mr(all.pd));

	if (mr != NULL)
		must(t, ibv_dereg_mr(mr));
	tolerate(t, ibv_advise_mr(all.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
}

static void device_memory(struct thread *t)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = made(t, ibv_alloc_dm(all.context, &attr));
	struct ibv_mr *mr;
	uint64_t octets = 1;

	if (dm == NULL)
		return;
	tolerate(t, ibv_memcpy_to_dm(dm, 8, &octets, sizeof(octets)));
	mr = made(t, ibv_reg_dm_mr(all.pd, dm, 0, 4096,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
	if (mr != NULL)
		must(t, ibv_dereg_mr(mr));
	must(t, ibv_free_dm(dm));
}

static void memory_window(struct thread *t)
{
	struct ibv_mw *mw =
		made(t, ibv_alloc_mw(all.pd, draw(t, 2) == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2));
	struct ibv_mw_bind bind = { .bind_info = { .mr = all.mr } };

	if (mw == NULL)
		return;
	if (mw->type == IBV_MW_TYPE_1)
		tolerate(t, ibv_bind_mw(all.qp, mw, &bind));
	tolerate(t, ibv_dealloc_mw(mw));
}

static void alloc_pd(struct thread *t)
{
	struct ibv_parent_domain_init_attr attr = { 0 };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_pd *domain;

	attr.pd = made(t, ibv_alloc_pd(all.context));
	if (attr.pd == NULL)
		return;
	attr.td = made(t, ibv_alloc_td(all.context, &td_attr));
	domain = made(t, ibv_alloc_parent_domain(all.context, &attr));
	if (domain != NULL)
		must(t, ibv_dealloc_pd(domain));
	if (attr.td != NULL)
		must(t, ibv_dealloc_td(attr.td));
	must(t, ibv_dealloc_pd(attr.pd));
}

static void busy_objects(struct thread *t)
{
	if (ibv_dealloc_pd(all.pd) != EBUSY || ibv_dealloc_pd(all.domain) != EBUSY ||
	    ibv_destroy_cq(all.cq) != EBUSY || ibv_destroy_comp_channel(all.channel) != EBUSY ||
	    ibv_destroy_srq(all.srq) != EBUSY)
		die("a busy object is not busy");
}

static void address_handle(struct thread *t)
{
	struct ibv_ah *ah = made(t, ibv_create_ah(all.pd, &all.path));
	struct ibv_ah_attr attr = all.path;
	uint8_t mac[ETHERNET_LL_SIZE];
	struct ibv_grh grh = { 0 };
	struct ibv_wc wc = { 0 };
	uint16_t vlan;

	if (ah != NULL)
		must(t, ibv_destroy_ah(ah));
	tolerate(t, ibv_resolve_eth_l2_from_gid(all.context, &attr, mac, &vlan));
	errno = 0;
	if (ibv_init_ah_from_wc(all.context, 1, &wc, &grh, &attr) != 0)
		tolerate(t, errno);
}

/* ---- what only some devices have ---- */

static void rest(struct thread *t)
{
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							     IBV_XRCD_INIT_ATTR_OFLAGS,
						.fd = -1,
						.oflags = O_CREAT };
	struct ibv_counters_init_attr counters_attr = { 0 };
	struct ibv_wq_init_attr wq_attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = all.pd, .cq = all.cq
	};
	struct ibv_xrcd *xrcd = made(t, ibv_open_xrcd(all.context, &xrcd_attr));
	struct ibv_counters *counters;
	struct ibv_wq *wq;

	if (xrcd != NULL)
		must(t, ibv_close_xrcd(xrcd));
	counters = made(t, ibv_create_counters(all.context, &counters_attr));
	if (counters != NULL)
		must(t, ibv_destroy_counters(counters));
	wq = made(t, ibv_create_wq(all.context, &wq_attr));
	if (wq != NULL)
		must(t, ibv_destroy_wq(wq));
}

static void import(struct thread *t)
{
	int fd = dup(all.context->cmd_fd);
	struct ibv_context *context = made(t, ibv_import_device(fd));
	struct ibv_pd *pd;

	if (context == NULL) {
		close(fd);
		return;
	}
	pd = made(t, ibv_import_pd(context, all.pd->handle));
	if (pd != NULL)
		ibv_unimport_pd(pd);
	must(t, ibv_close_device(context));
}

/* ---- queries ---- */

static void open_device(struct thread *t)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (list == NULL || list[0] == NULL)
		die("the device is gone");
	(void)ibv_get_device_name(list[0]);
	(void)ibv_get_device_guid(list[0]);
	(void)ibv_get_device_index(list[0]);
	context = made(t, ibv_open_device(list[0]));
	ibv_free_device_list(list);
	if (context != NULL)
		must(t, ibv_close_device(context));
}

static void ask(struct thread *t)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_gid_entry entry, table[32];
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	must(t, ibv_query_device_ex(all.context, NULL, &device));
	must(t, ibv_query_device(all.context, &device.orig_attr));
	must(t, ibv_query_port(all.context, 1, &port));
	must(t, ibv_query_gid(all.context, 1, 1, &gid));
	must(t, ibv_query_gid_ex(all.context, 1, 1, &entry, 0));
	must(t, ibv_query_pkey(all.context, 1, 0, &pkey));
	must(t, ibv_get_pkey_index(all.context, 1, pkey));
	must(t, ibv_query_rt_values_ex(all.context, &values));
	if (ibv_query_gid_table(all.context, table, 32, 0) < 2)
		die("the GID table is short");
}

const struct call verbs[] = {
	{ "post_send", post_send },
	{ "post_send again", post_send },
	{ "post_recv, post_srq_recv", post_message },
	{ "wr_start", post_extended },
	{ "poll_cq", poll_cq },
	{ "poll_cq again", poll_cq },
	{ "start_poll", poll_extended },
	{ "req_notify_cq, get_cq_event", completion_event },
	{ "get_async_event", async_event },
	{ "resize_cq", resize_cq },
	{ "modify_cq", modify_cq },
	{ "create_cq", create_cq },
	{ "create_cq_ex", create_cq_ex },
	{ "create_comp_channel", create_channel },
	{ "create_qp", create_qp },
	{ "modify_qp", modify_qp },
	{ "query_qp", query_qp },
	{ "query_ece", ece },
	{ "attach_mcast", multicast },
	{ "create_srq", create_srq },
	{ "modify_srq", change_srq },
	{ "reg_mr", reg_mr },
	{ "alloc_null_mr", other_regions },
	{ "alloc_dm", device_memory },
	{ "alloc_mw", memory_window },
	{ "alloc_pd", alloc_pd },
	{ "dealloc_pd of a busy one", busy_objects },
	{ "create_ah", address_handle },
	{ "open_xrcd, create_counters, create_wq", rest },
	{ "import_device", import },
	{ "open_device", open_device },
	{ "query_device", ask },
};

const uint32_t verbs_count = sizeof(verbs) / sizeof(verbs[0]);
