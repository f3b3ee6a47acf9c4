/* SPDX-License-Identifier: BSD-3-Clause */
/* All objects but queue pairs: made, changed, and destroyed if nothing uses them. */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void pd_step(void)
{
	struct model_pd *p = ANY(w.pd);

	if (p->pd == NULL) {
		p->pd = ibv_alloc_pd(w.context);
		if (p->pd == NULL)
			wrong("%m");
		return;
	}
	w.call = "ibv_dealloc_pd";
	if (p->users == 0 && draw(4) != 0)
		return;
	expect(ibv_dealloc_pd(p->pd), p->users > 0 ? EBUSY : 0);
	if (p->users == 0)
		p->pd = NULL;
}

/* ---- memory ---- */

struct model_mr *mr_of(const struct model_pd *pd)
{
	struct model_mr *m = ANY(w.mr);

	for (uint32_t i = 0; i < 64 && (m->mr == NULL || m->pd != pd); i++)
		m = ANY(w.mr);
	return m->mr != NULL ? m : NULL;
}

static int some_access(void)
{
	static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	static const int rare[] = { 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND };

	return draw(8) == 0 ? rare[draw(4)] : all | (draw(2) ? IBV_ACCESS_MW_BIND : 0);
}

static void mr_make(struct model_mr *m)
{
	struct model_pd *p = ANY(w.pd);
	uint32_t length = 1 + (draw(16) == 0 ? draw(64) : draw(MEMORY / 2));
	uint8_t *at = w.memory + draw(MEMORY - length);

	if (p->pd == NULL)
		return;
	if (draw(4) == 0) {
		at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			wrong("mmap: %m");
		m->own = at;
	}
	m->access = some_access();
	m->mr = ibv_reg_mr(p->pd, at, length, m->access);
	if (m->mr == NULL)
		wrong("%m");
	m->pd = p;
	p->users++;
}

/* A bound window keeps the region. Now and then the memory of another one goes before it. */
static void mr_end(struct model_mr *m)
{
	size_t length = m->mr->length;
	int error;

	if (m->own != NULL && !m->maybe_bound && draw(2) == 0 && munmap(m->own, length) == 0)
		m->own = NULL;
	w.call = "ibv_dereg_mr";
	error = ibv_dereg_mr(m->mr);
	if (error == EBUSY && m->maybe_bound)
		return;
	expect(error, 0);
	m->pd->users--;
	if (m->own != NULL)
		munmap(m->own, length);
	*m = (struct model_mr){ 0 };
}

static void mr_change(struct model_mr *m)
{
	struct model_pd *p = ANY(w.pd);
	uint32_t length = 1 + draw(MEMORY / 2);
	int what = 1 + (int)draw(7), access = some_access(), error;

	if (p->pd == NULL || m->own != NULL)
		return;
	w.call = "ibv_rereg_mr";
	error = ibv_rereg_mr(m->mr, what, p->pd, w.memory + draw(MEMORY - length), length,
			     what & IBV_REREG_MR_CHANGE_ACCESS ? access : 0);
	if (error != 0 && m->maybe_bound && errno == EBUSY)
		return;
	expect(error, 0);
	if (what & IBV_REREG_MR_CHANGE_ACCESS)
		m->access = access;
	if (what & IBV_REREG_MR_CHANGE_PD) {
		m->pd->users--;
		m->pd = p;
		p->users++;
	}
}

void mr_step(void)
{
	struct model_mr *m = ANY(w.mr);

	if (m->mr == NULL)
		mr_make(m);
	else if (draw(10) == 0)
		mr_end(m);
	else if (draw(10) == 0)
		mr_change(m);
}

void mw_step(void)
{
	struct model_mw *m = ANY(w.mw);
	struct model_pd *p = ANY(w.pd);

	if (m->mw != NULL) {
		if (draw(4) != 0)
			return;
		w.call = "ibv_dealloc_mw";
		expect(ibv_dealloc_mw(m->mw), 0);
		m->pd->users--;
		*m = (struct model_mw){ 0 };
		return;
	}
	if (p->pd == NULL)
		return;
	m->mw = ibv_alloc_mw(p->pd, draw(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (m->mw == NULL)
		wrong("%m");
	m->pd = p;
	p->users++;
}

/* ---- completion queues, events ---- */

static void cq_make(struct model_cq *c)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = CQ_DEPTH,
					  .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .cq_context = c };

	c->has_channel = draw(2) == 0;
	c->extended = draw(2) == 0;
	ex.channel = c->has_channel ? w.channel : NULL;
	if (c->extended) {
		struct ibv_cq_ex *cq = ibv_create_cq_ex(w.context, &ex);

		c->cq = cq != NULL ? ibv_cq_ex_to_cq(cq) : NULL;
	} else {
		c->cq = ibv_create_cq(w.context, CQ_DEPTH, c, ex.channel, 0);
	}
	if (c->cq == NULL)
		wrong("%m");
}

static void acknowledge(struct model_cq *c)
{
	if (c->events > 0)
		ibv_ack_cq_events(c->cq, c->events);
	c->events = 0;
}

static void cq_end(struct model_cq *c)
{
	w.call = "ibv_destroy_cq";
	acknowledge(c);
	expect(ibv_destroy_cq(c->cq), c->users > 0 ? EBUSY : 0);
	if (c->users == 0)
		*c = (struct model_cq){ 0 };
}

void cq_step(void)
{
	struct model_cq *c = ANY(w.cq);

	if (c->cq == NULL) {
		cq_make(c);
		return;
	}
	switch (draw(4)) {
	case 0:
		w.call = "ibv_req_notify_cq";
		if (c->has_channel)
			expect(ibv_req_notify_cq(c->cq, (int)draw(2)), 0);
		break;
	case 1:
		w.call = "ibv_resize_cq";
		expect(ibv_resize_cq(c->cq, (int)(CQ_DEPTH - draw(1000))), 0);
		break;
	default:
		cq_end(c);
	}
}

/* The descriptor blocks: if it is readable there must be an event. */
void event_step(void)
{
	struct ibv_cq *cq;
	void *context;
	struct model_cq *c;

	if (!readable(w.channel->fd))
		return;
	if (ibv_get_cq_event(w.channel, &cq, &context) != 0)
		wrong("%m");
	c = context;
	if (c->cq != cq)
		wrong("an event of a CQ that does not exist");
	c->events++;
	if (draw(2) == 0)
		acknowledge(c);
}

void async_step(void)
{
	struct ibv_async_event event;

	while (readable(w.context->async_fd)) {
		if (ibv_get_async_event(w.context, &event) != 0)
			wrong("%m");
		if (event.event_type == IBV_EVENT_CQ_ERR ||
		    event.event_type == IBV_EVENT_DEVICE_FATAL)
			wrong("%s", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
}

/* ---- shared receive queues, address handles ---- */

static void srq_make(struct model_srq *s)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = DEPTH, .max_sge = 2 },
					     .comp_mask =
						     IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					     .srq_type = IBV_SRQT_BASIC };
	struct model_xrcd *x = draw(2) ? ANY(w.xrcd) : NULL;
	struct model_pd *p = ANY(w.pd);
	struct model_cq *c = ANY(w.cq);

	if (p->pd == NULL)
		return;
	init.pd = p->pd;
	if (x != NULL && x->xrcd != NULL && c->cq != NULL) {
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = x->xrcd;
		init.cq = c->cq;
	}
	s->srq = ibv_create_srq_ex(w.context, &init);
	if (s->srq == NULL || init.attr.max_wr != DEPTH)
		wrong("%m, for %u", init.attr.max_wr);
	s->pd = p;
	p->users++;
	if (init.srq_type == IBV_SRQT_BASIC)
		return;
	s->xrcd = x;
	s->cq = c;
	x->users++;
	c->users++;
	expect(ibv_get_srq_num(s->srq, &s->number), 0);
}

static void srq_end(struct model_srq *s)
{
	w.call = "ibv_destroy_srq";
	expect(ibv_destroy_srq(s->srq), s->users > 0 ? EBUSY : 0);
	if (s->users > 0)
		return;
	s->pd->users--;
	if (s->xrcd != NULL) {
		s->xrcd->users--;
		s->cq->users--;
		w.ended_id = w.last_id;
	}
	*s = (struct model_srq){ 0 };
}

void srq_step(void)
{
	struct ibv_srq_attr attr = { .srq_limit = draw(DEPTH) };
	struct model_srq *s = ANY(w.srq);

	if (s->srq == NULL) {
		srq_make(s);
		return;
	}
	switch (draw(3)) {
	case 0:
		srq_end(s);
		break;
	case 1:
		w.call = "ibv_modify_srq";
		expect(ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT), 0);
		break;
	default:
		w.call = "ibv_query_srq";
		expect(ibv_query_srq(s->srq, &attr), 0);
		if (attr.max_wr != DEPTH)
			wrong("%u requests", attr.max_wr);
	}
}

void ah_step(void)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .sgid_index = 1, .hop_limit = 64 } };
	struct model_ah *a = ANY(w.ah);
	struct model_pd *p = ANY(w.pd);

	if (a->ah != NULL) {
		w.call = "ibv_destroy_ah";
		expect(ibv_destroy_ah(a->ah), 0);
		a->pd->users--;
		a->ah = NULL;
		return;
	}
	if (p->pd == NULL)
		return;
	expect(ibv_query_gid(w.context, 1, 1, &attr.grh.dgid), 0);
	a->ah = ibv_create_ah(p->pd, &attr);
	if (a->ah == NULL)
		wrong("%m");
	a->pd = p;
	p->users++;
}

void xrcd_step(void)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct model_xrcd *x = ANY(w.xrcd);

	if (x->xrcd == NULL) {
		x->xrcd = ibv_open_xrcd(w.context, &init);
		if (x->xrcd == NULL)
			wrong("%m");
		return;
	}
	if (x->users == 0 && draw(4) != 0)
		return;
	w.call = "ibv_close_xrcd";
	expect(ibv_close_xrcd(x->xrcd), x->users > 0 ? EBUSY : 0);
	if (x->users == 0)
		x->xrcd = NULL;
}

/* ---- the end ---- */

static void cqs_end(void)
{
	struct ibv_wc wc;

	for (struct model_cq *c = w.cq; c < w.cq + CQS; c++) {
		if (c->cq == NULL)
			continue;
		if (ibv_poll_cq(c->cq, 1, &wc) != 0)
			wrong("a completion is left, of queue pair %u", wc.qp_num);
		cq_end(c);
	}
	if (readable(w.channel->fd))
		wrong("an event is left");
	expect(ibv_destroy_comp_channel(w.channel), 0);
}

/* There are no queue pairs any more. What XRC targets received is still there. */
void objects_end(void)
{
	while (poll_all())
		;
	for (uint32_t i = 0; i < MWS; i++)
		if (w.mw[i].mw != NULL)
			expect(ibv_dealloc_mw(w.mw[i].mw), 0);
	for (struct model_mr *m = w.mr; m < w.mr + MRS; m++)
		if (m->mr != NULL) {
			m->maybe_bound = false;
			mr_end(m);
		}
	for (struct model_srq *s = w.srq; s < w.srq + SRQS; s++)
		if (s->srq != NULL)
			srq_end(s);
	for (uint32_t i = 0; i < AHS; i++)
		if (w.ah[i].ah != NULL)
			expect(ibv_destroy_ah(w.ah[i].ah), 0);
	for (uint32_t i = 0; i < XRCDS; i++)
		if (w.xrcd[i].xrcd != NULL)
			expect(ibv_close_xrcd(w.xrcd[i].xrcd), 0);
	cqs_end();
	for (uint32_t i = 0; i < PDS; i++)
		if (w.pd[i].pd != NULL)
			expect(ibv_dealloc_pd(w.pd[i].pd), 0);
	munmap(w.memory, MEMORY);
	expect(ibv_close_device(w.context), 0);
}
