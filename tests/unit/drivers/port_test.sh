#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
#	namespace ours              namespace linux
#	port_tool -- near ========= far -- the kernel
#
# The kernel pings a port with addresses of its own, and the port resolves the kernel's addresses; then
# the same on an interface whose addresses the kernel owns (--netdev).
set -u
tool=$1
kind=$2

# a network namespace needs privileges, or a user namespace that gives them
if [ "${INSIDE:-}" = "" ]; then
	if [ "$(id -u)" = 0 ]; then
		INSIDE=1 exec unshare -nm sh "$0" "$@"
	fi
	unshare -rnm true 2>/dev/null || { echo "network namespaces are not available"; exit 77; }
	INSIDE=1 exec unshare -rnm sh "$0" "$@"
fi

dir=$(mktemp -d)
linux_pid=
tool_pid=
other_pid=
clean() {
	exec 3>&- 2>/dev/null
	[ -n "$tool_pid" ] && kill "$tool_pid" 2>/dev/null
	[ -n "$other_pid" ] && kill "$other_pid" 2>/dev/null
	[ -n "$linux_pid" ] && kill "$linux_pid" 2>/dev/null
	rm -rf "$dir"
}
trap clean EXIT
fail() {
	echo "FAILED: $*"
	echo "--- output of port_tool:"
	cat "$dir/out" "$dir/err" 2>/dev/null
	exit 1
}
# a matching line must appear within 15 s
expect() {
	for _ in $(seq 150); do
		grep -q "$1" "$dir/out" && return 0
		kill -0 "$tool_pid" 2>/dev/null || break
		sleep 0.1
	done
	fail "no line like: $1"
}

linux() { nsenter -t "$linux_pid" -n "$@"; }

# answers COUNT COMMAND... ADDRESS: one of COUNT pings is answered. The kernel gives up resolving a
# neighbour after 3 s, and begins again with the next ping
answers() {
	count=$1
	shift
	for _ in $(seq 5); do
		"$@" -q -c "$count" -i 0.2 -W 5 && return 0
	done
	return 1
}

unshare -n sleep 600 &
linux_pid=$!
for tries in $(seq 300); do
	[ "$(readlink /proc/$linux_pid/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
	[ "$tries" -lt 300 ] || fail "no network namespace for the kernel"
	sleep 0.05
done
mkfifo "$dir/in"

ip link add near address 02:00:00:00:00:01 type veth peer name far address 02:00:00:00:00:02 ||
	fail "veth"
ip link set far netns "$linux_pid" || fail "netns"
linux sysctl -qw net.ipv6.conf.far.accept_dad=0
linux ip link set far up
linux ip address add 10.9.0.2/24 dev far
linux ip address add fd09::2/64 dev far nodad

run() {
	"$tool" --no-huge --no-shconf --no-pci -m 64 -l 0 --file-prefix "port_test_$$" "$@" \
		<"$dir/in" >"$dir/out" 2>"$dir/err" &
	tool_pid=$!
	exec 3>"$dir/in"
}
finish() {
	exec 3>&-
	wait "$tool_pid" || fail "port_tool ended with $?"
	tool_pid=
}

# refuses IFACE TEXT: port_tool ends at once, because of the interface, and says so
refuses() {
	"$tool" --no-huge --no-shconf --no-pci -m 64 -l 0 --file-prefix "port_test_other_$$" -- \
		"$kind" "$1" 10.9.0.2 </dev/null >"$dir/other_out" 2>"$dir/other_err" &&
		fail "a port on $1"
	grep -q "$2" "$dir/other_err" || fail "on $1 it says: $(cat "$dir/other_err")"
}

# sends_roce FROM TO: a datagram, which the kernel does not answer. Otherwise a second one on a connected socket
# would get the first one's "port unreachable"
sends_roce() {
	linux /usr/bin/python3 - "$1" "$2" <<-P
	import socket, sys
	v6 = ":" in sys.argv[1]
	s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
	s.bind((sys.argv[1], 0))
	s.connect((sys.argv[2], 4791))
	s.settimeout(1)
	s.send(b"x" * 1400)
	try:
	    s.recv(1)
	except socket.timeout:
	    pass
	P
}

# attaches_program IFACE: an XDP program that is not ours, until its descriptor is closed at the end of standard input
attaches_program() {
	/usr/bin/python3 -c '
import ctypes, os, socket, struct, sys
call = ctypes.CDLL(None, use_errno=True).syscall
def bpf(command, attributes):
    fd = call(321 if os.uname().machine == "x86_64" else 280, command, attributes, len(attributes))
    return fd if fd >= 0 else sys.exit(os.strerror(ctypes.get_errno()))
pass_all = ctypes.create_string_buffer(bytes.fromhex("b700000002000000" "9500000000000000"))
license = ctypes.create_string_buffer(b"BSD")
program = bpf(5, struct.pack("=IIQQ104x", 6, 2, ctypes.addressof(pass_all), ctypes.addressof(license)))
link = bpf(28, struct.pack("=IIII48x", program, socket.if_nametoindex(sys.argv[1]), 37, 4))
print("attached", flush=True)
sys.stdin.read()
' "$1"
}

# sends_tagged TAG TYPE [PORT]: an Ethernet frame with that tag (type and id) and type. With PORT: a datagram to 10.9.0.1
sends_tagged() {
	linux /usr/bin/python3 - "$@" <<-P
	import socket, struct, sys
	tag, kind = bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2])
	body = bytes(100)
	if len(sys.argv) > 3:
	    head = struct.pack("!BBHHHBBH4B4B", 0x45, 0, 128, 0, 0, 64, 17, 0, 10, 9, 0, 2, 10, 9, 0, 1)
	    total = sum(struct.unpack("!10H", head))
	    total = ~(total + (total >> 16)) & 0xffff
	    body = head[:10] + total.to_bytes(2, "big") + head[12:] + \
	        struct.pack("!4H", 4000, int(sys.argv[3]), 108, 0) + body
	s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
	s.bind(("far", 0))
	s.send(bytes.fromhex("020000000001020000000002") + tag + kind + body)
	P
}

case $kind in
af_packet | af_xdp)
	# the kernel has no address on our side, not even a link-local one
	sysctl -qw net.ipv6.conf.near.disable_ipv6=1
	ip link set near up
	run --vdev "net_${kind}0,iface=near" -- answer "net_${kind}0" \
		10.9.0.1/24,fd09::1/64,fe80::1/64 10.9.0.2,fd09::2,10.9.0.77
	expect "^mac 02:00:00:00:00:01 mtu 1500 link 1"
	expect "^resolved 10.9.0.2 02:00:00:00:00:02"
	expect "^resolved fd09::2 02:00:00:00:00:02"
	expect "^unreachable 10.9.0.77"
	answers 3 linux ping 10.9.0.1 || fail "ping over IPv4"
	answers 3 linux ping -s 1452 10.9.0.1 || fail "large ping"
	answers 3 linux ping fd09::1 || fail "ping over IPv6"
	answers 1 linux ping fe80::1%far || fail "ping to the link-local address"
	expect "^bell"
	finish
	# after the interface was down, a frame leaves although no other one follows it
	run --vdev "net_${kind}0,iface=near" -- answer "net_${kind}0" 10.9.0.1/24 10.9.0.2
	expect "^resolved 10.9.0.2 02:00:00:00:00:02"
	linux ip neighbour replace 10.9.0.1 lladdr 02:00:00:00:00:01 nud permanent dev far
	ip link set near down
	ip link set near up
	for tries in $(seq 100); do
		linux ip link show far | grep -q LOWER_UP && break
		[ "$tries" -lt 100 ] || fail "the cable stays down"
		sleep 0.05
	done
	linux ping -q -c 1 -W 5 10.9.0.1 || fail "the first frame after the interface was down"
	finish
	;;
netdev)
	# an interface whose frames have no Ethernet header
	if ip tuntap add dev tunnel mode tun 2>/dev/null; then
		refuses tunnel "tunnel is not an Ethernet interface"
	fi
	ip link set near up
	ip address add 10.9.0.1/24 dev near
	ip address add fd09::1/64 dev near nodad
	run -- netdev near 10.9.0.2,fd09::2,10.9.0.77,8.8.8.8
	expect "^mac 02:00:00:00:00:01 mtu 1500 link 1 addresses .*10.9.0.1/24 fd09::1/64$"
	expect "^resolved 10.9.0.2 02:00:00:00:00:02"
	expect "^resolved fd09::2 02:00:00:00:00:02"
	# the interface has an engine, which goes on
	refuses near "near: another engine (process $tool_pid) has this interface"
	expect "^hears one group"
	ip maddress show dev near | grep -q "01:00:5e:11:22:33" || fail "the interface has not got the group"
	ip -d link show near | grep -q "promiscuity 0" || fail "the interface is promiscuous"
	! ip link show near | grep -q -e ALLMULTI -e PROMISC || fail "the interface has a flag of ours"
	expect "^pending 10.9.0.77"
	expect "^unreachable 10.9.0.77"
	ip address add 10.9.0.3/24 dev near
	expect "addresses .*10.9.0.1/24 10.9.0.3/24 fd09::1/64$"
	answers 2 linux ping 10.9.0.1 || fail "the kernel's own answer"
	# a RoCE frame rings the bell and arrives
	sends_roce 10.9.0.2 10.9.0.1 || fail "the kernel answered UDP 4791"
	expect "^roce 1442"
	expect "^bell"
	ip link set near mtu 1300
	expect "mtu 1300"
	ip link set near down
	expect "mtu 1300 link 0"
	finish
	! ip maddress show dev near | grep -q "01:00:5e:11:22:33" || fail "the interface keeps the group"
	grep -q "^dropped [1-9]" "$dir/out" || fail "the kernel's own frames were not dropped"
	# the largest MTU, which is that of lo, too
	linux ip link set far mtu 65535
	ip link set near up mtu 65535
	run -- netdev near 10.9.0.2
	expect "^mac 02:00:00:00:00:01 mtu 9216 link 1"
	sends_roce 10.9.0.2 10.9.0.1 || fail "the kernel answered UDP 4791"
	expect "^roce 1442"
	finish
	;;
netdev_xdp)
	ip link set near up
	mkfifo "$dir/other_in"
	attaches_program near <"$dir/other_in" >"$dir/attached" 2>&1 &
	other_pid=$!
	exec 4>"$dir/other_in"
	for tries in $(seq 100); do
		grep -q attached "$dir/attached" && break
		[ "$tries" -lt 100 ] || fail "no other program is attached: $(cat "$dir/attached")"
		sleep 0.1
	done
	refuses near "another XDP program is attached to near (ip link show)"
	exec 4>&-
	wait "$other_pid"
	other_pid=
	ip address add 10.9.0.1/24 dev near
	ip address add fd09::1/64 dev near nodad
	has_program() { ip -d link show near | grep -q "prog/xdp id"; }
	# whoever reads /proc/PID/fd meanwhile, as uroce doctor does, keeps the descriptor open for a moment
	program_goes() {
		for tries in $(seq 100); do
			has_program || return 0
			sleep 0.1
		done
		return 1
	}
	run -- netdev_xdp near 10.9.0.2,fd09::2
	expect "^mac 02:00:00:00:00:01 mtu 1500 link 1 addresses .*10.9.0.1/24 fd09::1/64$"
	expect "^resolved 10.9.0.2 02:00:00:00:00:02"
	has_program || fail "no program on the interface"
	answers 2 linux ping 10.9.0.1 || fail "the kernel's own answer"
	answers 2 linux ping fd09::1 || fail "the kernel's own answer over IPv6"
	sends_roce 10.9.0.2 10.9.0.1 || fail "the kernel answered UDP 4791"
	expect "^roce 1442"
	expect "^bell"
	sends_roce fd09::2 fd09::1 || fail "the kernel answered UDP 4791 over IPv6"
	expect "^roce 1462"
	# a priority tag names no VLAN
	sends_tagged 81006000 0800 4791 || fail "no frame with a priority tag was sent"
	expect "^tagged 8100 6000 0800 146"
	# an address of the interface, but not in time for the program; then in time
	ip address add 10.9.0.3/24 dev near
	expect "addresses .*10.9.0.1/24 10.9.0.3/24 fd09::1/64$"
	was=$(grep -c "^roce 1442" "$dir/out")
	sends_roce 10.9.0.2 10.9.0.3 || fail "the kernel answered UDP 4791 to a new address"
	for tries in $(seq 150); do
		[ "$(grep -c "^roce 1442" "$dir/out")" -gt "$was" ] && break
		[ "$tries" -lt 150 ] || fail "no frame to the new address"
		sleep 0.1
	done
	# three times as many frames as there are buffers: each buffer receives
	linux /usr/bin/python3 - "$dir/out" <<-P || fail "some buffers do not receive"
	import socket, sys, time
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.connect(("10.9.0.1", 4791))
	for n in range(512, 18433, 512):
	    for _ in range(512):
	        s.send(b"x" * 500)
	    until = time.monotonic() + 30
	    while open(sys.argv[1]).read().count("roce 542") < n:
	        if time.monotonic() > until:
	            sys.exit(f"less than {n} frames arrived")
	P
	# what is not for us is the kernel's: it forwards UDP 4791 to others
	sysctl -qw net.ipv4.ip_forward=1
	ip link add beyond type veth peer name host
	ip link set beyond up
	ip link set host up
	ip address add 10.10.0.1/24 dev beyond
	ip neighbour add 10.10.0.2 lladdr 02:00:00:00:00:10 dev beyond
	linux ip route add 10.10.0.0/24 via 10.9.0.1
	timeout 30 /usr/bin/python3 - >"$dir/forwarded" <<-P &
	import socket
	s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
	s.bind(("host", 0x0800))
	print("ready", flush=True)
	while s.recv(2048)[36:38] != (4791).to_bytes(2, "big"):
	    pass
	P
	other_pid=$!
	for tries in $(seq 100); do
		grep -q ready "$dir/forwarded" && break
		[ "$tries" -lt 100 ] || fail "the listener beyond did not begin"
		sleep 0.1
	done
	sends_roce 10.9.0.2 10.10.0.2 || fail "the kernel answered UDP 4791 to another host"
	wait "$other_pid" || fail "the kernel did not forward what is for others"
	other_pid=
	expect "^hears one group"
	ip maddress show dev near | grep -q "01:00:5e:11:22:33" || fail "the interface has not got the group"
	ip -d link show near | grep -q "promiscuity 0" || fail "the interface is promiscuous"
	# killed: the kernel takes program and group away, and the next engine begins
	kill -9 "$tool_pid"
	wait "$tool_pid"
	exec 3>&-
	program_goes || fail "the program stays after kill -9"
	! ip maddress show dev near | grep -q "01:00:5e:11:22:33" || fail "the group stays after kill -9"
	# the largest MTU: buffers of a page
	ip link set near mtu 3502
	run -- netdev_xdp near 10.9.0.2
	expect "^mac 02:00:00:00:00:01 mtu 3502 link 1"
	finish
	program_goes || fail "the program stays after the end"
	# what the kernel keeps, with its tags: another VLAN's RoCE is not taken for ours
	run -- netdev_xdp_wide near 10.9.0.2
	expect "^hears one group"
	sends_tagged 81000007 0800 4791 || fail "no frame of a VLAN was sent"
	expect "^tagged 8100 0007 0800 146"
	sends_tagged 8100e007 88b5 || fail "no frame of a VLAN was sent"
	expect "^tagged 8100 e007 88b5 118"
	sends_tagged 88a80007 88b5 || fail "no frame of a service VLAN was sent"
	expect "^tagged 88a8 0007 88b5 118"
	! grep -q "^roce" "$dir/out" || fail "a tag was lost"
	finish
	;;
tap)
	# the kernel's end of the tap is in this namespace
	[ -c /dev/net/tun ] || { echo "no /dev/net/tun"; exit 77; }
	run --vdev net_tap0,iface=tapped,mac=02:00:00:00:00:02 -- answer net_tap0 \
		10.8.0.1/24,fd08::1/64 10.8.0.2
	expect "^mac 02:00:00:00:00:03 mtu 1500"
	ip address add 10.8.0.2/24 dev tapped
	ip address add fd08::2/64 dev tapped nodad
	ip link set tapped up
	answers 3 ping 10.8.0.1 || fail "ping over IPv4"
	answers 3 ping fd08::1 || fail "ping over IPv6"
	expect "^resolved 10.8.0.2 02:00:00:00:00:02"
	expect "^bell"
	finish
	;;
memif)
	socket="socket=$dir/memif,socket-abstract=no"
	mkfifo "$dir/other_in"
	run --vdev "net_memif0,role=server,id=1,$socket,mac=02:00:00:00:00:01" -- \
		answer net_memif0 10.7.0.1/24,fd07::1/64 10.7.0.2,fd07::2
	# a memif client connects only when it starts
	expect "^mac 02:00:00:00:00:01 mtu 2030"
	"$tool" --no-huge --no-shconf --no-pci -m 64 -l 0 --file-prefix "port_test_other_$$" \
		--vdev "net_memif0,role=client,id=1,$socket,mac=02:00:00:00:00:02" -- \
		answer net_memif0 10.7.0.2/24,fd07::2/64 10.7.0.1 \
		<"$dir/other_in" >"$dir/other_out" 2>"$dir/other_err" &
	other_pid=$!
	exec 4>"$dir/other_in"
	expect "link 1"
	expect "^resolved 10.7.0.2 02:00:00:00:00:02"
	expect "^resolved fd07::2 02:00:00:00:00:02"
	exec 4>&-
	wait "$other_pid" || fail "the other port_tool ended with $?: $(cat "$dir/other_err")"
	other_pid=
	finish
	;;
*)
	fail "unknown kind $kind"
	;;
esac
echo "$kind: ok"
