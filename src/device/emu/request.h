/* What the lanes of a request ask for together, and what of it is counted (isa/request.h): vec_request.c, cells.c. */
#ifndef MG_DEVICE_EMU_REQUEST_H
#define MG_DEVICE_EMU_REQUEST_H

#include "device/emu/emu.h"
#include "isa/request.h"

struct emu_looked {
    uint32_t pattern, sectors, lines, conflicts;
};
/* mask: lanes that make the access, not none; addresses of others are not looked at. */
void emu_request_look_base(const struct emu_request *r, const uint64_t *at, uint32_t mask, struct emu_looked *x);
void emu_request_look_avx2(const struct emu_request *r, const uint64_t *at, uint32_t mask, struct emu_looked *x);
void emu_request_look_avx512(const struct emu_request *r, const uint64_t *at, uint32_t mask, struct emu_looked *x);
/* n such requests */
void emu_request_add(struct emu_worker *wk, const struct emu_request *r, const struct emu_looked *x, uint64_t n);
/* What carried values sum up to (MG_CR_SUMS), and their least and greatest keys. */
void emu_carried_add(struct emu_worker *wk, const struct emu_carried *r, const uint64_t *sums, uint64_t least,
                     uint64_t most);

#endif
