-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
--
-- A dissector for Wireshark and tshark, which do not know XRC: it adds to each XRC packet its opcode and the headers behind the
-- BTH (XRCETH, then RETH, AtomicETH, AETH, AtomicAckETH or ImmDt). Load it with -X lua_script:FILE. It takes the fields that
-- Wireshark's own dissector has found, and looks at the bytes itself only behind the BTH.

local xrc = Proto("softhca_xrc", "InfiniBand XRC")

local operations = {
	[0] = "SEND First", "SEND Middle", "SEND Last", "SEND Last Imm", "SEND Only", "SEND Only Imm",
	"WRITE First", "WRITE Middle", "WRITE Last", "WRITE Last Imm", "WRITE Only", "WRITE Only Imm",
	"READ Request", "READ Response First", "READ Response Middle", "READ Response Last", "READ Response Only",
	"Acknowledge", "ATOMIC Acknowledge", "CmpSwap", "FetchAdd",
}
local f = {
	opcode = ProtoField.uint8("softhca_xrc.opcode", "Opcode", base.HEX),
	srqn = ProtoField.uint24("softhca_xrc.srqn", "XRC SRQ", base.HEX),
	va = ProtoField.uint64("softhca_xrc.va", "Virtual address", base.HEX),
	rkey = ProtoField.uint32("softhca_xrc.rkey", "R_Key", base.HEX),
	dmalen = ProtoField.uint32("softhca_xrc.dmalen", "DMA length"),
	swap = ProtoField.uint64("softhca_xrc.swap", "Swap or add", base.HEX),
	compare = ProtoField.uint64("softhca_xrc.compare", "Compare", base.HEX),
	syndrome = ProtoField.uint8("softhca_xrc.syndrome", "Syndrome", base.HEX),
	msn = ProtoField.uint24("softhca_xrc.msn", "MSN"),
	original = ProtoField.uint64("softhca_xrc.original", "Value before", base.HEX),
	imm = ProtoField.bytes("softhca_xrc.imm", "Immediate data"),
	len = ProtoField.uint32("softhca_xrc.len", "Payload length"),
}
for _, field in pairs(f) do
	xrc.fields[#xrc.fields + 1] = field
end

local opcode = Field.new("infiniband.bth.opcode")
local padcnt = Field.new("infiniband.bth.padcnt")
local lnh = Field.new("infiniband.lrh.lnh")

local answers = { [13] = true, [14] = true, [15] = true, [16] = true, [17] = true, [18] = true }
local with_imm = { [3] = true, [5] = true, [9] = true, [11] = true }
local with_reth = { [6] = true, [10] = true, [11] = true, [12] = true }
local with_aeth = { [13] = true, [15] = true, [16] = true, [17] = true, [18] = true }

function xrc.dissector(buffer, info, root)
	local found = opcode()
	if not found or found.value < 0xa0 or found.value > 0xb4 then
		return
	end
	local operation = found.value - 0xa0
	-- The whole record of the capture: what is behind the BTH begins 12 bytes after the opcode. On a UDP port there is no VCRC.
	local at, tail = found.offset + 12, lnh() and 6 or 4
	local bytes = found.source or buffer
	local tree = root:add(xrc, buffer(), "InfiniBand XRC, " .. operations[operation])
	local function take(field, n)
		if at + n <= bytes:len() then
			tree:add(field, bytes(at, n))
		end
		at = at + n
	end

	tree:add(f.opcode, found.value)
	if not answers[operation] then
		at = at + 1
		take(f.srqn, 3)
	end
	if with_reth[operation] then
		take(f.va, 8)
		take(f.rkey, 4)
		take(f.dmalen, 4)
	end
	if operation == 19 or operation == 20 then
		take(f.va, 8)
		take(f.rkey, 4)
		take(f.swap, 8)
		take(f.compare, 8)
	end
	if with_aeth[operation] then
		take(f.syndrome, 1)
		take(f.msn, 3)
	end
	if operation == 18 then
		take(f.original, 8)
	end
	if with_imm[operation] then
		take(f.imm, 4)
	end
	tree:add(f.len, math.max(0, buffer:reported_len() - at - tail - padcnt().value)):set_generated()
	info.cols.protocol = "XRC"
	info.cols.info = "XRC " .. operations[operation] .. " " .. tostring(info.cols.info):gsub("Unknown OpCode", "")
end

register_postdissector(xrc)
