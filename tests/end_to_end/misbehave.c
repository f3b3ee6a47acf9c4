/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs program that misbehaves, linked against the system's libibverbs:
 *	exec	opens everything and executes /bin/sleep without closing anything
 *	block	posts from memory whose pages its own userfaultfd never delivers
 *	abort	opens a hundred queue pairs and waits to be killed
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OCTETS (1u << 20)

struct program {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[100];
	void *memory;
};

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_qp *make_qp(struct program *p)
{
	struct ibv_qp_init_attr init = { .send_cq = p->cq,
					 .recv_cq = p->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 16, 16, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	if (qp == NULL)
		die("ibv_create_qp");
	return qp;
}

static void open_all(struct program *p, int qps)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list == NULL || list[0] == NULL)
		die("no device");
	p->context = ibv_open_device(list[0]);
	if (p->context == NULL)
		die("ibv_open_device");
	p->pd = ibv_alloc_pd(p->context);
	p->cq = ibv_create_cq(p->context, 256, NULL, NULL, 0);
	p->memory = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->pd == NULL || p->cq == NULL || p->memory == MAP_FAILED)
		die("objects");
	p->mr = ibv_reg_mr(p->pd, p->memory, OCTETS,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (p->mr == NULL)
		die("ibv_reg_mr");
	for (int i = 0; i < qps; i++)
		p->qp[i] = make_qp(p);
}

/* Moves it to RTS, connected to another queue pair of this program. */
static void connect_qp(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = to;
	a.max_dest_rd_atomic = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = *gid;
	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

static void post_write(struct program *p)
{
	struct ibv_sge sge = { (uintptr_t)p->memory, OCTETS / 2, p->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)p->memory + OCTETS / 2;
	wr.wr.rdma.rkey = p->mr->rkey;
	if (ibv_post_send(p->qp[0], &wr, &bad))
		die("ibv_post_send");
}

/* From now on every access to the region waits for this program, which never resolves it. */
static void block_memory(void *memory)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .range = { (uintptr_t)memory, OCTETS },
					.mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &area) != 0)
		die("userfaultfd");
	if (madvise(memory, OCTETS, MADV_DONTNEED) != 0)
		die("madvise");
}

static void block(struct program *p)
{
	union ibv_gid gid;

	open_all(p, 2);
	if (ibv_query_gid(p->context, 1, 1, &gid))
		die("ibv_query_gid");
	connect_qp(p->qp[0], p->qp[1]->qp_num, &gid);
	connect_qp(p->qp[1], p->qp[0]->qp_num, &gid);
	block_memory(p->memory);
	post_write(p);
	printf("posted\n");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	static struct program p;
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "block") == 0)
		block(&p);
	if (strcmp(mode, "exec") == 0) {
		open_all(&p, 2);
		execl("/bin/sh", "sh", "-c", "echo executed; exec sleep 30", (char *)NULL);
	}
	if (strcmp(mode, "abort") == 0) {
		open_all(&p, 100);
		printf("ready\n");
		fflush(stdout);
		pause();
	}
	printf("misbehave exec|block|abort\n");
	return 2;
}
