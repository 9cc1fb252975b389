/* An image as one run of bytes: what a load call is given may be a wrapper that points to several fatbins, and tells no
 * size. Packed when a program loads it, unpacked when its capture is replayed. */
#ifndef MG_IMAGE_PACKED_H
#define MG_IMAGE_PACKED_H

#include "base/buf.h"

/* Appends what the load call would read of the image. False: it is of no known kind. */
bool mg_image_pack(const void *image, struct mg_buf *out);

/* The same of machine code (an entry of an image) and the PTX that it was made of: a fatbin of both, from which a
 * device takes what it can run. */
struct mg_image_entry;
void mg_image_pack_pair(const struct mg_image_entry *cubin, const struct mg_image_entry *ptx, struct mg_buf *out);

struct mg_image_unpacked {
    const void *image; /* for a load call; owner: this struct, and the bytes it was made of */
    void *room;
    const void **parts;
    size_t *sizes;
    uint32_t n; /* PTX text, fatbins or a cubin */
};
/* `bytes` of `p` stay as long as the result. False: they are no packed image. */
bool mg_image_unpack(const void *p, size_t bytes, struct mg_image_unpacked *out);
void mg_image_unpacked_release(struct mg_image_unpacked *u);

#endif
