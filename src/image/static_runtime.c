/* Which CUDA runtime does an executable bring or want? One that carries it inside itself talks to the
 * driver through undocumented tables and cannot run without a GPU; one that wants a runtime of another
 * version than ours would meet other structs. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A DT_NEEDED whose name begins so: its text, which ends inside the file; or NULL. */
static const char *needs(const struct map *m, const Elf64_Ehdr *h, const char *prefix)
{
    for (uint32_t i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr dyn, str;
        if (!section(m, h, i, &dyn) || dyn.sh_type != SHT_DYNAMIC || !section(m, h, dyn.sh_link, &str)) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dyn.sh_size; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn e;
            memcpy(&e, m->p + dyn.sh_offset + at, sizeof e);
            if (e.d_tag != DT_NEEDED || e.d_un.d_val >= str.sh_size) continue;
            const char *name = (const char *)m->p + str.sh_offset + e.d_un.d_val;
            size_t room = str.sh_size - e.d_un.d_val;
            if (room > strlen(prefix) && !memcmp(name, prefix, strlen(prefix)) && memchr(name, 0, room)) return name;
        }
    }
    return NULL;
}

/* Text of the runtime's own data, so it survives stripping. It is looked for by its tail with the
 * first two characters apart, or this file would find itself. */
static bool has_text(const struct map *m, char first, char second, const char *tail)
{
    size_t len = strlen(tail);
    const uint8_t *p = m->p, *end = m->p + m->n;
    while ((p = memmem(p, (size_t)(end - p), tail, len))) {
        if (p - m->p >= 2 && p[-1] == (uint8_t)second && p[-2] == (uint8_t)first) return true;
        p += len;
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
        /* its shared-memory file, and the names it reports to profilers */
        if (!memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_ident[EI_CLASS] == ELFCLASS64 && !needs(&m, &h, "libcudart.so"))
            found = has_text(&m, '/', 'c', "udart.shm.") || has_text(&m, 'c', 'u', "daD3D9RegisterVertexBuffer");
    }
    munmap((void *)m.p, m.n);
    return found;
}

bool mg_image_needs_other_cudart(const char *path, unsigned major, char *name, size_t room)
{
    struct map m;
    Elf64_Ehdr h;
    bool other = false;
    if (!map_file(path, &m)) return false;
    if (m.n >= sizeof h) {
        memcpy(&h, m.p, sizeof h);
        const char *lib = !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_ident[EI_CLASS] == ELFCLASS64
                              ? needs(&m, &h, "libcudart.so.")
                              : NULL;
        other = lib && strtoul(lib + strlen("libcudart.so."), NULL, 10) != major;
        if (other) snprintf(name, room, "%s", lib);
    }
    munmap((void *)m.p, m.n);
    return other;
}
