/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private functions of rdma-core's library, for the providers' libraries that programs load
 * (perftest loads libmlx5 and libefa with any device). Those libraries find none of their devices
 * here, so they call only the registration in their constructors. The other functions exist so that
 * the programs can be loaded. The prototypes are private to rdma-core, so this file declares its
 * own and does not include verbs.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Functions that return a positive errno; never called with our objects. */
#define COMMAND(name)              \
	EXPORT int name(void);     \
	EXPORT int name(void)      \
	{                          \
		return EOPNOTSUPP; \
	}

/* Functions that return a pointer, or NULL with errno. */
#define CREATOR(name)               \
	EXPORT void *name(void);    \
	EXPORT void *name(void)     \
	{                           \
		errno = EOPNOTSUPP; \
		return NULL;        \
	}

/* Functions that return nothing. */
#define SETTER(name)            \
	EXPORT void name(void); \
	EXPORT void name(void)  \
	{                       \
	}

/* clang-format off */
COMMAND(ibv_cmd_advise_mr)
COMMAND(ibv_cmd_alloc_dm)
COMMAND(ibv_cmd_alloc_mw)
COMMAND(ibv_cmd_alloc_pd)
COMMAND(ibv_cmd_attach_mcast)
COMMAND(ibv_cmd_close_xrcd)
COMMAND(ibv_cmd_create_ah)
COMMAND(ibv_cmd_create_counters)
COMMAND(ibv_cmd_create_cq)
COMMAND(ibv_cmd_create_cq_ex)
COMMAND(ibv_cmd_create_flow)
COMMAND(ibv_cmd_create_flow_action_esp)
COMMAND(ibv_cmd_create_qp)
COMMAND(ibv_cmd_create_qp_ex)
COMMAND(ibv_cmd_create_qp_ex2)
COMMAND(ibv_cmd_create_rwq_ind_table)
COMMAND(ibv_cmd_create_srq)
COMMAND(ibv_cmd_create_srq_ex)
COMMAND(ibv_cmd_create_wq)
COMMAND(ibv_cmd_dealloc_mw)
COMMAND(ibv_cmd_dealloc_pd)
COMMAND(ibv_cmd_dereg_mr)
COMMAND(ibv_cmd_destroy_ah)
COMMAND(ibv_cmd_destroy_counters)
COMMAND(ibv_cmd_destroy_cq)
COMMAND(ibv_cmd_destroy_flow)
COMMAND(ibv_cmd_destroy_flow_action)
COMMAND(ibv_cmd_destroy_qp)
COMMAND(ibv_cmd_destroy_rwq_ind_table)
COMMAND(ibv_cmd_destroy_srq)
COMMAND(ibv_cmd_destroy_wq)
COMMAND(ibv_cmd_detach_mcast)
COMMAND(ibv_cmd_free_dm)
COMMAND(ibv_cmd_get_context)
COMMAND(ibv_cmd_modify_cq)
COMMAND(ibv_cmd_modify_flow_action_esp)
COMMAND(ibv_cmd_modify_qp)
COMMAND(ibv_cmd_modify_qp_ex)
COMMAND(ibv_cmd_modify_srq)
COMMAND(ibv_cmd_modify_wq)
COMMAND(ibv_cmd_open_qp)
COMMAND(ibv_cmd_open_xrcd)
COMMAND(ibv_cmd_poll_cq)
COMMAND(ibv_cmd_post_recv)
COMMAND(ibv_cmd_post_send)
COMMAND(ibv_cmd_post_srq_recv)
COMMAND(ibv_cmd_query_context)
COMMAND(ibv_cmd_query_device_any)
COMMAND(ibv_cmd_query_mr)
COMMAND(ibv_cmd_query_port)
COMMAND(ibv_cmd_query_qp)
COMMAND(ibv_cmd_query_srq)
COMMAND(ibv_cmd_read_counters)
COMMAND(ibv_cmd_reg_dm_mr)
COMMAND(ibv_cmd_reg_dmabuf_mr)
COMMAND(ibv_cmd_reg_mr)
COMMAND(ibv_cmd_req_notify_cq)
COMMAND(ibv_cmd_rereg_mr)
COMMAND(ibv_cmd_resize_cq)
COMMAND(execute_ioctl)

CREATOR(_verbs_init_and_alloc_context)
CREATOR(verbs_open_device)

SETTER(__verbs_log)
SETTER(verbs_init_cq)
SETTER(verbs_set_ops)
SETTER(verbs_uninit_context)
SETTER(verbs_register_driver_34)
/* clang-format on */

EXPORT unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, void *link);
EXPORT unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, void *link)
{
	return num_attrs;
}

EXPORT int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, void *device, const char *format,
				     ...);
EXPORT int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, void *device, const char *format,
				     ...)
{
	errno = ENOENT; /* there is no kernel device */
	return -1;
}

EXPORT extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;
