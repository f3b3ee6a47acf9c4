/* SPDX-License-Identifier: BSD-3-Clause */
/* A Linux network interface: its properties, and a notice that one of them changed. */
#ifndef DRIVERS_INTERFACE_H
#define DRIVERS_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/envelope.h"

struct ifreq;
struct mnl_socket;
struct port;

/*
 * interface_events_open: a socket for announcements of links and addresses in this namespace. NULL:
 * it cannot be opened. interface_events_happened: whether anything was announced since the last
 * call, for any interface. NULL is allowed, and gives false.
 */
struct mnl_socket *interface_events_open(void);
bool interface_events_happened(struct mnl_socket *events);
void interface_events_close(struct mnl_socket *events);

/*
 * Returns a descriptor for queries in this namespace, or -1. A caller that queries again and again
 * keeps one: programs may have taken the last descriptor of the process, and that must not look
 * like a link that is down. A function that is given -1 opens a descriptor for the query.
 */
int interface_socket(void);

/* Properties of an interface. If the interface is gone: 0, false, or unchanged. */
uint32_t ifindex_mtu(int fd, uint32_t ifindex);
bool ifindex_up(int fd, uint32_t ifindex); /* set up by its administrator */
bool ifindex_running(int fd, uint32_t ifindex); /* ... and it has a carrier */
uint32_t ifindex_speed(int fd, uint32_t ifindex); /* Mbit/s; 0: it does not say */
void ifindex_mac(int fd, uint32_t ifindex, struct mac *mac);
void ifindex_name(int fd, uint32_t ifindex, char name[16]); /* IF_NAMESIZE */

/* Makes an ioctl about the interface, and fills in its name in r. Returns 0, or -1 and errno. */
int interface_request(int fd, uint32_t ifindex, unsigned long request, struct ifreq *r);

/*
 * These open a descriptor for a moment. False: there was none, nothing was changed, and the caller
 * must try again.
 */

/* Whether something above the interface wants frames for other MAC addresses. */
bool ifindex_promiscuous(uint32_t ifindex, bool *promiscuous);
/* Fills p->address: link-local, IPv4, then other IPv6 addresses, each in the kernel's order. */
bool interface_addresses(uint32_t ifindex, struct port *p);

#endif
