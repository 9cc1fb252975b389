/* Entries, slots and hooks (slots.c, generated thunks).
 *
 *   exported cu* ── jump ──► hook (one of hooks.def) ── MG_REAL(cu*) ──► slot ──► backend
 *        └───────────────── jump ─────────────────────────────────────────┘    own driver, or NVIDIA's
 *
 * Rules of this folder: the guard first (mg_inside), the driver's result returned unchanged, pass
 * through on any doubt, no lock held across a call that the application's code may be under,
 * nothing printed but one line through mg_session_say. */
#ifndef MG_INJECT_HOOKS_H
#define MG_INJECT_HOOKS_H

#include "abi/cu.h"

enum mg_entry {
#define ENTRY(name, base, since, per_thread) MG_FN_##name,
#include "abi/entries.def"
#undef ENTRY
    MG_FN_COUNT
};
extern void *mg_slots[MG_FN_COUNT];               /* where a call goes in the end */
extern void *const mg_hook_table[MG_FN_COUNT];    /* our hook or NULL */
extern void *const mg_missing_table[MG_FN_COUNT]; /* says the name once, returns NOT_SUPPORTED */

/* Defines a hook: MG_HOOK(cuInit, unsigned flags) { ... } */
#define MG_HOOK(name, ...)                                                                                             \
    cu_result mg_hook_##name(__VA_ARGS__);                                                                             \
    cu_result mg_hook_##name(__VA_ARGS__)
/* The driver's function behind a hooked entry, and behind any other with its type given. */
#define MG_REAL(name)         ((__typeof__(&mg_hook_##name))mg_slots[MG_FN_##name])
#define MG_REAL_AS(name, ...) ((cu_result(*)(__VA_ARGS__))mg_slots[MG_FN_##name])

/* Reads the configuration, opens the backend and fills the slots, once. */
void mg_inject_ready(void);
cu_result mg_inject_missing(unsigned entry);
/* Entry whose slot holds this address, or -1. */
int mg_slot_find(const void *address);

extern __thread int mg_inside; /* > 0: this thread is in a hook, or in a call that we make ourselves */

#endif
