/* What every driver call is (calls.def): its class, what the host waits for in it, and its arguments. */
#ifndef MG_ABI_CALLS_H
#define MG_ABI_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum mg_call_class { /* ORDER CLASSES */
                     MG_CLASS_kernel,
                     MG_CLASS_copy,
                     MG_CLASS_memset,
                     MG_CLASS_memory,
                     MG_CLASS_synchronisation,
                     MG_CLASS_event,
                     MG_CLASS_stream,
                     MG_CLASS_graph,
                     MG_CLASS_module,
                     MG_CLASS_other,
                     MG_CLASS_COUNT
};
enum mg_call_waits { /* ORDER WAITS: what for */
                     MG_WAITS_nothing,
                     MG_WAITS_stream,
                     MG_WAITS_event,
                     MG_WAITS_context,
                     MG_WAITS_copy,
                     MG_WAITS_pageable,
                     MG_WAITS_COUNT
};
struct mg_cu_call {
    const char *base;
    enum mg_call_class class_;
    enum mg_call_waits waits;
    const char *opencl; /* the call of GT-Pin's figure 3a that counts as this synchronisation; "": none */
};
enum mg_call_does { MG_DOES_nothing, MG_DOES_copy, MG_DOES_memset, MG_DOES_prefetch, MG_DOES_graph };
enum mg_call_moves { MG_MOVES_none, MG_MOVES_HtoD, MG_MOVES_DtoH, MG_MOVES_DtoD };
struct mg_call_work { /* what a call that is no launch has a device do */
    uint8_t does, moves;
    int8_t size, times; /* arguments */
    uint8_t unit;
};
const struct mg_cu_call *mg_call_of_entry(uint32_t entry); /* index into mg_cu_entries */
const struct mg_cu_call *mg_call_find(const char *base);   /* NULL: no driver call */
const struct mg_call_work *mg_call_work(uint32_t entry);   /* NULL: nothing */
const char *mg_call_arguments(uint32_t entry);             /* letters of calls.def */
enum mg_call_class mg_runtime_class(const char *name);     /* of a function of the CUDA runtime, by its name */
const char *mg_call_class_name(enum mg_call_class c);
const char *mg_call_waits_name(enum mg_call_waits w);
int mg_call_class_find(const char *name, size_t bytes); /* -1: none */

#endif
