/* CUPTI's activities and callbacks, as far as it is called: the library is found at run time. Records of all versions
 * from CUDA 11 to 13 agree in what is named here; later versions only added fields behind it. */
#ifndef MG_ABI_CUPTI_H
#define MG_ABI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_kind {
    CUPTI_KIND_MEMCPY = 1,
    CUPTI_KIND_MEMSET = 2,
    CUPTI_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_KIND_PEER = 22 /* copies between devices */
};
enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_ERROR_SUBSCRIBED = 39, CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_OLDEST = 14, CUPTI_NEWEST_OF_12 = 99, CUPTI_OF_13 = 130000, CUPTI_AFTER_13 = 140000 };

struct cupti_callback { /* what a callback in the driver's domain is handed */
    uint32_t leaves;    /* 0: the call begins */
    const char *function;
    const void *arguments;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *kept;
    uint32_t correlation; /* the number that records of its work have */
};
/* Of work: the number of its call stands at a place of its own in each kind. */
enum { CUPTI_WORK_START = 16, CUPTI_WORK_END = 24 };
enum { CUPTI_KERNEL_CORRELATION = 92, CUPTI_MEMORY_CORRELATION = 44, CUPTI_PEER_CORRELATION = 60 };

/* CUPTI(name, arguments): all return 0, or an error */
#define CUPTI_FUNCTIONS(CUPTI)                                                                                         \
    CUPTI(cuptiGetVersion, (uint32_t * version))                                                                       \
    CUPTI(cuptiSubscribe, (void **subscriber, void (*fn)(void *, int, uint32_t, const void *), void *user))            \
    CUPTI(cuptiGetCallbackName, (int domain, uint32_t id, const char **name))                                          \
    CUPTI(cuptiEnableCallback, (uint32_t on, void *subscriber, int domain, uint32_t id))                               \
    CUPTI(cuptiActivityRegisterTimestampCallback, (uint64_t(*now)(void)))                                              \
    CUPTI(cuptiActivityRegisterCallbacks, (void (*request)(uint8_t **, size_t *, size_t *),                            \
                                           void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t)))             \
    CUPTI(cuptiActivityEnable, (int kind))                                                                             \
    CUPTI(cuptiActivityDisable, (int kind))                                                                            \
    CUPTI(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t bytes, void **record))                                 \
    CUPTI(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *n))                              \
    CUPTI(cuptiActivityFlushAll, (uint32_t flags))

#endif
