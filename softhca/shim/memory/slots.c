// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Finds the slots that lead to some functions, and looks where they lead. All of it happens within
 * dl_iterate_phdr(): as long as that runs, no object is unloaded, and no slot goes away.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "slots.h"

#define MOST 1024 /* slots; each object has a few */

#if defined(__LP64__)
#define RELOC_SYM(info) ELF64_R_SYM(info)
#else
#define RELOC_SYM(info) ELF32_R_SYM(info)
#endif
#if defined(__i386__) || defined(__arm__)
typedef ElfW(Rel) reloc;
#define RELOCS	   DT_REL
#define RELOCS_LEN DT_RELSZ
#else
typedef ElfW(Rela) reloc;
#define RELOCS	   DT_RELA
#define RELOCS_LEN DT_RELASZ
#endif

static struct slot {
	const void *const *at;
	const void *leads;    /* to the shim's function */
	uintptr_t begin, end; /* of its object: a slot that is not bound yet leads into that */
} slot[MOST];
static unsigned int slots;
static unsigned long long adds, subs;
static bool known, too_many;

struct asked {
	const char *const *name;
	const void *const *fn;
	unsigned int n;
	bool begun;  /* a walk has begun to note the slots */
	bool looked; /* and these were all, so that the answer holds */
	bool elsewhere;
};

/*
 * What the dynamic section says of an object. The dynamic linker has made addresses of its offsets.
 */
struct tables {
	const ElfW(Sym) * sym;
	const char *str;
	const reloc *list[2];
	size_t len[2];
};

static bool tables_of(const struct dl_phdr_info *info, struct tables *t)
{
	const ElfW(Dyn) *d = NULL;

	memset(t, 0, sizeof(*t));
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		/* The kernel's object, which is not relocated, has offsets. */
		const void *at = (const void *)(d->d_un.d_ptr < info->dlpi_addr
							? info->dlpi_addr + d->d_un.d_ptr
							: d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			t->sym = at;
		else if (d->d_tag == DT_STRTAB)
			t->str = at;
		else if (d->d_tag == RELOCS)
			t->list[0] = at;
		else if (d->d_tag == RELOCS_LEN)
			t->len[0] = d->d_un.d_val / sizeof(reloc);
		else if (d->d_tag == DT_JMPREL)
			t->list[1] = at;
		else if (d->d_tag == DT_PLTRELSZ)
			t->len[1] = d->d_un.d_val / sizeof(reloc);
	}
	return t->sym && t->str;
}

static void extent(const struct dl_phdr_info *info, uintptr_t *begin, uintptr_t *end)
{
	*begin = UINTPTR_MAX;
	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		if (at < *begin)
			*begin = at;
		if (at + p->p_memsz > *end)
			*end = at + p->p_memsz;
	}
}

/* Which of the functions has that name, as an object names it that does not define it itself? */
static const void *wanted(const struct asked *a, const struct tables *t, unsigned long sym)
{
	const char *name = t->str + t->sym[sym].st_name;

	if (!sym || t->sym[sym].st_shndx != SHN_UNDEF)
		return NULL;
	for (unsigned int i = 0; i < a->n; i++)
		if (!strcmp(name, a->name[i]))
			return a->fn[i];
	return NULL;
}

static void note_slots(const struct asked *a, const struct dl_phdr_info *info)
{
	struct tables t;
	struct slot s;

	if (!tables_of(info, &t))
		return;
	extent(info, &s.begin, &s.end);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; t.list[k] && i < t.len[k]; i++) {
			const reloc *r = &t.list[k][i];

			s.leads = wanted(a, &t, RELOC_SYM(r->r_info));
			if (!s.leads)
				continue;
			s.at = (const void *)(info->dlpi_addr + r->r_offset);
			if (slots < MOST)
				slot[slots++] = s;
			else
				too_many = true;
		}
}

static bool lead_elsewhere(void)
{
	for (unsigned int i = 0; i < slots; i++) {
		uintptr_t leads = (uintptr_t)__atomic_load_n(slot[i].at, __ATOMIC_RELAXED);

		if (leads != (uintptr_t)slot[i].leads &&
		    (leads < slot[i].begin || leads >= slot[i].end))
			return true;
	}
	return too_many;
}

/* The first object tells whether any was loaded or unloaded since the slots were noted. */
static int each_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct asked *a = arg;

	(void)size;
	if (!a->begun && known && adds == info->dlpi_adds && subs == info->dlpi_subs) {
		a->looked = true;
		a->elsewhere = lead_elsewhere();
		return 1;
	}
	if (!a->begun) {
		adds = info->dlpi_adds;
		subs = info->dlpi_subs;
		slots = 0;
		too_many = false;
		a->begun = known = true;
	}
	note_slots(a, info);
	return 0;
}

bool slots_lead_elsewhere(const char *const *name, const void *const *fn, unsigned int n)
{
	struct asked a = {.name = name, .fn = fn, .n = n};

	while (!a.looked) {
		a.begun = false;
		dl_iterate_phdr(each_object, &a);
	}
	return a.elsewhere;
}
