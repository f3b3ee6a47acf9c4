/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define MOST_TRIES 1000

/* One GET under way. */
struct slot {
	char key[KV_KEY];
	size_t key_length;
	struct kv_bucket bucket[KV_PROBES];
};

struct kv {
	struct rdma_cm_id *id;
	struct kv_place place;
	struct ibv_mr *mr, *slots_mr;
	struct kv_request request;
	struct kv_reply reply;
	unsigned int reads;
	struct slot slot[];
};

static int connect_to(struct kv *k, const char *host)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = k->reads + 1,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .sq_sig_all = 1 };
	struct rdma_conn_param p = { .initiator_depth = 16,
				     .retry_count = 7,
				     .rnr_retry_count = 7 };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	int error;

	if (rdma_getaddrinfo((char *)(uintptr_t)host, (char *)KV_SERVICE, &hints, &to) != 0) {
		errno = EHOSTUNREACH; /* the result is one of getaddrinfo(3), and no errno */
		return -1;
	}
	error = rdma_create_ep(&k->id, to, NULL, &init);
	rdma_freeaddrinfo(to);
	if (error != 0 || rdma_connect(k->id, &p) != 0)
		return -1;
	if (k->id->event->param.conn.private_data_len < sizeof(k->place)) {
		errno = EPROTO;
		return -1;
	}
	memcpy(&k->place, k->id->event->param.conn.private_data, sizeof(k->place));
	return 0;
}

struct kv *kv_open(const char *host, unsigned int reads)
{
	struct kv *k = calloc(1, sizeof(*k) + reads * sizeof(k->slot[0]));

	if (k == NULL)
		return NULL;
	k->reads = reads;
	if (connect_to(k, host) == 0) {
		k->mr = rdma_reg_msgs(k->id, k, sizeof(*k));
		k->slots_mr = rdma_reg_msgs(k->id, k->slot, reads * sizeof(k->slot[0]));
		if (k->mr != NULL && k->slots_mr != NULL)
			return k;
	}
	kv_close(k);
	return NULL;
}

void kv_close(struct kv *k)
{
	int error = errno;

	if (k->mr != NULL)
		rdma_dereg_mr(k->mr);
	if (k->slots_mr != NULL)
		rdma_dereg_mr(k->slots_mr);
	if (k->id != NULL) {
		rdma_disconnect(k->id);
		rdma_destroy_ep(k->id);
	}
	free(k);
	errno = error;
}

/* ---- changes: a message, and the reply ---- */

static int change(struct kv *k, enum kv_what what, const char *key, const void *value,
		  size_t length)
{
	struct ibv_wc wc;

	if (strlen(key) == 0 || strlen(key) > KV_KEY || length > KV_VALUE)
		return EINVAL;
	k->request.what = what;
	k->request.key_length = (uint16_t)strlen(key);
	k->request.value_length = (uint16_t)length;
	memcpy(k->request.key, key, strlen(key));
	if (length > 0)
		memcpy(k->request.value, value, length);
	if (rdma_post_recv(k->id, NULL, &k->reply, sizeof(k->reply), k->mr) != 0 ||
	    rdma_post_send(k->id, NULL, &k->request, sizeof(k->request), k->mr, 0) != 0 ||
	    rdma_get_send_comp(k->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
	    rdma_get_recv_comp(k->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return EIO;
	return k->reply.error;
}

int kv_put(struct kv *k, const char *key, const void *value, size_t length)
{
	return change(k, KV_PUT, key, value, length);
}

int kv_delete(struct kv *k, const char *key)
{
	return change(k, KV_DELETE, key, NULL, 0);
}

/* ---- reads ---- */

int kv_begin(struct kv *k, unsigned int slot, const char *key)
{
	struct slot *s = &k->slot[slot];
	uint64_t bucket;

	s->key_length = strlen(key);
	if (s->key_length == 0 || s->key_length > KV_KEY)
		return EINVAL;
	memcpy(s->key, key, s->key_length);
	bucket = kv_hash(key, s->key_length) % k->place.buckets;
	if (rdma_post_read(k->id, (void *)(uintptr_t)(slot + 1), s->bucket, sizeof(s->bucket),
			   k->slots_mr, 0, k->place.table + bucket * sizeof(struct kv_bucket),
			   k->place.rkey) != 0)
		return EIO;
	return 0;
}

int kv_next(struct kv *k)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(k->id->send_cq, 1, &wc);

	if (n == 0)
		return -1;
	return n < 0 || wc.status != IBV_WC_SUCCESS ? -2 : (int)wc.wr_id - 1;
}

int kv_result(struct kv *k, unsigned int slot, const void **value, size_t *length)
{
	const struct slot *s = &k->slot[slot];
	const struct kv_bucket *found = NULL;

	for (int i = 0; i < KV_PROBES; i++) {
		const struct kv_bucket *b = &s->bucket[i];

		if (!kv_is_whole(b))
			return EAGAIN;
		if (b->key_length == s->key_length && memcmp(b->key, s->key, s->key_length) == 0)
			found = b;
	}
	if (found == NULL)
		return ENOENT;
	*value = found->value;
	*length = found->value_length;
	return 0;
}

int kv_get(struct kv *k, const char *key, void *value, size_t *length)
{
	const void *found;
	int error = EAGAIN;

	for (int tries = 0; error == EAGAIN && tries < MOST_TRIES; tries++) {
		int slot;

		error = kv_begin(k, 0, key);
		if (error != 0)
			return error;
		do {
			slot = kv_next(k);
		} while (slot == -1);
		error = slot < 0 ? EIO : kv_result(k, 0, &found, length);
	}
	if (error == 0)
		memcpy(value, found, *length);
	return error;
}
