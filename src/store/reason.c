/* See reason.h. */
#include "store/reason.h"

#include <string.h>

enum kind { OTHER, CHOICE };
static const struct {
    const char *text;
    enum kind kind;
} rows[MG_REASON_COUNT] = {
#define REASON(code, kind, text) [MG_REASON_##code] = {text, kind},
#include "store/reasons.def"
#undef REASON
};

const char *mg_reason_text(enum mg_reason r)
{
    return rows[r].text;
}

enum mg_reason mg_reason_find(const char *text)
{
    if (!text) return MG_REASON_none;
    for (unsigned r = 0; r < MG_REASON_COUNT; r++)
        if (rows[r].text && !strcmp(rows[r].text, text)) return (enum mg_reason)r;
    return MG_REASON_detail;
}

bool mg_reason_is_choice(enum mg_reason r)
{
    return rows[r].kind == CHOICE;
}
