/* Channels (channel.c) and frames (frames.c) of a launch: what its tools write as records. */
#ifndef MG_INJECT_CHANNELS_H
#define MG_INJECT_CHANNELS_H

#include "inject/run.h"

/* Channels of a launch's tools (channel.c). Else: why there are none. */
enum mg_reason mg_channels_take(struct mg_run *r);
void mg_channels_replay(const struct mg_run *r); /* a node's: what comes from now on is of its next replay */
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
