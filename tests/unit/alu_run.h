/* Runs one instruction form of the emulator's arithmetic over the inputs of tests/exec/alu. */
#ifndef MG_TESTS_ALU_RUN_H
#define MG_TESTS_ALU_RUN_H

#include "../exec/alu/inputs.h"
#include "device/emu/operations.h"
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

struct alu_case { /* one line of h200.txt */
    char form[120], results[60], operands[60];
    unsigned long long hash;
    char *shown; /* in the line */
};
static inline bool alu_case_parse(struct alu_case *c, char *line)
{
    char *bar[4];
    for (int i = 0; i < 4; i++) {
        bar[i] = strstr(i ? bar[i - 1] + 1 : line, " |");
        if (!bar[i]) return false;
        *bar[i] = 0;
    }
    if (strlen(line) >= sizeof c->form || strlen(bar[0] + 3) >= sizeof c->results ||
        strlen(bar[1] + 3) >= sizeof c->operands)
        return false;
    strcpy(c->form, line), strcpy(c->results, bar[0] + 3), strcpy(c->operands, bar[1] + 3);
    c->hash = strtoull(bar[2] + 3, NULL, 16);
    c->shown = bar[3] + 2;
    return true;
}

static inline unsigned alu_type_bits(const char *t)
{
    enum mg_type type = mg_type_find(t, strlen(t));
    unsigned b = mg_type_bits(type);
    return !type ? 1 : b < 8 && b > 1 ? 8 : b;
}
static inline enum alu_kind alu_type_kind(const char *t)
{
    return !strncmp(t, "bf", 2)    ? IN_BF16
           : !strncmp(t, "f16", 3) ? IN_F16
           : !strcmp(t, "f32")     ? IN_F32
           : !strcmp(t, "f64")     ? IN_F64
                                   : IN_INT;
}
static inline uint32_t alu_selector(const char *s)
{
    uint32_t neg = s[0] == '-' && s[1] ? 16 : 0;
    if (neg) s++;
    return neg | (uint32_t)(s[0] == 'b' ? MG_SEL_b0 + s[1] - '0' : s[0] == 'h' ? MG_SEL_h0 + s[1] - '0' : 0);
}

struct alu_machine { /* registers: page k at k * 512; 0 is unused */
    char regs[16 * 512] __attribute__((aligned(64)));
};
enum { ALU_AT_D = 512, ALU_AT_D2 = 1024, ALU_AT_S = 1536, ALU_AT_CC = 4096 };

/* Sets the form up. False: the emulator does not know it. */
static inline bool alu_prepare(const struct alu_case *c, enum emu_isa isa, struct emu_alu *op,
                               struct emu_alu_desc *desc)
{
    char text[120], *words[6] = {0};
    int n = 0;
    strcpy(text, c->form);
    for (char *w = strtok(text, " "); w && n < 6; w = strtok(NULL, " ")) words[n++] = w;
    struct mg_form f = {0};
    mg_form_parse(&f, words[0], strlen(words[0]));
    uint32_t n_opnds = 2; /* destination and as many sources as there are commas, and one */
    for (const char *p = c->operands; *p; p++) n_opnds += *p == ',';
    if (strstr(c->operands, "cin")) n_opnds--;
    bool lop3 = f.op == MG_OP_lop3, video = words[0][0] == 'v';
    if (!emu_alu_find(&f, n_opnds + lop3, 90, false, isa, desc)) return false;
    *op = (struct emu_alu){.fn = emu_function(desc->opcode, isa, 0, false),
                           .d = ALU_AT_D,
                           .d2 = strchr(c->results, ',') && desc->d2 ? ALU_AT_D2 : 0,
                           .imm = desc->imm,
                           .cc = ALU_AT_CC};
    for (uint32_t k = 0; k < 4; k++) op->s[k] = ALU_AT_S + k * 512;
    if (lop3) op->imm |= (uint32_t)atoi(words[1]);
    for (int k = 1; video && k < n; k++) op->imm |= emu_video_selector((unsigned)k - 1, alu_selector(words[k]), false);
    return true;
}

static inline void alu_load(struct alu_machine *m, const struct alu_case *c, unsigned tuple0)
{
    char types[60], *t = types;
    strcpy(types, c->operands);
    memset(m->regs, 0xa5, sizeof m->regs);
    for (unsigned k = 0; t && k < 4; k++) {
        char *comma = strchr(t, ',');
        if (comma) *comma = 0;
        bool cin = !strcmp(t, "cin");
        unsigned bits = alu_type_bits(t), slot = cin ? 3 : k;
        uint32_t at = cin ? ALU_AT_CC : ALU_AT_S + k * 512, p = 0;
        for (unsigned i = 0; i < 32; i++) {
            uint64_t v = alu_input(alu_type_kind(t), bits, tuple0 + i, slot);
            if (bits == 1)
                p |= (uint32_t)(v & 1) << i;
            else if (bits == 64)
                ((uint64_t *)(m->regs + at))[i] = v;
            else
                ((uint32_t *)(m->regs + at))[i] = (uint32_t)v;
        }
        if (bits == 1) *(uint32_t *)(m->regs + at) = p;
        t = comma ? comma + 1 : NULL;
    }
}
/* Result k (0: d, 1: second) of lane i */
static inline uint64_t alu_result(const struct alu_machine *m, const struct alu_case *c,
                                  const struct emu_alu_desc *desc, unsigned k, unsigned i)
{
    char type[60];
    strcpy(type, c->results);
    char *second = strchr(type, ',');
    if (second) *second++ = 0;
    if (k && !second) return 0;
    if (k) return *(const uint32_t *)(m->regs + (desc->d2 ? ALU_AT_D2 : ALU_AT_CC)) >> i & 1;
    unsigned bits = alu_type_bits(type);
    if (desc->d == EMU_P) return *(const uint32_t *)(m->regs + ALU_AT_D) >> i & 1;
    uint64_t v =
        desc->d == EMU_D ? ((const uint64_t *)(m->regs + ALU_AT_D))[i] : ((const uint32_t *)(m->regs + ALU_AT_D))[i];
    return bits == 64 ? v : v & ((1ull << bits) - 1);
}

#endif
