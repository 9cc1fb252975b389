/* Channels (channel.c) and frames (frames.c) of a launch: what its tools write as records. */
#ifndef MG_INJECT_CHANNELS_H
#define MG_INJECT_CHANNELS_H

#include "inject/run.h"

/* Channels of a launch's tools (channel.c). Else: why there are none. */
enum mg_reason mg_channels_take(struct mg_run *r);
/* A node's: what comes from now on is of this replay. put writes a number into its block; NULL: the backend's own.
 * False: it could not be written everywhere. */
typedef bool (*mg_channel_put)(void *user, uint64_t offset, uint32_t number);
bool mg_channels_replay(const struct mg_run *r, uint64_t replay, mg_channel_put put, void *user);
void mg_channels_words(const struct mg_run *r, uint32_t region, uint64_t *words);
void mg_channels_give(struct mg_run *r);
void mg_channels_context_ends(void *ctx, int device); /* behind the backend's: its launches have ended */
void mg_channels_end(void);                           /* what is there goes to the tools */
/* Launches with frames, while they run (frames.c). look: every now and then; on NVIDIA's the thread that drains does.
 */
void mg_frames_add(struct mg_run *r);
void mg_frames_remove(struct mg_run *r); /* before its block is given back */
void mg_frames_look(void);

#endif
