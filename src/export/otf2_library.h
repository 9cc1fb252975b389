/* The functions of OTF2's library that we call, found at run time. Declared as of version 3; checked against its
 * headers by tests/cli/export_spans.sh where they are installed. */
#ifndef MG_EXPORT_OTF2_LIBRARY_H
#define MG_EXPORT_OTF2_LIBRARY_H

#include "base/diag.h"

struct OTF2_Archive_struct;
struct OTF2_EvtWriter_struct;
struct OTF2_DefWriter_struct;
struct OTF2_GlobalDefWriter_struct;
struct OTF2_AttributeList_struct;
struct OTF2_MemoryCallbacks; /* two functions: a chunk for a buffer (NULL: the library flushes it), all of a buffer's
                                back */
struct OTF2_FlushCallbacks;  /* two functions: before a flush (1: write it), after it (the time, or NULL) */

#define OTF2_NONE UINT32_MAX /* no string, node or group */
enum {
    OTF2_MODE_WRITE = 0,
    OTF2_SUBSTRATE = 1,
    OTF2_COMPRESSION = 1,
    OTF2_CHUNK_BYTES = 256 << 10,
    OTF2_DEFINITION_BYTES = 4 << 20
};
enum {
    OTF2_GROUP_PROCESS = 1,
    OTF2_GROUP_ACCELERATOR = 2,
    OTF2_LOCATION_THREAD = 1,
    OTF2_LOCATION_STREAM = 2,
    OTF2_UINT64 = 4,
    OTF2_MEMBERS_LOCATIONS = 4, /* kinds of groups: all that take part, the members of one communicator */
    OTF2_MEMBERS_OF_COMMUNICATOR = 5,
};
enum { /* of collective operations */
       OTF2_BARRIER = 0,
       OTF2_BCAST = 1,
       OTF2_GATHER = 2,
       OTF2_SCATTER = 4,
       OTF2_ALLGATHER = 6,
       OTF2_ALLTOALL = 8,
       OTF2_ALLREDUCE = 11,
       OTF2_REDUCE = 12,
       OTF2_SCAN = 14
};
enum { OTF2_PARADIGM_OF_USER = 1, OTF2_PARADIGM_OF_MPI = 4, OTF2_PARADIGM_OF_CUDA = 5 };
enum {
    OTF2_ROLE_FUNCTION = 1,
    OTF2_ROLE_WRAPPER = 2,
    OTF2_ROLE_CODE = 4,
    OTF2_ROLE_TRANSFER = 30,
    OTF2_ROLE_ARTIFICIAL = 31
};

/* OTF2(result, name, arguments): members of struct mg_otf2 without the prefix */
#define OTF2_FUNCTIONS(OTF2)                                                                                           \
    OTF2(struct OTF2_Archive_struct *, Archive_Open,                                                                   \
         (const char *path, const char *name, uint8_t mode, uint64_t event_bytes, uint64_t definition_bytes,           \
          uint8_t substrate, uint8_t compression))                                                                     \
    OTF2(int, Archive_Close, (struct OTF2_Archive_struct *))                                                           \
    OTF2(int, Archive_SetCreator, (struct OTF2_Archive_struct *, const char *))                                        \
    OTF2(int, Archive_SetFlushCallbacks, (struct OTF2_Archive_struct *, const struct OTF2_FlushCallbacks *, void *))   \
    OTF2(int, Archive_SetMemoryCallbacks, (struct OTF2_Archive_struct *, const struct OTF2_MemoryCallbacks *, void *)) \
    OTF2(int, Archive_SetSerialCollectiveCallbacks, (struct OTF2_Archive_struct *))                                    \
    OTF2(int, Archive_OpenEvtFiles, (struct OTF2_Archive_struct *))                                                    \
    OTF2(int, Archive_CloseEvtFiles, (struct OTF2_Archive_struct *))                                                   \
    OTF2(int, Archive_OpenDefFiles, (struct OTF2_Archive_struct *))                                                    \
    OTF2(int, Archive_CloseDefFiles, (struct OTF2_Archive_struct *))                                                   \
    OTF2(struct OTF2_EvtWriter_struct *, Archive_GetEvtWriter, (struct OTF2_Archive_struct *, uint64_t location))      \
    OTF2(int, Archive_CloseEvtWriter, (struct OTF2_Archive_struct *, struct OTF2_EvtWriter_struct *))                  \
    OTF2(struct OTF2_DefWriter_struct *, Archive_GetDefWriter, (struct OTF2_Archive_struct *, uint64_t location))      \
    OTF2(int, Archive_CloseDefWriter, (struct OTF2_Archive_struct *, struct OTF2_DefWriter_struct *))                  \
    OTF2(struct OTF2_GlobalDefWriter_struct *, Archive_GetGlobalDefWriter, (struct OTF2_Archive_struct *))             \
    OTF2(int, EvtWriter_Enter,                                                                                         \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t region))         \
    OTF2(int, EvtWriter_Leave,                                                                                         \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t region))         \
    OTF2(int, EvtWriter_MpiSend,                                                                                       \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t receiver,        \
          uint32_t communicator, uint32_t tag, uint64_t bytes))                                                        \
    OTF2(int, EvtWriter_MpiIsend,                                                                                      \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t receiver,        \
          uint32_t communicator, uint32_t tag, uint64_t bytes, uint64_t request))                                      \
    OTF2(int, EvtWriter_MpiIsendComplete,                                                                              \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint64_t request))        \
    OTF2(int, EvtWriter_MpiIrecvRequest,                                                                               \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint64_t request))        \
    OTF2(int, EvtWriter_MpiRecv,                                                                                       \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t sender,          \
          uint32_t communicator, uint32_t tag, uint64_t bytes))                                                        \
    OTF2(int, EvtWriter_MpiIrecv,                                                                                      \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint32_t sender,          \
          uint32_t communicator, uint32_t tag, uint64_t bytes, uint64_t request))                                      \
    OTF2(int, EvtWriter_MpiCollectiveBegin,                                                                            \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time))                          \
    OTF2(int, EvtWriter_MpiCollectiveEnd,                                                                              \
         (struct OTF2_EvtWriter_struct *, struct OTF2_AttributeList_struct *, uint64_t time, uint8_t operation,        \
          uint32_t communicator, uint32_t root, uint64_t sent, uint64_t received))                                     \
    OTF2(int, GlobalDefWriter_WriteGroup,                                                                              \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint8_t type, uint8_t paradigm,          \
          uint32_t flags, uint32_t n, const uint64_t *members))                                                        \
    OTF2(int, GlobalDefWriter_WriteComm,                                                                               \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint32_t group, uint32_t parent,         \
          uint32_t flags))                                                                                             \
    OTF2(struct OTF2_AttributeList_struct *, AttributeList_New, (void))                                                \
    OTF2(int, AttributeList_Delete, (struct OTF2_AttributeList_struct *))                                              \
    OTF2(int, AttributeList_AddUint64, (struct OTF2_AttributeList_struct *, uint32_t attribute, uint64_t value))       \
    OTF2(int, GlobalDefWriter_WriteClockProperties,                                                                    \
         (struct OTF2_GlobalDefWriter_struct *, uint64_t resolution, uint64_t offset, uint64_t length,                 \
          uint64_t realtime_ns))                                                                                       \
    OTF2(int, GlobalDefWriter_WriteString, (struct OTF2_GlobalDefWriter_struct *, uint32_t self, const char *text))    \
    OTF2(int, GlobalDefWriter_WriteAttribute,                                                                          \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint32_t description, uint8_t type))     \
    OTF2(int, GlobalDefWriter_WriteSystemTreeNode,                                                                     \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint32_t class_name, uint32_t parent))   \
    OTF2(int, GlobalDefWriter_WriteLocationGroup,                                                                      \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint8_t type, uint32_t node,             \
          uint32_t creator))                                                                                           \
    OTF2(int, GlobalDefWriter_WriteLocation,                                                                           \
         (struct OTF2_GlobalDefWriter_struct *, uint64_t self, uint32_t name, uint8_t type, uint64_t events,           \
          uint32_t group))                                                                                             \
    OTF2(int, GlobalDefWriter_WriteRegion,                                                                             \
         (struct OTF2_GlobalDefWriter_struct *, uint32_t self, uint32_t name, uint32_t canonical,                      \
          uint32_t description, uint8_t role, uint8_t paradigm, uint32_t flags, uint32_t file, uint32_t first_line,    \
          uint32_t last_line))                                                                                         \
    OTF2(const char *, Error_GetDescription, (int code))                                                               \
    OTF2(void *, Error_RegisterCallback, (void *callback, void *ctx))

struct mg_otf2 {
    void *library;
#define OTF2(result, name, arguments) result(*name) arguments;
    OTF2_FUNCTIONS(OTF2)
#undef OTF2
};
enum mg_err mg_otf2_open(struct mg_otf2 *o, struct mg_diag *d) MG_MUST_CHECK;
void mg_otf2_close(struct mg_otf2 *o);

#endif
