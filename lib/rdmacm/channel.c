/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <sys/socket.h>

#include "config/limits.h"
#include "queue/cancel.h"
#include "rdmacm/types.h"

static struct channel *channels;

static void enter(struct channel *ch)
{
	pthread_mutex_lock(&cm_lock);
	ch->next = channels;
	channels = ch;
	pthread_mutex_unlock(&cm_lock);
}

static void leave(struct channel *ch)
{
	pthread_mutex_lock(&cm_lock);
	ch->destroyed = true;
	for (struct channel **link = &channels; *link != NULL; link = &(*link)->next) {
		if (*link == ch) {
			*link = ch->next;
			break;
		}
	}
	pthread_mutex_unlock(&cm_lock);
}

/*
 * Called in the child of a fork, where cm_lock is held. The child's copies must neither keep a dead
 * parent's channel alive nor take the parent's octets.
 */
void channels_forked(void)
{
	for (struct channel *ch = channels; ch != NULL; ch = ch->next) {
		own_file_close(&ch->file, ch->rdma.fd);
		ch->rdma.fd = -1;
	}
}

static void destroy_in_engine(struct cm_device *d, uint32_t handle)
{
	struct request_handle request = { .handle = handle };
	struct reply_empty reply;

	COMMAND(d, CM_DESTROY_CHANNEL, &request, &reply);
}

static int create_in_engine(struct channel *ch)
{
	struct carrier_descriptors received = { 0 };
	struct request_empty request = { 0 };
	struct reply_cm_channel reply;
	int error =
		uroce_context_command(ch->device->context, COMMAND_CM_CREATE_CHANNEL, &request.h,
				      sizeof(request), &reply.h, sizeof(reply), &received);

	if (error != 0)
		return error;
	if (received.count != 1) { /* it was sent, but this process has no free descriptor */
		destroy_in_engine(ch->device, reply.handle);
		return EMFILE;
	}
	ch->handle = reply.handle;
	ch->ring = uroce_arena_at(ch->device->context, reply.ring_offset);
	ch->rdma.fd = received.fd[0];
	ch->file = own_file_of(received.fd[0]);
	return 0;
}

static int create(struct channel *ch)
{
	int error = ENODEV;

	/* Only a command shows that an engine is gone. Then another engine may be there. */
	for (int tries = 0; tries < 2 && error == ENODEV; tries++) {
		ch->device = device_home();
		if (ch->device == NULL)
			return errno;
		error = create_in_engine(ch);
	}
	return error;
}

/*
 * rdma_create_event_channel(3). NULL with errno on failure. Free it with
 * rdma_destroy_event_channel.
 */
EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	int error;

	if (ch == NULL)
		return NULL;
	ch->idle_fd = -1;
	error = create(ch);
	if (error != 0) {
		free(ch);
		errno = error;
		return NULL;
	}
	enter(ch);
	return &ch->rdma;
}

/*
 * Some programs (rping) destroy a channel while another thread waits on it or is about to. With the
 * kernel's rdma_cm that thread stays in the kernel until the process ends. Here, too, the thread
 * never returns. So a destroyed channel's memory is kept until LIMIT_CM_CHANNELS_KEPT others were
 * destroyed after it.
 */
static struct channel *kept, **kept_last = &kept; /* the oldest first */

/*
 * The caller holds cm_lock. Channels with waiting threads do not count, because their number is
 * limited by that of the threads.
 */
static void free_oldest(void)
{
	struct channel **oldest = NULL, *ch;
	uint32_t n = 0;

	for (struct channel **link = &kept; *link != NULL; link = &(*link)->next)
		if ((*link)->waiting == 0 && n++ == 0)
			oldest = link;
	if (n <= LIMIT_CM_CHANNELS_KEPT)
		return;
	ch = *oldest;
	*oldest = ch->next;
	if (ch->next == NULL)
		kept_last = oldest;
	free(ch);
}

static void keep(struct channel *ch)
{
	pthread_mutex_lock(&cm_lock);
	ch->next = NULL;
	*kept_last = ch;
	kept_last = &ch->next;
	free_oldest();
	pthread_mutex_unlock(&cm_lock);
}

/* rdma_destroy_event_channel(3). A thread that waits on the channel never returns. */
EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct channel *ch = channel_of(channel);
	int fd = channel->fd, cancel = cancel_off();

	leave(ch);
	destroy_in_engine(ch->device, ch->handle);
	channel->fd = -1;
	if (fd >= 0)
		close(fd);
	if (ch->idle_fd >= 0)
		close(ch->idle_fd);
	keep(ch);
	cancel_restore(cancel);
}

/* `channel` may point to freed memory, because the program may have destroyed the channel. */
static bool is_open(const struct rdma_event_channel *channel)
{
	const struct channel *ch = channels;

	while (ch != NULL && &ch->rdma != channel)
		ch = ch->next;
	return ch != NULL;
}

void channel_drop_octets(const struct rdma_event_channel *channel, uint32_t octets)
{
	uint8_t octet;
	int cancel;

	if (octets == 0 || !is_open(channel))
		return;
	cancel = cancel_off();
	/* If octets are missing here, threads took them. Those threads will find no event. */
	while (octets > 0 && recv(channel->fd, &octet, sizeof(octet), MSG_DONTWAIT) == 1)
		octets--;
	cancel_restore(cancel);
}

void channel_enter(struct channel *ch)
{
	pthread_mutex_lock(&cm_lock);
	ch->waiting++;
	pthread_mutex_unlock(&cm_lock);
}

void channel_leave(struct channel *ch)
{
	pthread_mutex_lock(&cm_lock);
	ch->waiting--;
	pthread_mutex_unlock(&cm_lock);
}

static bool is_destroyed(struct channel *ch)
{
	bool destroyed;

	pthread_mutex_lock(&cm_lock);
	destroyed = ch->destroyed;
	pthread_mutex_unlock(&cm_lock);
	return destroyed;
}

/* The thread may be cancelled here, as in rdma_get_cm_event(3) with the kernel's rdma_cm. */
int channel_wait(struct channel *ch, int cancelstate)
{
	uint8_t octet;
	ssize_t n = 0;
	int error;

	if (device_is_inherited(ch->device))
		return ENODEV;
	pthread_setcancelstate(cancelstate, &cancelstate);
	if (!is_destroyed(ch))
		n = recv(ch->rdma.fd, &octet, sizeof(octet), 0);
	error = n == 1 ? 0 : n == 0 || errno == ECONNRESET ? ENODEV : errno;
	while (n != 1 && is_destroyed(ch))
		pause();
	pthread_setcancelstate(cancelstate, NULL);
	return error;
}
