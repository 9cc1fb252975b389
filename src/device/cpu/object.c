/* Loads compiled code: an ELF object of ours becomes memory that can be executed.
 *
 * What is in it comes from the code cache as well as from LLVM, so that nothing is trusted but what
 * the file's sum vouches for: every offset is checked. Relocations are those of position-independent
 * x86-64 code; a symbol of the object's outside must be one of `outside`. Unwind tables are left
 * out: faults leave compiled code by longjmp, which needs none.
 *
 *   [sections, read-only data before and behind code alike][slots: jmp *at; at: address]  one mapping, R+X
 */
#include "device/cpu/cpu.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOT_BYTES 16

/* What code generation may call: copies, and for CPUs without the instruction, roundings. */
#define OUTSIDE(x)                                                                                                     \
    {                                                                                                                  \
#x, (uint64_t)(uintptr_t)(x)                                                                                   \
    }
static const struct outside {
    const char *name;
    uint64_t at;
} outside[] = {
    OUTSIDE(memcpy), OUTSIDE(memmove), OUTSIDE(memset), OUTSIDE(fmaf),       OUTSIDE(fma),
    OUTSIDE(floorf), OUTSIDE(floor),   OUTSIDE(ceilf),  OUTSIDE(ceil),       OUTSIDE(truncf),
    OUTSIDE(trunc),  OUTSIDE(rintf),   OUTSIDE(rint),   OUTSIDE(nearbyintf), OUTSIDE(nearbyint),
};

static const struct outside *find_outside(const char *name)
{
    for (unsigned i = 0; i < MG_COUNT_OF(outside); i++)
        if (!strcmp(outside[i].name, name)) return &outside[i];
    return NULL;
}

struct file {
    const char *data;
    size_t n;
    const Elf64_Shdr *sections;
    uint32_t n_sections;
    uint64_t *at; /* by section: offset in the mapping plus one, 0: not loaded */
    const Elf64_Sym *symbols;
    uint32_t n_symbols;
    const char *names;
    uint64_t names_bytes;
    uint32_t *slot; /* by symbol: its slot plus one */
    uint32_t n_slots;
    char *image;
    uint64_t slots_at, bytes;
    char *why;
    size_t why_bytes;
};

static bool refuse(struct file *f, const char *what)
{
    snprintf(f->why, f->why_bytes, "the compiled code cannot be loaded: %s", what);
    return false;
}

static const void *part(const struct file *f, uint64_t off, uint64_t bytes)
{
    return off <= f->n && bytes <= f->n - off ? f->data + off : NULL;
}

static bool read_head(struct file *f)
{
    const Elf64_Ehdr *h = part(f, 0, sizeof *h);
    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_REL ||
        h->e_machine != EM_X86_64)
        return refuse(f, "not an x86-64 object");
    f->n_sections = h->e_shnum;
    if (h->e_shentsize != sizeof *f->sections || h->e_shoff % 8 ||
        !(f->sections = part(f, h->e_shoff, (uint64_t)f->n_sections * sizeof *f->sections)))
        return refuse(f, "no sections");
    for (uint32_t i = 0; i < f->n_sections; i++) {
        const Elf64_Shdr *s = &f->sections[i];
        if (s->sh_type != SHT_NOBITS && !part(f, s->sh_offset, s->sh_size))
            return refuse(f, "a section lies outside the file");
        if (s->sh_type != SHT_SYMTAB) continue;
        if (s->sh_offset % 8 || s->sh_link >= f->n_sections || f->sections[s->sh_link].sh_type != SHT_STRTAB)
            return refuse(f, "its symbols have no names");
        const Elf64_Shdr *names = &f->sections[s->sh_link];
        f->symbols = part(f, s->sh_offset, s->sh_size);
        f->n_symbols = (uint32_t)(s->sh_size / sizeof *f->symbols);
        f->names = part(f, names->sh_offset, names->sh_size);
        f->names_bytes = names->sh_size;
    }
    if (!f->symbols || !f->names || !f->names_bytes || f->names[f->names_bytes - 1]) return refuse(f, "no symbols");
    return true;
}

static bool is_loaded(const Elf64_Shdr *s)
{
    return s->sh_flags & SHF_ALLOC && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS);
}

/* Places of the sections; unwind tables are PROGBITS of a name of their own, or a type of their own. */
static bool place(struct file *f)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)f->data;
    const Elf64_Shdr *names = h->e_shstrndx < f->n_sections ? &f->sections[h->e_shstrndx] : NULL;
    const char *text =
        names && names->sh_type == SHT_STRTAB && names->sh_size ? part(f, names->sh_offset, names->sh_size) : NULL;
    if (!text || text[names->sh_size - 1]) return refuse(f, "its sections have no names");
    for (uint32_t i = 0; i < f->n_sections; i++) {
        const Elf64_Shdr *s = &f->sections[i];
        uint64_t align = MG_MAX(s->sh_addralign, 1);
        if (!is_loaded(s) || (s->sh_name < names->sh_size && !strcmp(text + s->sh_name, ".eh_frame"))) continue;
        if (align > 4096 || align & (align - 1) || s->sh_size > 1u << 30)
            return refuse(f, "a section cannot be placed");
        f->bytes = (f->bytes + align - 1) & ~(align - 1);
        f->at[i] = f->bytes + 1;
        f->bytes += s->sh_size;
        if (f->bytes > 1u << 30) return refuse(f, "it is larger than 1 GiB");
    }
    f->slots_at = (f->bytes + SLOT_BYTES - 1) & ~(uint64_t)(SLOT_BYTES - 1);
    f->bytes = (f->slots_at + (uint64_t)f->n_symbols * SLOT_BYTES + 4095) & ~4095ull;
    return true;
}

/* Address of a symbol; false: neither here nor one of those outside. */
static bool symbol_at(struct file *f, uint32_t ix, uint64_t *out)
{
    const Elf64_Sym *s = &f->symbols[ix];
    if (s->st_shndx == SHN_UNDEF) {
        const struct outside *o = s->st_name < f->names_bytes ? find_outside(f->names + s->st_name) : NULL;
        if (o) *out = o->at;
        return o != NULL;
    }
    if (s->st_shndx >= f->n_sections || !f->at[s->st_shndx] || s->st_value > f->sections[s->st_shndx].sh_size)
        return false;
    *out = (uint64_t)(uintptr_t)f->image + f->at[s->st_shndx] - 1 + s->st_value;
    return true;
}

/* Code that jumps to the symbol; the address behind it is what a GOT entry would hold. */
static uint64_t slot_of(struct file *f, uint32_t ix, uint64_t target)
{
    static const unsigned char jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90};
    if (!f->slot[ix]) f->slot[ix] = ++f->n_slots;
    char *at = f->image + f->slots_at + (uint64_t)(f->slot[ix] - 1) * SLOT_BYTES;
    memcpy(at, jump, sizeof jump);
    memcpy(at + 8, &target, sizeof target);
    return (uint64_t)(uintptr_t)at;
}

static bool relocate(struct file *f, const Elf64_Shdr *in, uint64_t base, const Elf64_Rela *r)
{
    uint32_t ix = (uint32_t)ELF64_R_SYM(r->r_info), type = (uint32_t)ELF64_R_TYPE(r->r_info),
             bytes = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
    uint64_t s;
    if (ix >= f->n_symbols || in->sh_size < bytes || r->r_offset > in->sh_size - bytes)
        return refuse(f, "a relocation lies outside");
    if (!symbol_at(f, ix, &s)) {
        snprintf(f->why, f->why_bytes, "the compiled code needs %s",
                 f->symbols[ix].st_name < f->names_bytes ? f->names + f->symbols[ix].st_name : "?");
        return false;
    }
    char *at = f->image + base + r->r_offset;
    uint64_t here = (uint64_t)(uintptr_t)at, v;
    switch (type) {
    case R_X86_64_64:
        v = s + (uint64_t)r->r_addend;
        break;
    case R_X86_64_PC64:
        v = s + (uint64_t)r->r_addend - here;
        break;
    case R_X86_64_PLT32:
        if (f->symbols[ix].st_shndx == SHN_UNDEF) s = slot_of(f, ix, s);
        v = s + (uint64_t)r->r_addend - here;
        break;
    case R_X86_64_PC32:
        v = s + (uint64_t)r->r_addend - here;
        break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        v = slot_of(f, ix, s) + 8 + (uint64_t)r->r_addend - here;
        break;
    default:
        return refuse(f, "a relocation of another kind");
    }
    if (bytes == 4 && (int64_t)v != (int32_t)v) return refuse(f, "a relocation does not reach");
    memcpy(at, &v, bytes);
    return true;
}

static bool fill(struct file *f)
{
    for (uint32_t i = 0; i < f->n_sections; i++)
        if (f->at[i] && f->sections[i].sh_type != SHT_NOBITS)
            memcpy(f->image + f->at[i] - 1, f->data + f->sections[i].sh_offset, f->sections[i].sh_size);
    for (uint32_t i = 0; i < f->n_sections; i++) {
        const Elf64_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_REL) return refuse(f, "relocations without addends");
        if (s->sh_type != SHT_RELA || s->sh_info >= f->n_sections || !f->at[s->sh_info]) continue;
        if (s->sh_offset % 8) return refuse(f, "relocations lie askew");
        const Elf64_Rela *r = part(f, s->sh_offset, s->sh_size);
        for (uint64_t k = 0; k < s->sh_size / sizeof *r; k++)
            if (!relocate(f, &f->sections[s->sh_info], f->at[s->sh_info] - 1, &r[k])) return false;
    }
    return true;
}

/* A function that the object defines; NULL: none of that name. */
static cpu_code_fn function_named(struct file *f, const char *name)
{
    uint64_t at;
    cpu_code_fn fn = NULL;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        if (ELF64_ST_TYPE(f->symbols[i].st_info) == STT_FUNC && f->symbols[i].st_shndx != SHN_UNDEF &&
            f->symbols[i].st_name < f->names_bytes && !strcmp(f->names + f->symbols[i].st_name, name) &&
            symbol_at(f, i, &at))
            memcpy(&fn, &at, sizeof fn);
    return fn;
}

bool cpu_object_load(const void *data, size_t bytes, struct cpu_object *out, char *why, size_t why_bytes)
{
    struct file f = {.data = data, .n = bytes, .why = why, .why_bytes = why_bytes};
    bool ok = false;
    memset(out, 0, sizeof *out);
    if (!read_head(&f)) return false;
    f.at = calloc(f.n_sections + 1, sizeof *f.at);
    f.slot = calloc(f.n_symbols + 1, sizeof *f.slot);
    if (!f.at || !f.slot)
        refuse(&f, "host memory ran out");
    else if (place(&f)) {
        f.image = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f.image == MAP_FAILED)
            refuse(&f, "no memory to run it in");
        else if (fill(&f)) {
            out->fn = function_named(&f, CPU_SYMBOL);
            if (!out->fn)
                refuse(&f, "its function is missing");
            else if (mprotect(f.image, f.bytes, PROT_READ | PROT_EXEC))
                refuse(&f, "this system does not let memory be executed that was written");
            else
                ok = true;
        }
        if (f.image != MAP_FAILED && !ok) munmap(f.image, f.bytes);
    }
    if (ok) {
        out->image = f.image;
        out->bytes = f.bytes;
    }
    free(f.at);
    free(f.slot);
    return ok;
}

void cpu_object_free(struct cpu_object *o)
{
    if (o->image) munmap(o->image, o->bytes);
    memset(o, 0, sizeof *o);
}
