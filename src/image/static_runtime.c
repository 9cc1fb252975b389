/* Does an executable carry the CUDA runtime inside itself? Such a program talks to the driver
 * through undocumented tables and cannot run without a GPU. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image.h"

struct map {
    const uint8_t *p;
    size_t n;
};

static bool map_file(const char *path, struct map *m)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
    void *p = ok ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED) return false;
    *m = (struct map){p, (size_t)st.st_size};
    return true;
}

static bool section(const struct map *m, const Elf64_Ehdr *h, uint32_t ix, Elf64_Shdr *sh)
{
    if (ix >= h->e_shnum || h->e_shentsize < sizeof *sh) return false;
    uint64_t at = h->e_shoff + (uint64_t)ix * h->e_shentsize;
    if (at > m->n || sizeof *sh > m->n - at) return false;
    memcpy(sh, m->p + at, sizeof *sh);
    return sh->sh_type == SHT_NOBITS || (sh->sh_offset <= m->n && sh->sh_size <= m->n - sh->sh_offset);
}

/* A DT_NEEDED whose name begins so. */
static bool needs(const struct map *m, const Elf64_Ehdr *h, const char *prefix)
{
    for (uint32_t i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr dyn, str;
        if (!section(m, h, i, &dyn) || dyn.sh_type != SHT_DYNAMIC || !section(m, h, dyn.sh_link, &str)) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dyn.sh_size; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn e;
            memcpy(&e, m->p + dyn.sh_offset + at, sizeof e);
            if (e.d_tag != DT_NEEDED || e.d_un.d_val >= str.sh_size) continue;
            const char *name = (const char *)m->p + str.sh_offset + e.d_un.d_val;
            if (str.sh_size - e.d_un.d_val > strlen(prefix) && !memcmp(name, prefix, strlen(prefix))) return true;
        }
    }
    return false;
}

static bool has_registration(const struct map *m, const Elf64_Ehdr *h)
{
    for (uint32_t i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr sh, names;
        if (!section(m, h, i, &sh) || !section(m, h, h->e_shstrndx, &names) || sh.sh_name >= names.sh_size) continue;
        const char *name = (const char *)m->p + names.sh_offset + sh.sh_name;
        size_t room = names.sh_size - sh.sh_name, len = strlen(".nvFatBinSegment");
        if (room > len && !memcmp(name, ".nvFatBinSegment", len + 1)) return true;
    }
    return false;
}

bool mg_image_is_static_cudart(const char *path)
{
    struct map m;
    Elf64_Ehdr h;
    bool found = false;
    if (!map_file(path, &m)) return false;
    if (m.n >= sizeof h) {
        memcpy(&h, m.p, sizeof h);
        /* the runtime names its own environment variables and the driver it opens */
        if (!memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_ident[EI_CLASS] == ELFCLASS64 && !needs(&m, &h, "libcudart.so"))
            found = has_registration(&m, &h) ? memmem(m.p, m.n, "__cudaRegisterFatBinary", 23) || memmem(m.p, m.n, "cudart", 6)
                                             : memmem(m.p, m.n, "CUDA_MODULE_LOADING", 19) && memmem(m.p, m.n, "libcuda.so.1", 12);
    }
    munmap((void *)m.p, m.n);
    return found;
}
