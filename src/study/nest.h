/* Nested dictionaries of texts and numbers, written as JSON or as a Python pickle (protocol 2). */
#ifndef MG_STUDY_NEST_H
#define MG_STUDY_NEST_H

#include "base/json.h"

struct mg_nest {
    struct mg_buf *out;
    bool is_pickle;
    struct mg_json json;
};
/* Several values one behind the other: each begins and ends on its own. In a pickle file, one load() for each. */
void mg_nest_begin(struct mg_nest *n, struct mg_buf *out, bool is_pickle);
void mg_nest_end(struct mg_nest *n);
void mg_nest_dict(struct mg_nest *n); /* behind a key, or as the value itself */
void mg_nest_list(struct mg_nest *n);
void mg_nest_close_dict(struct mg_nest *n);
void mg_nest_close_list(struct mg_nest *n);
void mg_nest_key(struct mg_nest *n, const char *key);
void mg_nest_key_u64(struct mg_nest *n, uint64_t key); /* a number; as text in JSON */
void mg_nest_u64(struct mg_nest *n, uint64_t v);
void mg_nest_text(struct mg_nest *n, const char *v);
static inline void mg_nest_pair(struct mg_nest *n, const char *key, uint64_t v)
{
    mg_nest_key(n, key);
    mg_nest_u64(n, v);
}

#endif
