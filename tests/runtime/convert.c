/* What the runtime makes of rectangles, volumes, arrays, textures and nodes, over the fake driver:
 * copies land where the reference says, descriptions come back as they were given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cudart.h"

cudaError_t cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
cudaError_t cudaMemcpy2DToArray(cudaArray_t, size_t, size_t, const void *, size_t, size_t, size_t, int);
cudaError_t cudaMemcpy2DFromArray(void *, size_t, cudaArray_const_t, size_t, size_t, size_t, size_t, int);
cudaError_t cudaMemcpyToArray(cudaArray_t, size_t, size_t, const void *, size_t, int);
cudaError_t cudaMemcpyFromArray(void *, cudaArray_const_t, size_t, size_t, size_t, int);
cudaError_t cudaMemcpyArrayToArray(cudaArray_t, size_t, size_t, cudaArray_const_t, size_t, size_t, size_t, int);
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *);
cudaError_t cudaMemset3D(struct cudaPitchedPtr, int, struct cudaExtent);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *, struct cudaExtent);
cudaError_t cudaMallocPitch(void **, size_t *, size_t, size_t);
cudaError_t cudaMallocArray(cudaArray_t *, const struct cudaChannelFormatDesc *, size_t, size_t, unsigned);
cudaError_t cudaMalloc3DArray(cudaArray_t *, const struct cudaChannelFormatDesc *, struct cudaExtent, unsigned);
cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *, struct cudaExtent *, unsigned *, cudaArray_t);
cudaError_t cudaFreeArray(cudaArray_t);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int, int, int, int, int);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *, const struct cudaResourceDesc *,
                                    const struct cudaTextureDesc *, const struct cudaResourceViewDesc *);
cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *, cudaTextureObject_t);
cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *, cudaTextureObject_t);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t,
                                   const struct cudaMemcpy3DParms *);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, void *,
                                     const void *, size_t, int);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t, struct cudaMemcpy3DParms *);

static void must(int ok, const char *what, int line)
{
    if (ok) return;
    fprintf(stderr, "convert.c:%d: not so: %s\n", line, what);
    exit(1);
}
#define MUST(condition) must((condition), #condition, __LINE__)
#define OK(call)        must(!(call), #call, __LINE__)

/* A float of its place, so that a wrong place shows. */
static float place(size_t x, size_t y, size_t z)
{
    return (float)(x + 100 * y + 10000 * z);
}

static void rectangles(void)
{
    float host[6][10], back[4][5];
    char *device;
    size_t pitch;
    for (size_t y = 0; y < 6; y++) {
        for (size_t x = 0; x < 10; x++) host[y][x] = place(x, y, 0);
    }
    OK(cudaMallocPitch((void **)&device, &pitch, sizeof host[0], 6));
    MUST(pitch % 512 == 0 && pitch >= sizeof host[0]);
    OK(cudaMemcpy2D(device, pitch, host, sizeof host[0], sizeof host[0], 6, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(back, sizeof back[0], device + 2 * pitch + 3 * 4, pitch, sizeof back[0], 4,
                    cudaMemcpyDeviceToHost));
    for (size_t y = 0; y < 4; y++) {
        for (size_t x = 0; x < 5; x++) MUST(back[y][x] == place(x + 3, y + 2, 0));
    }
    MUST(cudaMemcpy2D(back, 3, device, pitch, 4, 2, cudaMemcpyDeviceToHost) == cudaErrorInvalidPitchValue);
    OK(cudaMemcpy2D(back, 0, device, pitch, 4, 1, cudaMemcpyDeviceToHost)); /* one row: no pitch is looked at */
    MUST(cudaMemcpy2D(back, 8, device, pitch, 4, 1, 9) == cudaErrorInvalidMemcpyDirection);
}

static void arrays(void)
{
    struct cudaChannelFormatDesc two = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat), got,
                                 bad = cudaCreateChannelDesc(32, 16, 0, 0, cudaChannelFormatKindFloat);
    struct cudaExtent extent;
    cudaArray_t a, b;
    float run[40], back[40];
    unsigned flags;
    OK(cudaMallocArray(&a, &two, 8, 5, 2)); /* rows of 8 float2 = 64 bytes */
    OK(cudaMallocArray(&b, &two, 8, 5, 0));
    MUST(cudaMallocArray(&b, &bad, 8, 5, 0) == cudaErrorInvalidChannelDescriptor);
    OK(cudaArrayGetInfo(&got, &extent, &flags, a));
    MUST(!memcmp(&got, &two, sizeof got) && extent.width == 8 && extent.height == 5 && extent.depth == 0 && flags == 2);
    for (int i = 0; i < 40; i++) run[i] = (float)i;
    OK(cudaMemcpyToArray(a, 16, 1, run, sizeof run, cudaMemcpyHostToDevice)); /* 48 + 64 + 48 bytes from row 1 on */
    OK(cudaMemcpy2DFromArray(back, 64, a, 0, 2, 64, 1, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) MUST(back[i] == (float)(12 + i));
    OK(cudaMemcpyFromArray(back, a, 16, 1, sizeof back, cudaMemcpyDeviceToHost));
    MUST(!memcmp(run, back, sizeof run));
    OK(cudaMemcpyArrayToArray(b, 8, 0, a, 16, 1, 100, cudaMemcpyDeviceToDevice)); /* rows are cut at different places */
    OK(cudaMemcpyFromArray(back, b, 8, 0, 100, cudaMemcpyDeviceToHost));
    MUST(!memcmp(run, back, 100));
    OK(cudaMemcpy2DToArray(b, 4, 3, run, 20, 20, 2, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DFromArray(back, 20, b, 4, 3, 20, 2, cudaMemcpyDeviceToHost));
    MUST(!memcmp(run, back, 40));
    OK(cudaFreeArray(a));
    OK(cudaFreeArray(b));
}

static void volumes(void)
{
    static float host[4][5][6], back[4][5][6];
    struct cudaChannelFormatDesc one = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    struct cudaPitchedPtr device;
    struct cudaMemcpy3DParms p = {0}, q;
    cudaArray_t a;
    for (size_t z = 0; z < 4; z++) {
        for (size_t y = 0; y < 5; y++) {
            for (size_t x = 0; x < 6; x++) host[z][y][x] = place(x, y, z);
        }
    }
    OK(cudaMalloc3D(&device, (struct cudaExtent){sizeof host[0][0], 5, 4}));
    MUST(device.xsize == 24 && device.ysize == 5 && device.pitch >= 24);
    p.srcPtr = (struct cudaPitchedPtr){host, 24, 24, 5};
    p.dstPtr = device;
    p.extent = (struct cudaExtent){24, 5, 4};
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
    /* Part of it into an array: its x position and the width count elements, the pointer's x bytes. */
    OK(cudaMalloc3DArray(&a, &one, (struct cudaExtent){6, 5, 4}, 0));
    p = (struct cudaMemcpy3DParms){.srcPtr = device,
                                   .srcPos = {4, 1, 1},
                                   .dstArray = a,
                                   .dstPos = {2, 2, 2},
                                   .extent = {3, 2, 2},
                                   .kind = cudaMemcpyDeviceToDevice};
    OK(cudaMemcpy3D(&p));
    p = (struct cudaMemcpy3DParms){
        .srcArray = a, .dstPtr = {back, 24, 24, 5}, .extent = {6, 5, 4}, .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&p));
    for (size_t z = 0; z < 4; z++) {
        for (size_t y = 0; y < 5; y++) {
            for (size_t x = 0; x < 6; x++) {
                int in = x >= 2 && x < 5 && y >= 2 && y < 4 && z >= 2;
                MUST(back[z][y][x] == (in ? place(x - 2 + 1, y - 1, z - 1) : 0));
            }
        }
    }
    OK(cudaMemset3D((struct cudaPitchedPtr){device.ptr, device.pitch, 24, 5}, 1, (struct cudaExtent){8, 2, 2}));
    MUST(((char *)device.ptr)[device.pitch * 6 + 7] == 1 && ((char *)device.ptr)[device.pitch * 2] != 1);
    p.srcArray = NULL;
    MUST(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
    /* Nodes give back what they were given. */
    p = (struct cudaMemcpy3DParms){.srcPtr = device,
                                   .srcPos = {4, 1, 1},
                                   .dstArray = a,
                                   .dstPos = {2, 2, 2},
                                   .extent = {3, 2, 2},
                                   .kind = cudaMemcpyDeviceToDevice};
    OK(cudaGraphAddMemcpyNode(NULL, NULL, NULL, 0, &p));
    OK(cudaGraphMemcpyNodeGetParams(NULL, &q));
    MUST(q.dstArray == a && q.srcPtr.ptr == device.ptr && q.srcPos.x == 4 && q.dstPos.x == 2 && q.extent.width == 3 &&
         q.extent.depth == 2);
    OK(cudaGraphAddMemcpyNode1D(NULL, NULL, NULL, 0, back, device.ptr, 44, cudaMemcpyDeviceToHost));
    OK(cudaGraphMemcpyNodeGetParams(NULL, &q));
    MUST(q.kind == cudaMemcpyDeviceToHost && q.dstPtr.ptr == back && q.extent.width == 44 && q.extent.height == 1);
    OK(cudaFreeArray(a));
}

static void textures(void)
{
    struct cudaResourceDesc r = {.resType = cudaResourceTypePitch2D}, r2;
    struct cudaTextureDesc t = {.addressMode = {1, 3, 2},
                                .filterMode = 1,
                                .readMode = 1,
                                .sRGB = 1,
                                .borderColor = {1, 2, 3, 4},
                                .normalizedCoords = 1,
                                .maxAnisotropy = 4,
                                .mipmapFilterMode = 1,
                                .mipmapLevelBias = .5f,
                                .minMipmapLevelClamp = 1,
                                .maxMipmapLevelClamp = 9},
                           t2;
    cudaTextureObject_t object = 0;
    r.res.pitch2D.devPtr = &object;
    r.res.pitch2D.desc = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
    r.res.pitch2D.width = 33;
    r.res.pitch2D.height = 7;
    r.res.pitch2D.pitchInBytes = 512;
    OK(cudaCreateTextureObject(&object, &r, &t, NULL));
    MUST(object == 77);
    OK(cudaGetTextureObjectResourceDesc(&r2, object));
    OK(cudaGetTextureObjectTextureDesc(&t2, object));
    MUST(!memcmp(&t, &t2, sizeof t));
    MUST(r2.resType == r.resType && !memcmp(&r2.res.pitch2D, &r.res.pitch2D, sizeof r.res.pitch2D));
}

int main(void)
{
    rectangles();
    arrays();
    volumes();
    textures();
    puts("convert ok");
    return 0;
}
