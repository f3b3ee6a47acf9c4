/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding and decoding of the messages. Both use one table of fields for each message (IBTA 12.6).
 */
#include <string.h>

#include "base/bits.h"
#include "cm/mad.h"

#define HEADER	       24u
#define METHOD_SEND    0x03u
#define BASE_VERSION   1u
#define MEMBER(member) offsetof(struct cm_message, member), sizeof(((struct cm_message *)0)->member)

/* A field of `bits` bits in the big-endian word at `octet`; its lowest bit is bit `shift`. */
struct field {
	uint8_t octet; /* after the MAD header */
	uint8_t word; /* size in octets: 1, 2, 4, 8; 16: a GID */
	uint8_t shift;
	uint8_t bits;
	uint16_t member; /* offset in struct cm_message */
	uint16_t size;
};

#define WHOLE(octet, width, member)                          \
	{                                                    \
		octet, (width) / 8, 0, width, MEMBER(member) \
	}
#define PART(octet, word, shift, bits, member)           \
	{                                                \
		octet, word, shift, bits, MEMBER(member) \
	}
#define GID(octet, member)                      \
	{                                       \
		octet, 16, 0, 0, MEMBER(member) \
	}
#define COMM_IDS WHOLE(0, 32, local_id), WHOLE(4, 32, remote_id)

/* The addresses of a path. Its other fields have different places in a REQ and in a LAP. */
#define PATH_ADDRESSES(at, path)                                                \
	WHOLE(at, 16, path.local_lid), WHOLE((at) + 2, 16, path.remote_lid),    \
		GID((at) + 4, path.local_gid), GID((at) + 20, path.remote_gid), \
		PART((at) + 36, 4, 12, 20, path.flow_label)
#define REQ_PATH(at, path)                                                                      \
	PATH_ADDRESSES(at, path), PART((at) + 39, 1, 0, 6, path.packet_rate),                   \
		WHOLE((at) + 40, 8, path.traffic_class), WHOLE((at) + 41, 8, path.hop_limit),   \
		PART((at) + 42, 1, 4, 4, path.sl), PART((at) + 42, 1, 3, 1, path.subnet_local), \
		PART((at) + 43, 1, 3, 5, path.ack_timeout)

static const struct field req[] = {
	WHOLE(0, 32, local_id),
	WHOLE(5, 8, ece_vendor[0]),
	WHOLE(6, 8, ece_vendor[1]),
	WHOLE(7, 8, ece_vendor[2]),
	WHOLE(8, 64, service_id),
	WHOLE(16, 64, ca_guid),
	WHOLE(28, 32, qkey),
	PART(32, 4, 8, 24, qpn),
	WHOLE(35, 8, responder_resources),
	WHOLE(39, 8, initiator_depth),
	PART(43, 1, 3, 5, remote_response_timeout),
	PART(43, 1, 1, 2, transport),
	PART(43, 1, 0, 1, flow_control),
	PART(44, 4, 8, 24, starting_psn),
	PART(47, 1, 3, 5, local_response_timeout),
	PART(47, 1, 0, 3, retry_count),
	WHOLE(48, 16, pkey),
	PART(50, 1, 4, 4, path_mtu),
	PART(50, 1, 0, 3, rnr_retry_count),
	PART(51, 1, 4, 4, max_cm_retries),
	PART(51, 1, 3, 1, srq),
	PART(51, 1, 0, 3, extended_transport),
	REQ_PATH(52, primary),
	REQ_PATH(96, alternate),
};

static const struct field mra[] = {
	COMM_IDS,
	PART(8, 1, 6, 2, about),
	PART(9, 1, 3, 5, service_timeout),
};

static const struct field rej[] = {
	COMM_IDS,
	PART(8, 1, 6, 2, about),
	PART(9, 1, 1, 7, information_length),
	WHOLE(10, 16, reason),
};

static const struct field rep[] = {
	COMM_IDS,
	WHOLE(8, 32, qkey),
	PART(12, 4, 8, 24, qpn),
	WHOLE(15, 8, ece_vendor[0]),
	PART(16, 4, 8, 24, eecn),
	WHOLE(19, 8, ece_vendor[1]),
	PART(20, 4, 8, 24, starting_psn),
	WHOLE(23, 8, ece_vendor[2]),
	WHOLE(24, 8, responder_resources),
	WHOLE(25, 8, initiator_depth),
	PART(26, 1, 3, 5, target_ack_delay),
	PART(26, 1, 1, 2, failover_accepted),
	PART(26, 1, 0, 1, flow_control),
	PART(27, 1, 5, 3, rnr_retry_count),
	PART(27, 1, 4, 1, srq),
	WHOLE(28, 64, ca_guid),
};

static const struct field ids_only[] = { COMM_IDS };

static const struct field dreq[] = { COMM_IDS, PART(8, 4, 8, 24, qpn) };

static const struct field lap[] = {
	COMM_IDS,
	PART(12, 4, 8, 24, qpn),
	PART(15, 1, 3, 5, remote_response_timeout),
	PATH_ADDRESSES(20, alternate),
	WHOLE(59, 8, alternate.traffic_class),
	WHOLE(60, 8, alternate.hop_limit),
	PART(61, 1, 0, 6, alternate.packet_rate),
	PART(62, 1, 4, 4, alternate.sl),
	PART(62, 1, 3, 1, alternate.subnet_local),
	PART(63, 1, 3, 5, alternate.ack_timeout),
};

static const struct field apr[] = {
	COMM_IDS,
	WHOLE(8, 8, information_length),
	WHOLE(9, 8, status),
};

static const struct field sidr_req[] = {
	WHOLE(0, 32, local_id),
	WHOLE(4, 16, pkey),
	WHOLE(8, 64, service_id),
};

static const struct field sidr_rep[] = {
	WHOLE(0, 32, local_id),	    WHOLE(4, 8, status),	WHOLE(5, 8, information_length),
	WHOLE(6, 8, ece_vendor[0]), WHOLE(7, 8, ece_vendor[1]), WHOLE(11, 8, ece_vendor[2]),
	PART(8, 4, 8, 24, qpn),	    WHOLE(12, 64, service_id),	WHOLE(20, 32, qkey),
};

/* Where private data and additional information are. Private data always extends to the end. */
static const struct layout {
	const struct field *field;
	uint8_t fields;
	uint8_t information; /* octet after the header; 0: none */
	uint8_t private_at;
	uint8_t private_size;
	char name[9];
} layouts[] = {
	[CM_REQ - CM_REQ] = { req, ARRAY_SIZE(req), 0, 140, 92, "REQ" },
	[CM_MRA - CM_REQ] = { mra, ARRAY_SIZE(mra), 0, 10, 222, "MRA" },
	[CM_REJ - CM_REQ] = { rej, ARRAY_SIZE(rej), 12, 84, 148, "REJ" },
	[CM_REP - CM_REQ] = { rep, ARRAY_SIZE(rep), 0, 36, 196, "REP" },
	[CM_RTU - CM_REQ] = { ids_only, ARRAY_SIZE(ids_only), 0, 8, 224, "RTU" },
	[CM_DREQ - CM_REQ] = { dreq, ARRAY_SIZE(dreq), 0, 12, 220, "DREQ" },
	[CM_DREP - CM_REQ] = { ids_only, ARRAY_SIZE(ids_only), 0, 8, 224, "DREP" },
	[CM_SIDR_REQ - CM_REQ] = { sidr_req, ARRAY_SIZE(sidr_req), 0, 16, 216, "SIDR_REQ" },
	[CM_SIDR_REP - CM_REQ] = { sidr_rep, ARRAY_SIZE(sidr_rep), 24, 96, 136, "SIDR_REP" },
	[CM_LAP - CM_REQ] = { lap, ARRAY_SIZE(lap), 0, 64, 168, "LAP" },
	[CM_APR - CM_REQ] = { apr, ARRAY_SIZE(apr), 12, 84, 148, "APR" },
};

static const struct layout *layout_of(uint32_t attribute)
{
	return attribute - CM_REQ < ARRAY_SIZE(layouts) ? &layouts[attribute - CM_REQ] : NULL;
}

size_t cm_private_size(uint8_t attribute)
{
	const struct layout *l = layout_of(attribute);

	return l != NULL ? l->private_size : 0;
}

const char *cm_attribute_name(uint8_t attribute)
{
	const struct layout *l = layout_of(attribute);

	return l != NULL ? l->name : "?";
}

static uint64_t load(const uint8_t *from, unsigned int octets)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < octets; i++)
		v = v << 8 | from[i];
	return v;
}

static void store(uint8_t *to, unsigned int octets, uint64_t v)
{
	for (unsigned int i = octets; i-- > 0; v >>= 8)
		to[i] = (uint8_t)v;
}

/* Reads a member of struct cm_message as a number. */
static uint64_t member_get(const struct cm_message *m, const struct field *f)
{
	const uint8_t *at = (const uint8_t *)m + f->member;
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	switch (f->size) {
	case 8:
		memcpy(&wide, at, 8);
		return wide;
	case 4:
		memcpy(&word, at, 4);
		return word;
	case 2:
		memcpy(&half, at, 2);
		return half;
	default:
		return *at;
	}
}

static void member_set(struct cm_message *m, const struct field *f, uint64_t v)
{
	uint8_t *at = (uint8_t *)m + f->member;
	uint32_t word = (uint32_t)v;
	uint16_t half = (uint16_t)v;

	switch (f->size) {
	case 8:
		memcpy(at, &v, 8);
		break;
	case 4:
		memcpy(at, &word, 4);
		break;
	case 2:
		memcpy(at, &half, 2);
		break;
	default:
		*at = (uint8_t)v;
	}
}

static uint64_t mask_of(const struct field *f)
{
	return f->bits == 64 ? UINT64_MAX : (UINT64_C(1) << f->bits) - 1;
}

static void field_decode(struct cm_message *m, const struct field *f, const uint8_t *body)
{
	if (f->word == 16)
		memcpy((uint8_t *)m + f->member, body + f->octet, 16);
	else
		member_set(m, f, load(body + f->octet, f->word) >> f->shift & mask_of(f));
}

/* Fields share words: changes only the bits of this field. */
static void field_encode(const struct cm_message *m, const struct field *f, uint8_t *body)
{
	uint64_t word;

	if (f->word == 16) {
		memcpy(body + f->octet, (const uint8_t *)m + f->member, 16);
		return;
	}
	word = load(body + f->octet, f->word) & ~(mask_of(f) << f->shift);
	store(body + f->octet, f->word, word | (member_get(m, f) & mask_of(f)) << f->shift);
}

static enum cm_decode check_header(const uint8_t *mad, size_t length)
{
	if (length != MAD_OCTETS)
		return CM_MALFORMED;
	/* Only responses have a status, and CM messages are not responses (IBTA 13.4.7). */
	if (mad[0] != BASE_VERSION || mad[1] != MAD_CLASS_CM || mad[3] != METHOD_SEND ||
	    load(mad + 4, 2) != 0 || layout_of((uint32_t)load(mad + 16, 2)) == NULL)
		return CM_NOT_CM;
	return mad[2] == MAD_CLASS_VERSION ? CM_DECODED : CM_WRONG_VERSION;
}

/* Whether the message uses the attribute modifier. */
static bool has_options(uint8_t attribute)
{
	return attribute == CM_REQ || attribute == CM_REP || attribute == CM_SIDR_REP;
}

enum cm_decode cm_message_decode(struct cm_message *m, const uint8_t *mad, size_t length)
{
	enum cm_decode result = check_header(mad, length);
	const uint8_t *body = mad + HEADER;
	const struct layout *l;

	memset(m, 0, sizeof(*m));
	if (result == CM_MALFORMED || result == CM_NOT_CM)
		return result;
	m->attribute = (uint8_t)load(mad + 16, 2);
	m->transaction = load(mad + 8, 8);
	m->local_id = (uint32_t)load(body, 4); /* at the same place in every message and version */
	if (result != CM_DECODED)
		return result;
	l = layout_of(m->attribute);
	for (unsigned int i = 0; i < l->fields; i++)
		field_decode(m, &l->field[i], body);
	if (has_options(m->attribute))
		m->ece_options = (uint32_t)load(mad + 20, 4);
	if (m->information_length > MAD_ARI_MAX)
		return CM_MALFORMED;
	if (l->information != 0)
		memcpy(m->information, body + l->information, MAD_ARI_MAX);
	memcpy(m->private_data, body + l->private_at, l->private_size);
	return CM_DECODED;
}

void cm_message_encode(const struct cm_message *m, uint8_t *mad)
{
	const struct layout *l = layout_of(m->attribute);
	uint8_t *body = mad + HEADER;

	memset(mad, 0, MAD_OCTETS);
	mad[0] = BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CLASS_VERSION;
	mad[3] = METHOD_SEND;
	store(mad + 8, 8, m->transaction);
	store(mad + 16, 2, m->attribute);
	if (has_options(m->attribute))
		store(mad + 20, 4, m->ece_options);
	for (unsigned int i = 0; i < l->fields; i++)
		field_encode(m, &l->field[i], body);
	if (l->information != 0)
		memcpy(body + l->information, m->information, MAD_ARI_MAX);
	memcpy(body + l->private_at, m->private_data, l->private_size);
}

/* ---- the RDMA CM's header ---- */

bool cm_ip_header_decode(struct cm_ip_header *h, const uint8_t *p)
{
	memset(h, 0, sizeof(*h));
	h->ip_version = p[1] >> 4;
	h->source_port = (uint16_t)load(p + 2, 2);
	memcpy(&h->source, p + 4, 16);
	memcpy(&h->destination, p + 20, 16);
	if (p[0] != 0 || (h->ip_version != 4 && h->ip_version != 6))
		return false;
	if (h->ip_version == 4) { /* twelve unused octets, then the address */
		static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

		memcpy(&h->source, mapped, sizeof(mapped));
		memcpy(&h->destination, mapped, sizeof(mapped));
	}
	return true;
}

void cm_ip_header_encode(const struct cm_ip_header *h, uint8_t *p)
{
	memset(p, 0, CM_IP_HEADER);
	p[1] = (uint8_t)(h->ip_version << 4);
	store(p + 2, 2, h->source_port);
	if (h->ip_version == 4) {
		memcpy(p + 4 + 12, &h->source.octet[12], 4);
		memcpy(p + 20 + 12, &h->destination.octet[12], 4);
		return;
	}
	memcpy(p + 4, &h->source, 16);
	memcpy(p + 20, &h->destination, 16);
}
