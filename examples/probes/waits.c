/* How long threads wait at barriers, as an event from before each until after it, and a record for the host
 * whenever the first thread of a CTA is past one. */
#include <margay/probe.h>

MG_EVENT(wait);

MG_PROBE(comes, "before bar")
{
    mg_event_begin(wait);
}

MG_PROBE(goes, "after bar")
{
    mg_event_end(wait);
    if (mg_tid() == 0) mg_emit3(mg_line(), mg_cta(), mg_lanes());
}
