/* How long a software device is waited for. */
#include "inject/verify.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)

MG_TEST(settle_waits_for_work_on_a_busy_machine)
{
    MG_CHECK(!mg_settle_is_over(60 * SECOND, 59 * SECOND, 0));            /* the limit itself */
    MG_CHECK(mg_settle_is_over(60 * SECOND, 60 * SECOND, 0));             /* nothing works: it waits for the host */
    MG_CHECK(!mg_settle_is_over(60 * SECOND, 600 * SECOND, 20 * SECOND)); /* one of thirty processes */
    MG_CHECK(mg_settle_is_over(60 * SECOND, 60 * SECOND, 120 * SECOND));  /* two workers that spin */
    MG_CHECK(mg_settle_is_over(60 * SECOND, 7000 * SECOND, 60 * SECOND));
}
