-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark: what uroce adds to RoCEv2 (docs/wire-extensions.md). Wireshark's own dissector reads the BTH;
-- this one reads behind it.
--	tshark -X lua_script:docs/wireshark/uroce.lua -r file.pcap
local uroce = Proto("uroce", "uroce: selective acknowledgement")
local f = uroce.fields

f.knows = ProtoField.bool("uroce.knows_selective", "Knows selective acknowledgements", 8, nil, 0x01)
f.late = ProtoField.uint8("uroce.late", "Sender is late, step", base.DEC, nil, 0x3e)
f.before = ProtoField.uint32("uroce.sack.psn", "Acknowledged up to PSN")
f.syndrome = ProtoField.uint8("uroce.sack.syndrome", "Syndrome", base.HEX)
f.msn = ProtoField.uint32("uroce.sack.msn", "Message sequence number")
f.step = ProtoField.uint8("uroce.sack.step", "Selection begins further on, times 64", base.DEC, nil, 0x7f)
f.selection = ProtoField.bytes("uroce.sack.selection", "Selection")
f.held = ProtoField.uint32("uroce.sack.held", "Has come: PSN")
f.count = ProtoField.uint32("uroce.sack.count", "Packets that have come behind it")

local payload = Field.new("udp.payload")
local port = Field.new("udp.dstport")

local OPCODE, BTH, AETH, SELECTION = 0xd1, 12, 4, 32

local function selection(tree, range, psn)
	local bytes, count = range:bytes(), 0

	tree:add(f.selection, range)
	for n = 0, 8 * SELECTION - 1 do
		if bit.band(bytes:get_index(math.floor(n / 8)), bit.lshift(1, n % 8)) ~= 0 then
			tree:add(f.held, range(math.floor(n / 8), 1), (psn + 1 + n) % 0x1000000)
			count = count + 1
		end
	end
	tree:add(f.count, range, count)
end

function uroce.dissector(_, pinfo, tree)
	local to, octets = port(), payload()
	local range, sub, psn, step

	if to == nil or to.value ~= 4791 or octets == nil or octets.len < BTH + 4 then
		return
	end
	range = octets.range
	sub = tree:add(uroce, range)
	sub:add(f.knows, range(4, 1))
	sub:add(f.late, range(4, 1))
	if range(0, 1):uint() ~= OPCODE or octets.len < BTH + AETH + SELECTION + 4 then
		return
	end
	psn = range(9, 3):uint()
	step = bit.band(range(8, 1):uint(), 0x7f)
	sub:add(f.before, range(9, 3))
	sub:add(f.step, range(8, 1))
	sub:add(f.syndrome, range(BTH, 1))
	sub:add(f.msn, range(BTH + 1, 3))
	selection(sub, range(BTH + AETH, SELECTION), psn + 64 * step)
	pinfo.cols.info = string.format("Selective ACK, PSN %06x", psn)
end

register_postdissector(uroce)
