/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reasons why something was dropped, refused or failed. One list gives the enumerator, the
 * counter's name and a sentence for each reason. vendor_err of a completion holds the number, and
 * `uroce stat` shows the counters. Append only, because users see the numbers.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

/* X(NAME, counter_name, "sentence") */
#define REASONS(X)                                                                                 \
	X(NONE, ok, "nothing is wrong")                                                            \
	/* frames that never reach a queue pair: wire/decode */                                    \
	X(NOT_ROCE, not_roce, "the frame is not UDP port 4791")                                    \
	X(FRAME_SHORT, frame_short, "the frame ends before its headers do")                        \
	X(IP_HEADER, ip_header, "the IP header is malformed")                                      \
	X(IP_CHECKSUM, ip_checksum, "the IPv4 header checksum is wrong")                           \
	X(IP_OPTIONS, ip_options, "IPv4 options or IPv6 extension headers are not accepted")       \
	X(IP_FRAGMENT, ip_fragment, "IP fragments are not accepted")                               \
	X(LENGTHS_DISAGREE, lengths_disagree, "frame, IP and UDP lengths disagree")                \
	X(VLAN_TAG, vlan_tag, "the VLAN tag is not the port's")                                    \
	X(BTH_SHORT, bth_short, "the UDP payload is too short for a BTH and an ICRC")              \
	X(OPCODE_UNKNOWN, opcode_unknown, "the BTH opcode is not defined")                         \
	X(HEADER_SHORT, header_short, "the packet ends inside the extended headers of its opcode") \
	X(PAD_COUNT, pad_count, "the pad count does not fit the payload")                          \
	X(TVER, tver, "the transport version is not 0")                                            \
	X(ICRC, icrc, "the invariant CRC is wrong")                                                \
	X(ADDRESS_FOREIGN, address_foreign, "the destination address is not the engine's")         \
	X(SOURCE_OWN, source_own,                                                                  \
	  "a packet from the port has an address of this engine as its source")                    \
	X(RX_TRUNCATED, rx_truncated, "the port delivered only a part of the frame")               \
	/* packets that are dropped before they change a queue pair's state */                     \
	X(QPN_UNKNOWN, qpn_unknown, "no queue pair has this number")                               \
	X(QPN_RESERVED, qpn_reserved, "queue pair 0 does not exist on RoCE")                       \
	X(SERVICE_MISMATCH, service_mismatch,                                                      \
	  "the opcode is for another service than the queue pair's")                               \
	X(QP_STATE, qp_state, "the queue pair's state does not accept this packet")                \
	X(PKEY, pkey, "the P_Key does not match")                                                  \
	X(QKEY, qkey, "the Q_Key does not match")                                                  \
	X(ADDRESS_MISMATCH, address_mismatch,                                                      \
	  "source or destination is not the queue pair's peer")                                    \
	X(BUSY, busy, "too many copies of the queue pair are still under way")                     \
	X(HAND_OVER_FULL, hand_over_full, "the ring to another lcore was full")                    \
	/* requests: the responder's verdicts */                                                   \
	X(PSN_AHEAD, psn_ahead, "a packet before this one is missing")                             \
	X(PSN_AHEAD_AGAIN, psn_ahead_again, "a packet is still missing, and was already reported") \
	X(DUPLICATE, duplicate, "a request that was executed before")                              \
	X(DUPLICATE_UNKNOWN, duplicate_unknown,                                                    \
	  "a repeated READ or atomic that is no longer remembered")                                \
	X(OPCODE_SEQUENCE, opcode_sequence, "this opcode may not follow the one before")           \
	X(OPCODE_UNSUPPORTED, opcode_unsupported,                                                  \
	  "the operation is not supported on this service")                                        \
	X(ACCESS_FLAGS, access_flags, "the queue pair does not allow this operation")              \
	X(RD_ATOMIC_LIMIT, rd_atomic_limit, "more READs and atomics outstanding than allowed")     \
	X(LENGTH_PAYLOAD, length_payload,                                                          \
	  "the payload's length does not fit its position in the message")                         \
	X(LENGTH_MESSAGE, length_message, "the message is longer than 2^31 octets")                \
	X(LENGTH_RETH, length_reth, "the payloads' sum is not the RETH length")                    \
	X(LENGTH_RECEIVE, length_receive, "the message is longer than the receive request")        \
	X(ATOMIC_ALIGNMENT, atomic_alignment, "the address of an atomic is not a multiple of 8")   \
	X(RECEIVE_NOT_READY, receive_not_ready, "no receive request is posted")                    \
	X(KEY_UNKNOWN, key_unknown, "no region has this key")                                      \
	X(KEY_PD, key_pd, "the key belongs to another protection domain")                          \
	X(KEY_ACCESS, key_access, "the region does not allow this access")                         \
	X(KEY_RANGE, key_range, "the range is not inside the region")                              \
	X(MEMORY_FAULT, memory_fault, "the registered memory could not be reached")                \
	X(RECEIVE_MEMORY, receive_memory, "a receive request names memory it may not write")       \
	/* responses: the requester's verdicts */                                                  \
	X(ACK_STALE, ack_stale, "an acknowledgement outside the outstanding window")               \
	X(ACK_IMPLIED_NAK, ack_implied_nak,                                                        \
	  "a later acknowledgement shows that a response was lost")                                \
	X(RESPONSE_AHEAD, response_ahead, "a response ahead of the one expected")                  \
	X(RESPONSE_OPCODE, response_opcode, "a response of the wrong kind")                        \
	X(RESPONSE_LENGTH, response_length, "a response with more or less data than asked for")    \
	X(SYNDROME_RESERVED, syndrome_reserved, "a reserved AETH syndrome")                        \
	X(NAK_SEQUENCE, nak_sequence, "the peer missed a packet")                                  \
	X(NAK_INVALID_REQUEST, nak_invalid_request, "the peer calls the request invalid")          \
	X(NAK_REMOTE_ACCESS, nak_remote_access, "the peer refuses access to its memory")           \
	X(NAK_REMOTE_OPERATION, nak_remote_operation, "the peer could not complete the operation") \
	X(NAK_RNR, nak_rnr, "the peer has no receive request posted")                              \
	X(RETRIES_EXHAUSTED, retries_exhausted, "the peer did not answer within the retries")      \
	X(RNR_RETRIES_EXHAUSTED, rnr_retries_exhausted,                                            \
	  "the peer was not ready within the retries")                                             \
	/* local work */                                                                           \
	X(FLUSHED, flushed, "the queue pair is in the error state")                                \
	X(WORK_MALFORMED, work_malformed, "the work request in the queue is malformed")            \
	X(WORK_OPCODE, work_opcode, "the work request's opcode is not supported here")             \
	X(CQ_OVERRUN, cq_overrun, "the completion queue was full")                                 \
	X(CLIENT_GONE, client_gone, "the program that owned the object is gone")                   \
	X(ENGINE_GONE, engine_gone, "the engine is gone")                                          \
	/* sending */                                                                              \
	X(TX_FULL, tx_full, "the port took no more frames for now: they wait")                     \
	X(NO_BUFFER, no_buffer, "no packet buffer was free")                                       \
	X(NEIGHBOUR_UNKNOWN, neighbour_unknown, "the destination's MAC address is not known yet")  \
	X(CNP_RECEIVED, cnp_received, "the network asked to slow down")                            \
	/* appended: the numbers above stay */                                                     \
	X(SRQ_UNKNOWN, srq_unknown,                                                                \
	  "the queue pair's XRC domain has no such shared receive queue")                          \
	X(FLUSH_TYPE, flush_type, "a FLUSH with an undefined placement type or level")             \
	X(INVALIDATE_KEY, invalidate_key,                                                          \
	  "no window of this queue pair has the key to invalidate")                                \
	/* raw packets */                                                                          \
	X(RAW_ROCE, raw_roce, "raw queue pairs may not send to UDP port 4791")                     \
	X(FRAME_LENGTH, frame_length, "the frame is longer than the port carries")                 \
	X(WINDOW_BOUND, window_bound, "the type 2 window is bound already")                        \
	/* the kernel's interface beside the port */                                               \
	X(KERNEL_FULL, kernel_full, "the ring of frames for the kernel was full")                  \
	X(KERNEL_REFUSED, kernel_refused,                                                          \
	  "the kernel did not take the frame: its interface is down")                              \
	X(KERNEL_LENGTH, kernel_length, "the kernel sent a frame longer than the port carries")    \
	/* queue pairs and their peers */                                                          \
	X(SENDER_FOREIGN, sender_foreign,                                                          \
	  "the queue pair that sent the packet is not the receiver's peer")                        \
	X(PEER_TAKEN, peer_taken,                                                                  \
	  "a queue pair of another user is already connected to that peer")                        \
	/* commands */                                                                             \
	X(SHARE_USED, share_used, "a program or its user has reached a limit")                     \
	/* recovery */                                                                             \
	X(BEHIND_FULL, behind_full, "no room for a packet behind a missing one")                   \
	X(SELECTIVE_ALIEN, selective_alien,                                                        \
	  "a selective acknowledgement from a peer that has not announced them")                   \
	X(SELECTIVE_WRONG, selective_wrong,                                                        \
	  "a selective acknowledgement of a packet that was never sent")                           \
	/* sending, again */                                                                       \
	X(PORT_STUCK, port_stuck, "the port has stopped taking frames")

enum reason {
#define X(NAME, counter, sentence) REASON_##NAME,
	REASONS(X)
#undef X
	REASON_COUNT
};

/* The counter's name ("psn_ahead"); "unknown" for a number outside the list. */
const char *reason_name(enum reason r);

/* The sentence for messages to users. */
const char *reason_sentence(enum reason r);

#endif
