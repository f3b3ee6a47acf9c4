/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs on librpma, which replicates memory: the client writes, flushes, reads and sends to
 * the server's memory, and both look at what they have then.
 * usage: rpma server|client ADDRESS PORT
 */
#include <arpa/inet.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	(1u << 20)
#define NOTE	64u /* octets of a message */
#define ROUNDS	200u
#define WRITTEN 0x11111111u
#define LAST	0x22222222u

/* Offsets in the memory of either side. */
#define WORD_AT	 0u /* of the atomic write */
#define NOTES_AT 4096u
#define BLOCK_AT 65536u
#define BACK_AT	 (SIZE / 2)
#define BLOCK	 100000u

/* What the server tells in the private data of the connection. */
struct told {
	uint32_t size;
	uint8_t descriptor[64];
};

static struct rpma_peer *peer;
static struct rpma_mr_local *mr;
static uint8_t *memory;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "rpma: %s: %s\n", what, why);
	exit(1);
}

/* A call of librpma, which returns 0 or an error. */
#define TRY(call)                                           \
	do {                                                \
		int error_ = (call);                        \
		if (error_ != 0)                            \
			fail(#call, rpma_err_2str(error_)); \
	} while (0)
#define EXPECT(condition)                           \
	do {                                        \
		if (!(condition))                   \
			fail(#condition, "not so"); \
	} while (0)

static void await_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	TRY(rpma_conn_next_event(conn, &event));
	if (event != expected)
		fail("another event", rpma_utils_conn_event_2str(event));
}

/*
 * The next completion of cq; it must be a success. With a connection: its queues share a completion
 * channel, and cq is its only queue that completes anything.
 */
static struct ibv_wc await_completion(struct rpma_cq *cq, struct rpma_conn *sharing)
{
	struct ibv_wc wc;
	int got, error;

	while ((error = rpma_cq_get_wc(cq, 1, &wc, &got)) == RPMA_E_NO_COMPLETION) {
		struct rpma_cq *woken = cq;
		bool receives = false;

		if (sharing == NULL)
			TRY(rpma_cq_wait(cq));
		else
			TRY(rpma_conn_wait(sharing, 0, &woken, &receives));
		EXPECT(woken == cq && !receives);
	}
	TRY(error);
	if (wc.status != IBV_WC_SUCCESS)
		fail("completion", ibv_wc_status_str(wc.status));
	return wc;
}

static uint8_t octet(uint32_t round, uint32_t i)
{
	return (uint8_t)(round * 7 + i * 13 + (i >> 8));
}

static void make_ready(const char *address, enum rpma_util_ibv_context_type type)
{
	const int usage =
		RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
		RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
	struct ibv_context *context;
	int odp;

	TRY(rpma_utils_get_ibv_context(address, type, &context));
	TRY(rpma_utils_ibv_context_is_odp_capable(context, &odp));
	EXPECT(odp == 1);
	memory = aligned_alloc(4096, SIZE);
	EXPECT(memory != NULL);
	memset(memory, 0, SIZE);
	TRY(rpma_peer_new(context, &peer));
	TRY(rpma_mr_reg(peer, memory, SIZE, usage, &mr));
}

/* ---- the server: a shared receive queue with a completion queue of its own ---- */

static void look_at(const struct ibv_wc *wc, uint32_t round)
{
	uint64_t word;

	memcpy(&word, memory + WORD_AT, sizeof(word));
	EXPECT(word == round + 1);
	for (uint32_t i = 0; i < BLOCK; i += 997)
		EXPECT(memory[BLOCK_AT + i] == octet(round, i));
	if (wc->opcode == IBV_WC_RECV) {
		EXPECT(wc->byte_len == NOTE && ntohl(wc->imm_data) == LAST);
		EXPECT(memory[NOTES_AT + wc->wr_id * NOTE] == octet(round, 0));
	} else {
		EXPECT(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc->imm_data) == WRITTEN);
	}
}

static void serve(const char *address, const char *port)
{
	struct told told;
	const struct rpma_conn_private_data data = { &told, sizeof(told) };
	size_t size;
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_srq *srq;
	struct rpma_cq *rcq;
	struct rpma_ep *ep;

	TRY(rpma_mr_get_descriptor_size(mr, &size));
	EXPECT(size <= sizeof(told.descriptor));
	told.size = (uint32_t)size;
	TRY(rpma_mr_get_descriptor(mr, told.descriptor));
	TRY(rpma_srq_cfg_new(&srq_cfg));
	TRY(rpma_srq_cfg_set_rq_size(srq_cfg, 16));
	TRY(rpma_srq_cfg_set_rcq_size(srq_cfg, 16));
	TRY(rpma_srq_new(peer, srq_cfg, &srq));
	TRY(rpma_srq_cfg_delete(&srq_cfg));
	TRY(rpma_srq_get_rcq(srq, &rcq));
	for (uintptr_t i = 0; i < 16; i++)
		TRY(rpma_srq_recv(srq, mr, NOTES_AT + i * NOTE, NOTE, (void *)i));
	TRY(rpma_conn_cfg_new(&cfg));
	TRY(rpma_conn_cfg_set_srq(cfg, srq));
	TRY(rpma_ep_listen(peer, address, port, &ep));
	puts("listening");
	fflush(stdout);
	TRY(rpma_ep_next_conn_req(ep, cfg, &req));
	TRY(rpma_conn_req_connect(&req, &data, &conn));
	TRY(rpma_conn_cfg_delete(&cfg));
	await_event(conn, RPMA_CONN_ESTABLISHED);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct ibv_wc wc = await_completion(rcq, NULL);

		look_at(&wc, n);
		TRY(rpma_srq_recv(srq, mr, NOTES_AT + wc.wr_id * NOTE, NOTE, (void *)wc.wr_id));
		/* The client goes on when it reads this word. */
		__atomic_store_n((uint64_t *)(memory + WORD_AT + 8), n + 1, __ATOMIC_RELEASE);
	}
	await_event(conn, RPMA_CONN_CLOSED);
	TRY(rpma_conn_disconnect(conn));
	TRY(rpma_conn_delete(&conn));
	TRY(rpma_srq_delete(&srq));
	TRY(rpma_ep_shutdown(&ep));
}

/* ---- the client: one completion channel for all of a connection ---- */

/* The next completion; its wr_id must be that of this request. */
static void complete(struct rpma_conn *conn, uintptr_t request)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	TRY(rpma_conn_get_cq(conn, &cq));
	wc = await_completion(cq, conn);
	EXPECT(wc.wr_id == request);
}

/* The server has seen what came before. */
static void await_server(struct rpma_conn *conn, const struct rpma_mr_remote *there, uint64_t seen)
{
	uint64_t *word = (uint64_t *)(memory + BACK_AT);

	do {
		TRY(rpma_read(conn, mr, BACK_AT, there, WORD_AT + 8, 8, RPMA_F_COMPLETION_ALWAYS,
			      (void *)9));
		complete(conn, 9);
	} while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen);
}

static void play(struct rpma_conn *conn, struct rpma_mr_remote *there, uint32_t round)
{
	const int always = RPMA_F_COMPLETION_ALWAYS, errors = RPMA_F_COMPLETION_ON_ERROR;
	const enum rpma_flush_type flush =
		round % 3 == 0 ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
	const uint64_t word = round + 1;

	for (uint32_t i = 0; i < BLOCK; i++)
		memory[BLOCK_AT + i] = octet(round, i);
	TRY(rpma_write(conn, there, BLOCK_AT, mr, BLOCK_AT, BLOCK, errors, NULL));
	TRY(rpma_flush(conn, there, BLOCK_AT, BLOCK, flush, always, (void *)1));
	complete(conn, 1);
	TRY(rpma_atomic_write(conn, there, WORD_AT, (const char *)&word, always, (void *)2));
	complete(conn, 2);
	TRY(rpma_read(conn, mr, BACK_AT, there, BLOCK_AT, BLOCK, always, (void *)3));
	complete(conn, 3);
	EXPECT(memcmp(memory + BACK_AT, memory + BLOCK_AT, BLOCK) == 0);
	if (round % 2 == 0)
		TRY(rpma_send_with_imm(conn, mr, BLOCK_AT, NOTE, always, LAST, (void *)4));
	else
		TRY(rpma_write_with_imm(conn, there, BLOCK_AT, mr, BLOCK_AT, NOTE, always, WRITTEN,
					(void *)4));
	complete(conn, 4);
	await_server(conn, there, word);
}

static struct rpma_conn *connect_to(const char *address, const char *port)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	TRY(rpma_conn_cfg_new(&cfg));
	TRY(rpma_conn_cfg_set_compl_channel(cfg, true));
	TRY(rpma_conn_req_new(peer, address, port, cfg, &req));
	TRY(rpma_conn_req_connect(&req, NULL, &conn));
	TRY(rpma_conn_cfg_delete(&cfg));
	await_event(conn, RPMA_CONN_ESTABLISHED);
	return conn;
}

static void ask(const char *address, const char *port)
{
	struct rpma_conn *conn = connect_to(address, port);
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *persistent;
	struct rpma_mr_remote *there;
	const struct told *told;
	size_t size;

	TRY(rpma_conn_get_private_data(conn, &data));
	EXPECT(data.len >= sizeof(*told));
	told = data.ptr;
	TRY(rpma_mr_remote_from_descriptor(told->descriptor, told->size, &there));
	TRY(rpma_mr_remote_get_size(there, &size));
	EXPECT(size == SIZE);
	TRY(rpma_peer_cfg_new(&persistent));
	TRY(rpma_peer_cfg_set_direct_write_to_pmem(persistent, true));
	TRY(rpma_conn_apply_remote_peer_cfg(conn, persistent));
	TRY(rpma_peer_cfg_delete(&persistent));
	for (uint32_t round = 0; round < ROUNDS; round++)
		play(conn, there, round);
	TRY(rpma_conn_disconnect(conn));
	await_event(conn, RPMA_CONN_CLOSED);
	TRY(rpma_mr_remote_delete(&there));
	TRY(rpma_conn_delete(&conn));
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (strcmp(argv[1], "server") == 0) {
		make_ready(argv[2], RPMA_UTIL_IBV_CONTEXT_LOCAL);
		serve(argv[2], argv[3]);
	} else {
		make_ready(argv[2], RPMA_UTIL_IBV_CONTEXT_REMOTE);
		ask(argv[2], argv[3]);
	}
	TRY(rpma_mr_dereg(&mr));
	TRY(rpma_peer_delete(&peer));
	free(memory);
	printf("rpma: %u rounds agree\n", ROUNDS);
	return 0;
}
