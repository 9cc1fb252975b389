/* Reasons by code (reasons.def). Code compares codes; texts are for people and profiles. */
#ifndef MG_STORE_REASON_H
#define MG_STORE_REASON_H

#include "base/compiler.h"

enum mg_reason {
    MG_REASON_none,
    MG_REASON_detail, /* a text of its own */
#define REASON(code, kind, text) MG_REASON_##code,
#include "store/reasons.def"
#undef REASON
    MG_REASON_COUNT
};
/* A reason with its own text, or NULL: the code's. */
struct mg_why {
    enum mg_reason code;
    const char *text;
};

const char *mg_reason_text(enum mg_reason r); /* NULL: none, detail */
/* The code whose text this is, of those without a detail; else detail. NULL: none. For texts read from a profile. */
enum mg_reason mg_reason_find(const char *text);
bool mg_reason_is_choice(enum mg_reason r); /* the user wanted it so */
static inline const char *mg_why_text(struct mg_why w)
{
    return w.text ? w.text : mg_reason_text(w.code);
}
static inline struct mg_why mg_why_of(enum mg_reason r)
{
    return (struct mg_why){r, NULL};
}

#endif
