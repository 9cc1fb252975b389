#include "study/comm_whole.h"

enum mg_err mg_comm_whole_feed(struct mg_comm_whole *w, struct mg_trace_reader *r, uint32_t file,
                               const struct mg_comm_opts *o, struct mg_diag *d)
{
    w->comm = mg_comm_new(o);
    return mg_comm_feed(r, file, w->comm, &w->source, d);
}

void mg_comm_whole_finish(struct mg_comm_whole *w, const struct mg_comm_link *link)
{
    w->study = (struct mg_comm_study){.r = mg_comm_finish(w->comm),
                                      .m = &w->metrics,
                                      .source = &w->source,
                                      .advice = &w->advice,
                                      .scales = &w->scales,
                                      .link = *link};
    mg_comm_metrics_init(&w->metrics, w->study.r);
    mg_comm_advice_init(&w->advice, w->study.r);
    mg_comm_scale(w->study.r, &w->metrics, link, &w->scales);
}

void mg_comm_whole_release(struct mg_comm_whole *w)
{
    if (w->study.r) {
        mg_vec_release(&w->scales);
        mg_comm_advice_release(&w->advice);
        mg_comm_metrics_release(&w->metrics);
    }
    mg_comm_free(w->comm);
}
