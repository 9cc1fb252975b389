/* How many machine instructions the schedulers issue for a block: costs.def says so of operations of PTX that the
 * assembler makes several of. All others count one. */
#include <string.h>

#include "report/advice/priv.h"

static const struct cost {
    const char *words; /* of the opcode: all of these, in any order */
    double issues;
} costs[] = {
#define COST(words, issues) {words, issues},
#define COST_UNIT           COST
#define COST_AGAIN(op, issues)
#include "report/advice/costs.def"
#undef COST
#undef COST_UNIT
#undef COST_AGAIN
};

static const struct cost kept[] = {
/* of a division whose divisor a loop does not change */
#define COST(words, issues)
#define COST_UNIT              COST
#define COST_AGAIN(op, issues) {op, issues},
#include "report/advice/costs.def"
#undef COST
#undef COST_UNIT
#undef COST_AGAIN
};

/* Is the word of that many letters one of those that dots part? "shared::cta" counts as "shared". */
static bool has_word(const char *words, const char *word, size_t n)
{
    for (; *words; words += strcspn(words, "."), words += *words == '.')
        if (strcspn(words, ".:") == n && !memcmp(words, word, n)) return true;
    return false;
}

/* How many words the row has; 0: the opcode lacks one. */
static size_t words_met(const char *op, const char *row)
{
    size_t met = 0;
    for (size_t n; *row; row += n, row += *row == '.', met++) {
        n = strcspn(row, ".");
        if (!has_word(op, row, n)) return 0;
    }
    return met;
}

double issues_of_op(const char *op)
{
    bool red = !strncmp(op, "red.", 4); /* an atomic whose result nobody reads */
    size_t stem = strcspn(op, "."), most = 0;
    double found = 1;
    for (size_t i = 0; i < MG_COUNT_OF(costs); i++) {
        const char *row = costs[i].words;
        bool same = red ? !strncmp(row, "atom.", 5) : strcspn(row, ".") == stem && !memcmp(row, op, stem);
        size_t met = same ? words_met(op, row + (red ? 5 : 0)) : 0;
        if (met <= most) continue;
        most = met;
        found = costs[i].issues;
    }
    return found;
}

double issues_of_op_again(const char *op)
{
    for (size_t i = 0; i < MG_COUNT_OF(kept); i++)
        if (!strcmp(kept[i].words, op)) return kept[i].issues;
    return issues_of_op(op);
}

double issues_of_block(const struct mg_pblock *b)
{
    double sum = b->n_insts;
    for (uint32_t i = 0; i < b->n_ops; i++) sum += (issues_of_op(b->ops[i].op) - 1) * b->ops[i].n;
    return sum;
}
