/* CUPTI's activity interface, as far as it is called: the library is found at run time. Records of all versions from
 * CUDA 11 to 13 agree in what is named here; later versions only added fields behind it. */
#ifndef MG_ABI_CUPTI_H
#define MG_ABI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_kind {
    CUPTI_KIND_MEMCPY = 1,
    CUPTI_KIND_MEMSET = 2,
    CUPTI_KIND_DRIVER = 4,
    CUPTI_KIND_RUNTIME = 5,
    CUPTI_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_KIND_PEER = 22 /* copies between devices */
};
enum { CUPTI_THREAD_ID_OF_SYSTEM = 1, CUPTI_ERROR_SUBSCRIBED = 39, CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_OLDEST = 14, CUPTI_NEWEST_OF_12 = 99, CUPTI_OF_13 = 130000, CUPTI_AFTER_13 = 140000 };

struct cupti_call { /* kinds DRIVER and RUNTIME */
    uint32_t kind, function;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};
/* Of work: the number of its call stands at a place of its own in each kind. */
enum { CUPTI_WORK_START = 16, CUPTI_WORK_END = 24 };
enum { CUPTI_KERNEL_CORRELATION = 92, CUPTI_MEMORY_CORRELATION = 44, CUPTI_PEER_CORRELATION = 60 };

/* CUPTI(name, arguments): all return 0, or an error */
#define CUPTI_FUNCTIONS(CUPTI)                                                                                         \
    CUPTI(cuptiGetVersion, (uint32_t * version))                                                                       \
    CUPTI(cuptiSubscribe, (void **subscriber, void (*fn)(void *, int, uint32_t, const void *), void *user))            \
    CUPTI(cuptiSetThreadIdType, (int type))                                                                            \
    CUPTI(cuptiActivityRegisterTimestampCallback, (uint64_t(*now)(void)))                                              \
    CUPTI(cuptiActivityRegisterCallbacks, (void (*request)(uint8_t **, size_t *, size_t *),                            \
                                           void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t)))             \
    CUPTI(cuptiActivityEnable, (int kind))                                                                             \
    CUPTI(cuptiActivityDisable, (int kind))                                                                            \
    CUPTI(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t bytes, void **record))                                 \
    CUPTI(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *n))                              \
    CUPTI(cuptiActivityFlushAll, (uint32_t flags))

#endif
