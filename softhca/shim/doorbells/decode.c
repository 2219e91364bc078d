// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Takes apart the stores that compilers emit: of general registers and immediates, of vector
 * registers of 4 to 64 bytes, and by string instructions. Owns the decoder's state, which is
 * constant after sh_decode_init().
 */
#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <Zydis/Zydis.h>

#include "softhca/host/sys.h"
#include "decode.h"

#define MAX_STORE	 64
#define FPX_SW_BYTES	 464 /* offset of struct _fpx_sw_bytes in the legacy area */
#define FP_XSTATE_MAGIC1 0x46505853u
#define XSTATE_HEADER	 512
#define XSTATE_YMM	 (1u << 2)
#define XSTATE_ZMM_HI	 (1u << 6)
#define XSTATE_HI16_ZMM	 (1u << 7)

static ZydisDecoder decoder;
static unsigned int area[8]; /* offsets of the state components, standard form; 0: absent */

void sh_decode_init(void)
{
	unsigned int size, offset, c, d;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!__get_cpuid_max(0, NULL) || __get_cpuid_max(0, NULL) < 0xd)
		return;
	for (unsigned int i = 2; i < 8; i++) {
		__cpuid_count(0xd, i, size, offset, c, d);
		area[i] = size ? offset : 0;
	}
}

/* ---- registers ---- */

static const uint8_t greg_of[16] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static greg_t *greg(ucontext_t *uc, ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	ZyanI8 id = ZydisRegisterGetId(whole);

	return id >= 0 && id < 16 ? &uc->uc_mcontext.gregs[greg_of[id]] : NULL;
}

static int is_high_byte(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_AH || reg == ZYDIS_REGISTER_CH || reg == ZYDIS_REGISTER_DH ||
	       reg == ZYDIS_REGISTER_BH;
}

/*
 * The legacy area has 16 bytes of each vector register. The rest of a wider one is in the extended
 * state, or zero.
 */
static int vector_value(const ucontext_t *uc, ZydisRegister reg, uint8_t value[MAX_STORE])
{
	const uint8_t *fx = (const uint8_t *)uc->uc_mcontext.fpregs;
	ZyanI8 id = ZydisRegisterGetId(reg);
	uint64_t present = 0;
	uint32_t magic, size = XSTATE_HEADER;

	if (!fx || id < 0 || id > 31)
		return -EINVAL;
	memset(value, 0, MAX_STORE);
	memcpy(&magic, fx + FPX_SW_BYTES, sizeof(magic));
	if (magic == FP_XSTATE_MAGIC1) {
		memcpy(&size, fx + FPX_SW_BYTES + 16, sizeof(size));
		memcpy(&present, fx + XSTATE_HEADER, sizeof(present));
	}
	if (id >= 16) {
		if ((present & XSTATE_HI16_ZMM) && area[7] && area[7] + (id - 15) * 64u <= size)
			memcpy(value, fx + area[7] + (id - 16) * 64, 64);
		return 0;
	}
	memcpy(value, fx + 160 + id * 16, 16);
	if ((present & XSTATE_YMM) && area[2] && area[2] + (id + 1) * 16u <= size)
		memcpy(value + 16, fx + area[2] + id * 16, 16);
	if ((present & XSTATE_ZMM_HI) && area[6] && area[6] + (id + 1) * 32u <= size)
		memcpy(value + 32, fx + area[6] + id * 32, 32);
	return 0;
}

static int register_value(ucontext_t *uc, ZydisRegister reg, uint8_t value[MAX_STORE])
{
	const uint8_t *fx;
	greg_t *g;

	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		g = greg(uc, reg);
		if (!g)
			return -EINVAL;
		memcpy(value, g, 8);
		if (is_high_byte(reg))
			value[0] = value[1];
		return 0;
	case ZYDIS_REGCLASS_MMX:
		fx = (const uint8_t *)uc->uc_mcontext.fpregs;
		if (!fx)
			return -EINVAL;
		memcpy(value, fx + 32 + (reg - ZYDIS_REGISTER_MM0) * 16, 8);
		return 0;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return vector_value(uc, reg, value);
	default:
		return -EINVAL;
	}
}

/* ---- one store ---- */

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static void reverse(uint8_t *value, unsigned int width)
{
	for (unsigned int i = 0; i < width / 2; i++) {
		uint8_t t = value[i];

		value[i] = value[width - 1 - i];
		value[width - 1 - i] = t;
	}
}

/*
 * Puts what the instruction stores, from its source register or immediate, into the first bytes of
 * value.
 */
static int stored_value(ucontext_t *uc, const struct insn *in, unsigned int width,
			uint8_t value[MAX_STORE])
{
	const ZydisDecodedOperand *src = &in->op[1];
	unsigned int lane;
	int err;

	/* EVEX forms have their mask between destination and source. */
	if (src->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ZydisRegisterGetClass(src->reg.value) == ZYDIS_REGCLASS_MASK)
		src++;
	if (src->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		memcpy(value, &src->imm.value.u, 8);
		return 0;
	}
	if (src->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return -EINVAL;
	err = register_value(uc, src->reg.value, value);
	if (err)
		return err;
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_MOVBE:
		reverse(value, width);
		return 0;
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
	case ZYDIS_MNEMONIC_VMOVHPS:
	case ZYDIS_MNEMONIC_VMOVHPD:
		memmove(value, value + 8, 8);
		return 0;
	case ZYDIS_MNEMONIC_PEXTRB:
	case ZYDIS_MNEMONIC_PEXTRW:
	case ZYDIS_MNEMONIC_PEXTRD:
	case ZYDIS_MNEMONIC_PEXTRQ:
	case ZYDIS_MNEMONIC_VPEXTRB:
	case ZYDIS_MNEMONIC_VPEXTRW:
	case ZYDIS_MNEMONIC_VPEXTRD:
	case ZYDIS_MNEMONIC_VPEXTRQ:
	case ZYDIS_MNEMONIC_EXTRACTPS:
	case ZYDIS_MNEMONIC_VEXTRACTPS:
		lane = (unsigned int)src[1].imm.value.u % (16 / width);
		memmove(value, value + lane * width, width);
		return 0;
	case ZYDIS_MNEMONIC_VEXTRACTF128:
	case ZYDIS_MNEMONIC_VEXTRACTI128:
		lane = (unsigned int)src[1].imm.value.u & 1;
		memmove(value, value + lane * 16, 16);
		return 0;
	default:
		return 0;
	}
}

/* Instructions that write bytes of the second operand to the first and do nothing else. */
static int is_plain_store(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVNTI:
	case ZYDIS_MNEMONIC_MOVBE:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVNTQ:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_MOVNTPS:
	case ZYDIS_MNEMONIC_MOVNTPD:
	case ZYDIS_MNEMONIC_MOVNTDQ:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
	case ZYDIS_MNEMONIC_PEXTRB:
	case ZYDIS_MNEMONIC_PEXTRW:
	case ZYDIS_MNEMONIC_PEXTRD:
	case ZYDIS_MNEMONIC_PEXTRQ:
	case ZYDIS_MNEMONIC_EXTRACTPS:
	case ZYDIS_MNEMONIC_VMOVD:
	case ZYDIS_MNEMONIC_VMOVQ:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU:
	case ZYDIS_MNEMONIC_VMOVDQA32:
	case ZYDIS_MNEMONIC_VMOVDQA64:
	case ZYDIS_MNEMONIC_VMOVDQU8:
	case ZYDIS_MNEMONIC_VMOVDQU16:
	case ZYDIS_MNEMONIC_VMOVDQU32:
	case ZYDIS_MNEMONIC_VMOVDQU64:
	case ZYDIS_MNEMONIC_VMOVNTPS:
	case ZYDIS_MNEMONIC_VMOVNTPD:
	case ZYDIS_MNEMONIC_VMOVNTDQ:
	case ZYDIS_MNEMONIC_VMOVSS:
	case ZYDIS_MNEMONIC_VMOVSD:
	case ZYDIS_MNEMONIC_VMOVLPS:
	case ZYDIS_MNEMONIC_VMOVLPD:
	case ZYDIS_MNEMONIC_VMOVHPS:
	case ZYDIS_MNEMONIC_VMOVHPD:
	case ZYDIS_MNEMONIC_VPEXTRB:
	case ZYDIS_MNEMONIC_VPEXTRW:
	case ZYDIS_MNEMONIC_VPEXTRD:
	case ZYDIS_MNEMONIC_VPEXTRQ:
	case ZYDIS_MNEMONIC_VEXTRACTPS:
	case ZYDIS_MNEMONIC_VEXTRACTF128:
	case ZYDIS_MNEMONIC_VEXTRACTI128:
		return 1;
	default:
		return 0;
	}
}

/* A write mask other than "all" splits a store into pieces, which no provider does. */
static int is_masked(const struct insn *in)
{
	return in->i.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
	       in->i.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED &&
	       in->i.avx.mask.reg != ZYDIS_REGISTER_K0 && in->i.avx.mask.reg != ZYDIS_REGISTER_NONE;
}

static int plain_store(ucontext_t *uc, const struct insn *in, uint64_t addr, uint64_t end,
		       sh_store_fn fn, void *arg)
{
	unsigned int width = in->op[0].size / 8;
	uint8_t value[MAX_STORE];
	int err;

	if (in->op[0].type != ZYDIS_OPERAND_TYPE_MEMORY || !width || width > MAX_STORE ||
	    is_masked(in))
		return -EINVAL;
	if (end - addr < width)
		return -EINVAL;
	err = stored_value(uc, in, width, value);
	if (err)
		return err;
	fn(arg, addr, width, value);
	uc->uc_mcontext.gregs[REG_RIP] += in->i.length;
	return 0;
}

/* The device cannot be read, so the register gets zeros, extended as for any 32-bit result. */
static int exchange(ucontext_t *uc, const struct insn *in, uint64_t addr, uint64_t end,
		    sh_store_fn fn, void *arg)
{
	const ZydisDecodedOperand *reg =
		in->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? &in->op[0] : &in->op[1];
	unsigned int width = reg->size / 8;
	uint8_t value[MAX_STORE];
	greg_t *g;

	if (reg->type != ZYDIS_OPERAND_TYPE_REGISTER || end - addr < width ||
	    register_value(uc, reg->reg.value, value))
		return -EINVAL;
	fn(arg, addr, width, value);
	g = greg(uc, reg->reg.value);
	if (width >= 4)
		*g = 0;
	else
		memset((uint8_t *)g + is_high_byte(reg->reg.value), 0, width);
	uc->uc_mcontext.gregs[REG_RIP] += in->i.length;
	return 0;
}

/* ---- string stores ---- */

static int string_store(ucontext_t *uc, const struct insn *in, unsigned int width, int moves,
			uint64_t first, uint64_t end, sh_store_fn fn, void *arg)
{
	greg_t *gregs = uc->uc_mcontext.gregs;
	int repeated = (in->i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
					    ZYDIS_ATTRIB_HAS_REPNE)) != 0;
	int64_t step = gregs[REG_EFL] & 0x400 ? -(int64_t)width : (int64_t)width;
	uint64_t left = repeated ? (uint64_t)gregs[REG_RCX] : 1, done = 0;
	uint8_t value[8];

	if (in->i.address_width != 64)
		return -EINVAL;
	while (left) {
		uint64_t to = (uint64_t)gregs[REG_RDI];

		if (to < first || to >= end || end - to < width)
			break;
		if (!moves)
			memcpy(value, &gregs[REG_RAX], 8);
		else if (sh_peek(value, (uint64_t)gregs[REG_RSI], width))
			break;
		fn(arg, to, width, value);
		gregs[REG_RDI] += step;
		if (moves)
			gregs[REG_RSI] += step;
		left--;
		done++;
	}
	if (!done)
		return -EINVAL;
	if (repeated)
		gregs[REG_RCX] = (greg_t)left;
	if (!left)
		gregs[REG_RIP] += in->i.length;
	return 0;
}

int sh_decode_store(ucontext_t *uc, uint64_t addr, uint64_t first, uint64_t end, sh_store_fn fn,
		    void *arg)
{
	const uint8_t *rip = (const uint8_t *)uc->uc_mcontext.gregs[REG_RIP];
	/* The processor has fetched the instruction, but the page after it may be absent. */
	size_t room = 4096 - ((uintptr_t)rip & 4095);
	uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
	struct insn in;
	size_t len = sizeof(code);

	if (room >= sizeof(code))
		memcpy(code, rip, sizeof(code));
	else if (sh_peek(code, (uintptr_t)rip, sizeof(code)))
		memcpy(code, rip, len = room);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &in.i, in.op)))
		return -EINVAL;
	switch (in.i.mnemonic) {
	case ZYDIS_MNEMONIC_STOSB:
		return string_store(uc, &in, 1, 0, first, end, fn, arg);
	case ZYDIS_MNEMONIC_STOSW:
		return string_store(uc, &in, 2, 0, first, end, fn, arg);
	case ZYDIS_MNEMONIC_STOSD:
		return string_store(uc, &in, 4, 0, first, end, fn, arg);
	case ZYDIS_MNEMONIC_STOSQ:
		return string_store(uc, &in, 8, 0, first, end, fn, arg);
	case ZYDIS_MNEMONIC_MOVSB:
		return string_store(uc, &in, 1, 1, first, end, fn, arg);
	case ZYDIS_MNEMONIC_MOVSW:
		return string_store(uc, &in, 2, 1, first, end, fn, arg);
	case ZYDIS_MNEMONIC_MOVSQ:
		return string_store(uc, &in, 8, 1, first, end, fn, arg);
	case ZYDIS_MNEMONIC_MOVSD:
		if (in.i.meta.category == ZYDIS_CATEGORY_STRINGOP)
			return string_store(uc, &in, 4, 1, first, end, fn, arg);
		break;
	default:
		break;
	}
	if (addr < first || addr >= end)
		return -EINVAL;
	if (in.i.mnemonic == ZYDIS_MNEMONIC_XCHG)
		return exchange(uc, &in, addr, end, fn, arg);
	if (!is_plain_store(in.i.mnemonic))
		return -EINVAL;
	return plain_store(uc, &in, addr, end, fn, arg);
}
