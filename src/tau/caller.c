/* See caller.h. dladdr alone knows exported symbols only; those of a program are in its .symtab. */
#include "tau/caller.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/io.h"

/* Does [off, off + n) lie in a file of so many bytes? */
static bool inside(uint64_t off, uint64_t n, size_t bytes)
{
    return off <= bytes && n <= bytes - off;
}

/* The function symbol that holds `value` (an address as linked) in one symbol table of an ELF file. */
static char *symbol_in(const char *data, size_t bytes, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                       uint64_t value)
{
    if (!inside(table->sh_offset, table->sh_size, bytes) || !inside(strings->sh_offset, strings->sh_size, bytes))
        return NULL;
    for (uint64_t off = 0; off + sizeof(Elf64_Sym) <= table->sh_size; off += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, data + table->sh_offset + off, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || value < s.st_value || value - s.st_value >= s.st_size) continue;
        if (s.st_name >= strings->sh_size) continue;
        const char *name = data + strings->sh_offset + s.st_name;
        return strndup(name, strnlen(name, strings->sh_size - s.st_name));
    }
    return NULL;
}

static char *find_symbol(const char *data, size_t bytes, uint64_t value)
{
    Elf64_Ehdr e;
    if (bytes < sizeof e) return NULL;
    memcpy(&e, data, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_shentsize != sizeof(Elf64_Shdr))
        return NULL;
    if (!inside(e.e_shoff, (uint64_t)e.e_shnum * sizeof(Elf64_Shdr), bytes)) return NULL;
    for (uint32_t i = 0; i < e.e_shnum; i++) {
        Elf64_Shdr table, strings;
        memcpy(&table, data + e.e_shoff + i * sizeof table, sizeof table);
        if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) || table.sh_link >= e.e_shnum) continue;
        memcpy(&strings, data + e.e_shoff + table.sh_link * sizeof strings, sizeof strings);
        char *name = symbol_in(data, bytes, &table, &strings, value);
        if (name) return name;
    }
    return NULL;
}

/* "void ns::f<int>(int*)" is f's whole declaration: its name is what stands before the parameters, behind the result.
 */
static char *short_name(char *name)
{
    char *whole = mg_demangle(name);
    if (!whole) return name;
    free(name);
    int depth = 0;
    char *start = whole;
    for (char *c = whole; *c; c++) {
        if (*c == '<')
            depth++;
        else if (*c == '>')
            depth--;
        else if (*c == ' ' && !depth)
            start = c + 1;
        else if (*c == '(' && !depth) {
            *c = 0;
            break;
        }
    }
    char *copy = strdup(start);
    free(whole);
    return copy;
}

char *tau_function_at(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
    char *data;
    size_t bytes;
    const char *path = map->l_name && *map->l_name ? map->l_name : "/proc/self/exe";
    if (mg_io_read(path, &data, &bytes, NULL)) return NULL;
    char *name = find_symbol(data, bytes, (uint64_t)(uintptr_t)address - map->l_addr);
    free(data);
    if (!name && info.dli_sname) name = strdup(info.dli_sname);
    return name ? short_name(name) : NULL;
}
