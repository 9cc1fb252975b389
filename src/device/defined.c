/* --check: pages of global memory that are not wholly written (defined.h). */
#include "device/defined.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/map.h"

bool mg_defined_on;
_Atomic(mg_page_slot *) *mg_page_table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mg_page *retired; /* given up by one kernel, while others may hold them */
static uint32_t n_running;

static void *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool mg_defined_begin(void)
{
    pthread_mutex_lock(&lock);
    if (!mg_page_table) mg_page_table = map(sizeof *mg_page_table << MG_PAGE_HIGH);
    if (mg_page_table) mg_defined_on = true;
    pthread_mutex_unlock(&lock);
    return mg_defined_on;
}

/* ---- pages --------------------------------------------------------------------------------------- */

static mg_page_slot *slot_of(uint64_t address)
{
    uint64_t high = address >> (MG_PAGE_SHIFT + MG_PAGE_LOW);
    if (high >> MG_PAGE_HIGH) return NULL;
    mg_page_slot *row = atomic_load_explicit(&mg_page_table[high], memory_order_acquire);
    if (!row) {
        mg_page_slot *made = map(sizeof *made << MG_PAGE_LOW);
        if (!made) return NULL;
        if (atomic_compare_exchange_strong(&mg_page_table[high], &row, made))
            row = made;
        else
            munmap(made, sizeof *made << MG_PAGE_LOW);
    }
    return &row[address >> MG_PAGE_SHIFT & ((1u << MG_PAGE_LOW) - 1)];
}

/* Pieces that nobody has, each with the address of the next one; never given back to the system: a kernel may still
 * look at one. */
struct spares {
    void *first;
    size_t bytes, link; /* of a piece; where in it the address lies */
};
static struct spares pages = {NULL, sizeof(struct mg_page), offsetof(struct mg_page, next)};

static void put(struct spares *s, void *piece)
{
    memcpy((char *)piece + s->link, &s->first, sizeof s->first);
    s->first = piece;
}

static void give(struct spares *s, void *piece)
{
    pthread_mutex_lock(&lock);
    put(s, piece);
    pthread_mutex_unlock(&lock);
}

static void *take(struct spares *s)
{
    enum { AT_ONCE = 64 };
    pthread_mutex_lock(&lock);
    char *more = s->first ? NULL : map(AT_ONCE * s->bytes), *piece;
    for (unsigned i = AT_ONCE; more && i-- > 0;) put(s, more + i * s->bytes);
    piece = s->first;
    if (piece) memcpy(&s->first, piece + s->link, sizeof s->first);
    pthread_mutex_unlock(&lock);
    return piece;
}

/* What pages know of stores: like pages, never given back, and where a leak checker need not look for them. */
union who {
    uint8_t of_word[MG_PAGE_WORDS];
    union who *next;
};
static struct spares whos = {NULL, sizeof(union who), offsetof(union who, next)};

static void give_page(struct mg_page *p)
{
    uint8_t *who = atomic_load(&p->who);
    if (who) memset(who, 0, MG_PAGE_WORDS);
    atomic_store(&p->looks, 0);
    give(&pages, p);
}

static struct mg_page *open_slot(mg_page_slot *s)
{
    for (;;) {
        uintptr_t was = atomic_load(s);
        if (was > MG_PAGE_FRESH) return (struct mg_page *)was;
        struct mg_page *p = take(&pages);
        if (!p) return NULL;
        memset(p->bits, was == MG_PAGE_DEFINED ? 0xff : 0, sizeof p->bits);
        if (atomic_compare_exchange_strong(s, &was, (uintptr_t)p)) return p;
        give_page(p);
    }
}

bool mg_page_try_defined(uint64_t address, struct mg_page *p)
{
    enum { OFTEN = 32, SELDOM = 4096 };
    uint32_t n = atomic_fetch_add_explicit(&p->looks, 1, memory_order_relaxed) + 1;
    if (n % SELDOM && (n > 16 * OFTEN || n % OFTEN)) return false;
    uint64_t all = UINT64_MAX, v;
    for (uint32_t i = 0; i < MG_PAGE_BYTES; i += 8) {
        memcpy(&v, p->bits + i, 8);
        all &= v;
    }
    mg_page_slot *s = all == UINT64_MAX ? slot_of(address) : NULL;
    uintptr_t was = (uintptr_t)p;
    if (!s || !atomic_compare_exchange_strong(s, &was, MG_PAGE_DEFINED)) return false;
    pthread_mutex_lock(&lock);
    p->next = retired;
    retired = p;
    pthread_mutex_unlock(&lock);
    return true;
}

void mg_defined_enter(void)
{
    struct mg_page *list = NULL;
    pthread_mutex_lock(&lock);
    if (!n_running++) {
        list = retired;
        retired = NULL;
    }
    pthread_mutex_unlock(&lock);
    while (list) {
        struct mg_page *next = list->next;
        give_page(list);
        list = next;
    }
}

void mg_defined_leave(void)
{
    pthread_mutex_lock(&lock);
    n_running--;
    pthread_mutex_unlock(&lock);
}

struct mg_page *mg_page_open(uint64_t address)
{
    mg_page_slot *s = slot_of(address);
    return s ? open_slot(s) : NULL;
}

void mg_page_who(struct mg_page *p, uint64_t address, uint32_t bytes, uint8_t store)
{
    uint8_t *who = atomic_load(&p->who);
    uint32_t at = (uint32_t)(address & (MG_PAGE_BYTES - 1));
    if (!who) {
        union who *made = take(&whos);
        if (!made) return;
        made->next = NULL;
        if (atomic_compare_exchange_strong(&p->who, &who, made->of_word))
            who = made->of_word;
        else
            give(&whos, made);
    }
    for (uint32_t w = at / 4; w <= (at + bytes - 1) / 4 && w < MG_PAGE_WORDS; w++) who[w] = store;
}

/* ---- ranges -------------------------------------------------------------------------------------- */

static void make(uint64_t base, uint64_t bytes, uintptr_t state)
{
    if (!mg_defined_on || !bytes) return;
    for (uint64_t at = base, end = base + bytes; at < end;) {
        uint64_t next = MG_MIN((at | (MG_PAGE_BYTES - 1)) + 1, end);
        if (mg_page_of(at) != state) {
            mg_page_slot *s = slot_of(at);
            struct mg_page *p = NULL;
            if (!s) return;
            if (next - at == MG_PAGE_BYTES) {
                uintptr_t was = atomic_exchange(s, state);
                if (was > MG_PAGE_FRESH) give_page((struct mg_page *)was);
            } else if ((p = open_slot(s))) {
                memset(p->bits + (at & (MG_PAGE_BYTES - 1)), state == MG_PAGE_DEFINED ? 0xff : 0, next - at);
                if (state == MG_PAGE_FRESH && atomic_load(&p->who)) mg_page_who(p, at, (uint32_t)(next - at), 0);
            }
        }
        at = next;
    }
}

void mg_defined_fresh(uint64_t base, uint64_t bytes)
{
    make(base, bytes, MG_PAGE_FRESH);
}
void mg_defined_set(uint64_t base, uint64_t bytes)
{
    make(base, bytes, MG_PAGE_DEFINED);
}

/* ---- stores of undefined bits ---------------------------------------------------------------------- */

static struct {
    char *kernel, *text;
    uint64_t place, copied;
    bool said, told;
} stores[MG_DEFINED_STORES + 1];
static uint32_t n_stores;

uint8_t mg_defined_store_new(const char *kernel, uint64_t place)
{
    uint32_t i = 1;
    pthread_mutex_lock(&lock);
    while (i <= n_stores && (stores[i].place != place || strcmp(stores[i].kernel, kernel))) i++;
    if (i > n_stores && n_stores < MG_DEFINED_STORES && (stores[i].kernel = strdup(kernel))) {
        stores[i].place = place;
        n_stores = i;
    }
    pthread_mutex_unlock(&lock);
    return i <= n_stores ? (uint8_t)i : 0;
}

void mg_defined_store_tell(uint8_t store, const char *text)
{
    pthread_mutex_lock(&lock);
    if (store && !stores[store].text) stores[store].text = strdup(text);
    pthread_mutex_unlock(&lock);
}

/* One note a kernel: the place that was seen first stands for the others. */
static void note_copied(uint8_t store, uint64_t bytes)
{
    uint32_t i = 1;
    pthread_mutex_lock(&lock);
    while (i <= n_stores && (!stores[i].told || strcmp(stores[i].kernel, stores[store].kernel))) i++;
    if (i > n_stores) stores[i = store].told = true;
    stores[i].copied += bytes;
    pthread_mutex_unlock(&lock);
}

uint64_t mg_defined_copied(uint8_t store)
{
    pthread_mutex_lock(&lock);
    uint64_t n = stores[store].copied;
    pthread_mutex_unlock(&lock);
    return n;
}

const char *mg_defined_said(void)
{
    const char *text = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i <= n_stores && !text; i++)
        if (stores[i].copied && !stores[i].said && stores[i].text) {
            text = stores[i].text;
            stores[i].said = true;
        }
    pthread_mutex_unlock(&lock);
    return text;
}

/* ---- copies ---------------------------------------------------------------------------------------- */

/* What a part of one page that goes to the host holds of what kernels stored undefined. */
static void note_undefined(const struct mg_page *p, uint32_t at, uint32_t bytes)
{
    const uint8_t *who = atomic_load(&((struct mg_page *)(uintptr_t)p)->who);
    if (!who) return;
    for (uint32_t i = at, n; i < at + bytes; i += n) {
        uint8_t store = who[i / 4];
        uint32_t bad = 0;
        n = MG_MIN(4 - i % 4, at + bytes - i);
        for (uint32_t k = 0; store && k < n; k++) bad += p->bits[i + k] != 0xff;
        if (bad) note_copied(store, bad);
    }
}

static void copy_part(uint64_t to, uint64_t from, uint32_t bytes)
{
    uintptr_t s = mg_page_of(from);
    if (s <= MG_PAGE_FRESH) {
        make(to, bytes, s);
        return;
    }
    const struct mg_page *p = (const struct mg_page *)s;
    struct mg_page *d = mg_page_open(to);
    uint32_t at = (uint32_t)(from & (MG_PAGE_BYTES - 1)), there = (uint32_t)(to & (MG_PAGE_BYTES - 1));
    const uint8_t *who = atomic_load(&((struct mg_page *)s)->who);
    if (!d) return;
    memmove(d->bits + there, p->bits + at, bytes);
    for (uint32_t i = 0; who && i < bytes; i++)
        if (p->bits[at + i] != 0xff && who[(at + i) / 4]) mg_page_who(d, to + i, 1, who[(at + i) / 4]);
}

void mg_defined_copy(uint64_t to, uint64_t from, uint64_t bytes, bool to_host)
{
    if (!mg_defined_on) return;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t a = from + done, b = to + done;
        uint64_t n = MG_MIN(
            bytes - done, MG_MIN(MG_PAGE_BYTES - (a & (MG_PAGE_BYTES - 1)), MG_PAGE_BYTES - (b & (MG_PAGE_BYTES - 1))));
        if (to_host) {
            uintptr_t s = mg_page_of(a);
            if (s > MG_PAGE_FRESH)
                note_undefined((const struct mg_page *)s, (uint32_t)(a & (MG_PAGE_BYTES - 1)), (uint32_t)n);
        } else
            copy_part(b, a, (uint32_t)n);
        done += n;
    }
}
