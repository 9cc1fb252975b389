/* usage: export-symbols FILE.o: gives the global symbols of a relocatable ELF file that are hidden default visibility, in place.
 * Margay's sources are compiled with hidden visibility. The shared core (libmargay-core.so) has to show them to tools. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int show(char *at, size_t n_bytes)
{
    Elf64_Ehdr e;
    if (n_bytes < sizeof e) return -1;
    memcpy(&e, at, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_type != ET_REL) return -1;
    if (e.e_shoff > n_bytes || e.e_shnum > (n_bytes - e.e_shoff) / sizeof(Elf64_Shdr)) return -1;
    int n = 0;
    for (int i = 0; i < e.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, at + e.e_shoff + (size_t)i * sizeof s, sizeof s);
        if (s.sh_type != SHT_SYMTAB) continue;
        if (s.sh_offset > n_bytes || s.sh_size > n_bytes - s.sh_offset) return -1;
        for (char *p = at + s.sh_offset, *end = p + s.sh_size / sizeof(Elf64_Sym) * sizeof(Elf64_Sym); p < end; p += sizeof(Elf64_Sym)) {
            Elf64_Sym y;
            memcpy(&y, p, sizeof y);
            if (ELF64_ST_BIND(y.st_info) == STB_LOCAL || y.st_shndx == SHN_UNDEF || ELF64_ST_VISIBILITY(y.st_other) != STV_HIDDEN) continue;
            y.st_other = STV_DEFAULT;
            memcpy(p, &y, sizeof y);
            n++;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    struct stat st;
    int f = argc == 2 ? open(argv[1], O_RDWR) : -1;
    if (f < 0 || fstat(f, &st)) {
        fprintf(stderr, "export-symbols: usage: export-symbols FILE.o\n");
        return 2;
    }
    char *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    int n = at == MAP_FAILED ? -1 : show(at, (size_t)st.st_size);
    if (n <= 0) fprintf(stderr, "export-symbols: %s: no relocatable ELF file with hidden symbols\n", argv[1]);
    return n <= 0;
}
