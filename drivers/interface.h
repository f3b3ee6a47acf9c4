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
 * A socket that hears of links and addresses of this namespace, NULL: none can be had; and whether
 * anything was announced since the last look. It may be announced of any interface. NULL is allowed:
 * nothing happens.
 */
struct mnl_socket *interface_events_open(void);
bool interface_events_happened(struct mnl_socket *events);
void interface_events_close(struct mnl_socket *events);

/*
 * A descriptor to ask with, of this namespace, or -1. A caller that asks again and again keeps one:
 * programs may have taken the last of the process's, and that must not look like a link that is
 * down. -1 where one is wanted: one is made for the question.
 */
int interface_socket(void);

/* Facts of an interface that may be gone: 0, false, unchanged. */
uint32_t ifindex_mtu(int fd, uint32_t ifindex);
bool ifindex_up(int fd, uint32_t ifindex); /* set up by its administrator */
bool ifindex_running(int fd, uint32_t ifindex); /* ... and it has a carrier */
uint32_t ifindex_speed(int fd, uint32_t ifindex); /* Mbit/s; 0: it does not say */
void ifindex_mac(int fd, uint32_t ifindex, struct mac *mac);
void ifindex_name(int fd, uint32_t ifindex, char name[16]); /* IF_NAMESIZE */

/* An ioctl about the interface: r gets its name. 0, or -1 and errno. */
int interface_request(int fd, uint32_t ifindex, unsigned long request, struct ifreq *r);

/*
 * These take a descriptor for a moment. False: there was none, nothing has changed, and it is to be
 * tried again.
 */

/* Whether an interface above it wants frames for other MACs. */
bool ifindex_promiscuous(uint32_t ifindex, bool *promiscuous);
/* Fills p->address: link-local, IPv4, then other IPv6 addresses, each in the kernel's order. */
bool interface_addresses(uint32_t ifindex, struct port *p);

#endif
