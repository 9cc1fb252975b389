/* The analysis of communication as JSON, text, CSV, SVG, and in the nesting of the thesis' appendix B. */
#ifndef MG_STUDY_COMM_PRINT_H
#define MG_STUDY_COMM_PRINT_H

#include "base/json.h"
#include "study/comm_feed.h"
#include "study/comm_scale.h"

enum { MG_COMM_MOST_TRANSFERS = 100000 /* in the JSON; more go to a file */ };
struct mg_comm_study { /* what is printed; owner: the caller */
    const struct mg_comm_result *r;
    const struct mg_comm_metrics *m;
    const struct mg_comm_source *source;
    const struct mg_comm_advice *advice; /* NULL: not asked for */
    const mg_comm_scales *scales;
    struct mg_comm_link link;
    const char *transfers_file; /* that has all transfers; NULL: they are in the JSON, or there are too many */
};
const char *mg_comm_entity_name(enum mg_comm_entity e);
/* The value of "communication". */
void mg_comm_print_json(const struct mg_comm_study *s, struct mg_json *j);
void mg_comm_print_text(const struct mg_comm_study *s, struct mg_buf *out);
/* Transfers: one a line. */
void mg_comm_print_csv(const struct mg_comm_study *s, struct mg_buf *out);
/* The ix-th figure as <svg> elements, none where there is nothing to draw; its name. NULL: there are no more. */
const char *mg_comm_figure(const struct mg_comm_study *s, uint32_t ix, struct mg_buf *out);
void mg_comm_print_html(const struct mg_comm_study *s, struct mg_buf *out);
/* The rules that the numbers follow, one line each, NULL behind the last. */
const char *const *mg_comm_rules(void);

/* Members "advice" and "scaling", and their text. */
void mg_comm_print_advice_json(const struct mg_comm_study *s, struct mg_json *j);
void mg_comm_print_advice_text(const struct mg_comm_study *s, struct mg_buf *out);

/* For those who print. */
void mg_comm_sum_sms(const struct mg_comm_step *s, const struct mg_comm_volume *by_cta, struct mg_comm_volume *by_sm,
                     uint32_t n_sms);
uint32_t mg_comm_n_sms(const struct mg_comm_step *s);
struct mg_comm_volume mg_comm_sum(const struct mg_comm_volume *v, uint32_t n);

#endif
