/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of windows begin with: an endpoint, a second pair of queue pairs, a region that is
 * only for windows, a window of each type, and functions that post a request and wait for its
 * completion.
 */
#ifndef TESTS_VERBS_WINDOW_RIG_H
#define TESTS_VERBS_WINDOW_RIG_H

#include "rig/endpoint.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define AT     8192u /* offset of windows in the buffer ... */
#define LENGTH 256u /* ... and how long they are */

extern struct endpoint e;
extern struct ibv_mr *region; /* of the buffer */
extern struct ibv_qp *third, *fourth; /* connected to each other */
extern struct ibv_mw *type1, *type2;

void windows_open(void);
void windows_close(void);
/* After an error: makes the queue pairs as new and empties the CQ. */
void reconnect(void);

struct ibv_mw_bind_info info_of(struct ibv_mr *mr, uint32_t at, uint64_t length,
				unsigned int access);
struct ibv_wc one_completion(const char *what);
/* Posts, signaled: 0 or the errno. */
int post(struct ibv_qp *qp, struct ibv_send_wr *wr);
int post_bind1(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info);
int post_bind2(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info);
/* Posts and waits for the completion. */
enum ibv_wc_status bind1(struct ibv_qp *qp, struct ibv_mw_bind_info info);
enum ibv_wc_status bind2(struct ibv_qp *qp, struct ibv_mw_bind_info info);
enum ibv_wc_status invalidate(struct ibv_qp *qp, uint32_t rkey);
enum ibv_wc_status rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t remote,
			uint32_t length, uint32_t rkey);
enum ibv_wc_status write_at(struct ibv_qp *qp, uint32_t at, uint32_t length, uint32_t rkey);

#endif
