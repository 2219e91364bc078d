// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reads the dynamic section of an executable. Owns nothing but the mapping. The file may be damaged
 * or cut off, so each offset is checked before it is followed. Changes nothing, and runs nothing of
 * the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executable.h"

static const void *checked(const struct elf *elf, size_t offset, size_t size, size_t align,
			   size_t n)
{
	if (offset > elf->size || n > (elf->size - offset) / size || offset % align)
		return NULL;
	return elf->map + offset;
}

/* n objects at a file offset, or NULL if the file does not hold them. */
#define at(elf, offset, type, n)                                                                   \
	((const type *)checked(elf, offset, sizeof(type), _Alignof(type), n))

static const ElfW(Phdr) * segments(const struct elf *elf, size_t *n)
{
	const ElfW(Ehdr) *head = (const void *)elf->map;

	*n = head->e_phnum;
	return at(elf, head->e_phoff, ElfW(Phdr), *n);
}

/* The file offset of what is at that address in memory. SIZE_MAX: the file does not have it. */
static size_t offset_of(const struct elf *elf, ElfW(Addr) address)
{
	const ElfW(Phdr) * segment;
	size_t n;

	segment = segments(elf, &n);
	for (size_t i = 0; segment && i < n; i++)
		if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
		    address - segment[i].p_vaddr < segment[i].p_filesz)
			return segment[i].p_offset + (address - segment[i].p_vaddr);
	return SIZE_MAX;
}

static const ElfW(Dyn) * entry(const struct elf *elf, ElfW(Sxword) tag)
{
	for (size_t i = 0; i < elf->ndynamic && elf->dynamic[i].d_tag != DT_NULL; i++)
		if (elf->dynamic[i].d_tag == tag)
			return &elf->dynamic[i];
	return NULL;
}

/* The file offset of the table that an entry points to. SIZE_MAX: there is no such table. */
static size_t table(const struct elf *elf, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *where = entry(elf, tag);

	return where ? offset_of(elf, where->d_un.d_ptr) : SIZE_MAX;
}

/* NULL if the string does not end inside the table. */
static const char *string(const struct elf *elf, size_t offset)
{
	if (offset >= elf->strings_size ||
	    !memchr(elf->strings + offset, '\0', elf->strings_size - offset))
		return NULL;
	return elf->strings + offset;
}

static const char *string_of(const struct elf *elf, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *where = entry(elf, tag);

	return where ? string(elf, where->d_un.d_val) : NULL;
}

/* The head of this program. */
static bool own_head(ElfW(Ehdr) * own)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool have_own = fd >= 0 && read(fd, own, sizeof(*own)) == (ssize_t)sizeof(*own);

	if (fd >= 0)
		close(fd);
	return have_own;
}

/* Does the file have the magic number, class, byte order and machine of this program? */
static bool known(const struct elf *elf)
{
	const ElfW(Ehdr) *head = (const void *)elf->map;
	ElfW(Ehdr) own;

	return own_head(&own) && elf->size >= sizeof(*head) &&
	       !memcmp(head->e_ident, own.e_ident, EI_VERSION) &&
	       head->e_machine == own.e_machine && head->e_phentsize == sizeof(ElfW(Phdr));
}

static int find_tables(struct elf *elf)
{
	const ElfW(Phdr) * segment;
	const ElfW(Dyn) * strings, *size;
	size_t n;

	if (!known(elf))
		return -ENOEXEC;
	segment = segments(elf, &n);
	for (size_t i = 0; segment && i < n; i++) {
		if (segment[i].p_type != PT_DYNAMIC)
			continue;
		elf->ndynamic = segment[i].p_filesz / sizeof(*elf->dynamic);
		elf->dynamic = at(elf, segment[i].p_offset, ElfW(Dyn), elf->ndynamic);
	}
	if (!elf->dynamic)
		return -ENOEXEC;
	strings = entry(elf, DT_STRTAB);
	size = entry(elf, DT_STRSZ);
	if (!strings || !size)
		return -ENOEXEC;
	elf->strings_size = size->d_un.d_val;
	n = offset_of(elf, strings->d_un.d_ptr);
	if (n > elf->size || elf->strings_size > elf->size - n)
		return -ENOEXEC;
	elf->strings = elf->map + n;
	elf->rpath = string_of(elf, DT_RPATH);
	elf->runpath = string_of(elf, DT_RUNPATH);
	return 0;
}

static int map_file(struct elf *elf, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	void *map;

	*elf = (struct elf){.map = NULL};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		err = -ENOEXEC;
	map = err ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!err && map == MAP_FAILED)
		err = -errno;
	close(fd);
	if (err)
		return err;
	elf->map = map;
	elf->size = (size_t)st.st_size;
	return 0;
}

int elf_open(struct elf *elf, const char *path)
{
	int err = map_file(elf, path);

	if (err)
		return err;
	err = find_tables(elf);
	if (err)
		elf_close(elf);
	return err;
}

void elf_close(struct elf *elf)
{
	munmap((void *)elf->map, elf->size);
	*elf = (struct elf){.map = NULL};
}

bool elf_needs(const struct elf *elf, const char *library)
{
	for (size_t i = 0; i < elf->ndynamic && elf->dynamic[i].d_tag != DT_NULL; i++) {
		const char *name = NULL;

		if (elf->dynamic[i].d_tag == DT_NEEDED)
			name = string(elf, elf->dynamic[i].d_un.d_val);
		if (name && !strcmp(name, library))
			return true;
	}
	return false;
}

/*
 * The name of version `index` if that is a version of the library, else NULL. The lists are
 * followed forward only.
 */
static const char *version_name(const struct elf *elf, const char *library, ElfW(Half) index)
{
	size_t offset = table(elf, DT_VERNEED);
	const ElfW(Verneed) * need;

	while ((need = at(elf, offset, ElfW(Verneed), 1))) {
		const char *file = string(elf, need->vn_file);
		size_t aux_offset = offset + need->vn_aux;
		const ElfW(Vernaux) * aux;

		while (file && !strcmp(file, library) &&
		       (aux = at(elf, aux_offset, ElfW(Vernaux), 1))) {
			if (aux->vna_other == index)
				return string(elf, aux->vna_name);
			if (!aux->vna_next)
				break;
			aux_offset += aux->vna_next;
		}
		if (!need->vn_next)
			break;
		offset += need->vn_next;
	}
	return NULL;
}

/* Room for so many symbols is between the table of symbols and what follows it. */
static size_t room_for_symbols(const struct elf *elf)
{
	size_t start = table(elf, DT_SYMTAB), end = elf->size;

	for (size_t i = 0; i < elf->ndynamic && elf->dynamic[i].d_tag != DT_NULL; i++) {
		size_t other = SIZE_MAX;

		switch (elf->dynamic[i].d_tag) {
		case DT_STRTAB:
		case DT_GNU_HASH:
		case DT_VERSYM:
		case DT_VERNEED:
		case DT_VERDEF:
		case DT_REL:
		case DT_RELA:
		case DT_JMPREL:
			other = offset_of(elf, elf->dynamic[i].d_un.d_ptr);
		}
		if (other > start && other < end)
			end = other;
	}
	return start < end ? (end - start) / sizeof(ElfW(Sym)) : 0;
}

/*
 * The number of the symbol after the last one that is hashed, 0: none is. A chain ends with an odd
 * number. head: buckets, first hashed symbol, words of a filter, which come before the buckets.
 */
static size_t after_hashed(const struct elf *elf, size_t offset)
{
	const Elf32_Word *head = at(elf, offset, Elf32_Word, 4), *bucket, *chain;
	size_t last = 0;

	if (!head)
		return 0;
	offset += 4 * sizeof(*head) + head[2] * sizeof(ElfW(Addr));
	bucket = at(elf, offset, Elf32_Word, head[0]);
	for (size_t i = 0; bucket && i < head[0]; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (!last || last < head[1])
		return 0;
	offset += (head[0] + last - head[1]) * sizeof(*chain);
	while ((chain = at(elf, offset, Elf32_Word, 1)) && !(*chain & 1)) {
		offset += sizeof(*chain);
		last++;
	}
	return last + 1;
}

/*
 * Nothing in a file says how many symbols it has. A program that exports none has nothing in its
 * table of hashes, and some linkers do not even tell there where the other symbols end.
 */
static size_t count_symbols(const struct elf *elf)
{
	const Elf32_Word *hash = at(elf, table(elf, DT_HASH), Elf32_Word, 2);
	size_t n = hash ? hash[1] : after_hashed(elf, table(elf, DT_GNU_HASH));

	return n ? n : room_for_symbols(elf);
}

bool elf_each_symbol(const struct elf *elf, const char *library,
		     bool (*each)(void *arg, const char *symbol, const char *version), void *arg)
{
	size_t n = count_symbols(elf);
	const ElfW(Sym) *symbol = at(elf, table(elf, DT_SYMTAB), ElfW(Sym), n);
	const ElfW(Half) *index = at(elf, table(elf, DT_VERSYM), ElfW(Half), n);

	if (!symbol || !index)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *name, *version;

		/* Both classes have the binding in the same place. */
		if (symbol[i].st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol[i].st_info) == STB_WEAK)
			continue;
		version = version_name(elf, library, index[i] & 0x7fff);
		name = string(elf, symbol[i].st_name);
		if (version && name && !each(arg, name, version))
			return false;
	}
	return true;
}

/*
 * The paths of device files and those of sysfs have it. The name of a kind of network, as in ip(8),
 * has no slash.
 */
static bool looks_for_hca(const struct elf *elf)
{
	return memmem(elf->map, elf->size, "/infiniband", strlen("/infiniband")) != NULL;
}

static bool has_loader(const struct elf *elf)
{
	const ElfW(Phdr) * segment;
	size_t n;

	segment = segments(elf, &n);
	for (size_t i = 0; segment && i < n; i++)
		if (segment[i].p_type == PT_INTERP)
			return true;
	return !segment;
}

enum elf_reach elf_reach(const char *path)
{
	enum elf_reach reach = ELF_REACHED;
	const ElfW(Ehdr) * head;
	ElfW(Ehdr) own;
	struct elf elf;

	if (map_file(&elf, path))
		return ELF_REACHED;
	head = (const void *)elf.map;
	/* What is read here lies in the same places in heads of both classes. */
	if (elf.size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) || !own_head(&own))
		reach = ELF_REACHED;
	else if (own.e_ident[EI_CLASS] == ELFCLASS64 && head->e_ident[EI_CLASS] == ELFCLASS32)
		reach = ELF_32;
	else if (!known(&elf))
		reach = ELF_MACHINE;
	else if (!has_loader(&elf) && looks_for_hca(&elf))
		reach = ELF_STATIC;
	elf_close(&elf);
	return reach;
}
