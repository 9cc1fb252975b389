/* Devices: one or several alike (--devices), which answer what a recorded real device answered (--as). Built in:
 * h200. A file of recorded properties (as a session on a GPU writes it: number, name, result, value,
 * tab-separated) replaces the built-in values. */
#include "driver/priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"

static void load_h200(void)
{
#define DEVICE_NAME(text)    mg_drv.name = text;
#define DEVICE_MEMORY(bytes) mg_drv.memory_bytes = bytes;
#define DEVICE_VERSION(version)
#define VALUE(attr, value) mg_drv.attrs[CUDEV_##attr] = value, mg_drv.attr_known[CUDEV_##attr] = true;
#include "driver/h200.def"
#undef DEVICE_NAME
#undef DEVICE_MEMORY
#undef DEVICE_VERSION
#undef VALUE
}

static cu_result load_file(const char *path)
{
    char *text = NULL;
    size_t bytes;
    if (mg_io_read(path, &text, &bytes, NULL)) {
        mg_say("cannot read the device properties %s", path);
        return CUE_NO_DEVICE;
    }
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *tab = strchr(line, '\t');
        if (!tab) continue;
        *tab++ = 0;
        if (!strcmp(line, "name"))
            mg_drv.name = strdup(tab);
        else if (!strcmp(line, "total_memory"))
            mg_drv.memory_bytes = strtoull(tab, NULL, 10);
        else {
            unsigned long id = strtoul(line, NULL, 10);
            char *rc = strchr(tab, '\t'), *value = rc ? strchr(rc + 1, '\t') : NULL;
            if (!id || id >= CUDEV_COUNT || !value) continue;
            mg_drv.attr_known[id] = !strtol(rc + 1, NULL, 10);
            mg_drv.attrs[id] = (int)strtol(value + 1, NULL, 10);
        }
    }
    free(text);
    return CUE_SUCCESS;
}

cu_result mg_properties_load(const char *as, const char *path)
{
    load_h200();
    if (path) return load_file(path);
    if (as && strcmp(as, "h200")) {
        mg_say("no recorded device named %s (there is: h200)", as);
        return CUE_NO_DEVICE;
    }
    return CUE_SUCCESS;
}

cu_result mg_device_check(cu_device dev)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    return dev >= 0 && dev < mg_drv.n_devices ? CUE_SUCCESS : CUE_INVALID_DEVICE;
}

cu_result mg_location_check(const struct cu_location *l)
{
    return l->type == CULOC_DEVICE ? mg_device_check(l->id) : CUE_SUCCESS;
}

/* ---- which devices --------------------------------------------------------------------------------- */

static void get_uuid(uint32_t place, unsigned char uuid[16])
{
    memcpy(uuid, "margay-software", 16); /* no real device's */
    uuid[15] = (unsigned char)place;
}

/* As far as it is written down, the UUID of one device alone; -1: of none, or of several. */
static int find_uuid(const char *text, size_t n, uint32_t given)
{
    int found = -1;
    for (uint32_t i = 0; i < given; i++) {
        unsigned char u[16];
        char whole[48];
        int at = 0;
        get_uuid(i, u);
        for (int k = 0; k < 16; k++)
            at += snprintf(whole + at, sizeof whole - (size_t)at, "%s%02x", strchr("\4\6\10\12", k) && k ? "-" : "",
                           u[k]);
        if (n < 4 || n - 4 > (size_t)at || strncasecmp(text + 4, whole, n - 4)) continue;
        if (found >= 0) return -1;
        found = (int)i;
    }
    return found;
}

/* CUDA_VISIBLE_DEVICES as NVIDIA's driver reads it: numbers, or UUIDs all along; the list ends at the first that is no
 * device's, and one named twice is an error. Without --devices it means the machine's GPUs. */
cu_result mg_devices_choose(uint32_t given)
{
    const char *visible = given ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    uint32_t all = MG_MAX(given, 1u), seen = 0;
    mg_drv.n_devices = 0;
    for (uint32_t i = 0; i < all && !visible; i++) mg_drv.places[mg_drv.n_devices++] = (uint8_t)i;
    if (!visible) return CUE_SUCCESS;
    bool uuids = !strncmp(visible, "GPU-", 4);
    for (const char *at = visible; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *end;
        size_t n = strcspn(at, ",");
        long place = uuids ? (strncmp(at, "GPU-", 4) ? -1 : find_uuid(at, n, all)) : strtol(at, &end, 10);
        if (place < 0 || place >= (long)all || (!uuids && end == at)) break;
        if (seen >> place & 1) {
            mg_say("CUDA_VISIBLE_DEVICES=%.200s names device %ld twice", visible, place);
            return CUE_INVALID_DEVICE;
        }
        seen |= 1u << place;
        mg_drv.places[mg_drv.n_devices++] = (uint8_t)place;
    }
    if (!mg_drv.n_devices)
        mg_say("CUDA_VISIBLE_DEVICES=%.200s leaves none of %u device%s", visible, all, all > 1 ? "s" : "");
    return mg_drv.n_devices ? CUE_SUCCESS : CUE_NO_DEVICE;
}

/* ---- what a device answers ---------------------------------------------------------------------------- */

/* Devices differ in where they sit. */
static int attribute(int attr, cu_device dev)
{
    bool own = attr == CUDEV_PCI_BUS_ID || attr == CUDEV_MULTI_GPU_BOARD_GROUP_ID;
    return mg_drv.attrs[attr] + (own ? mg_drv.places[dev] : 0);
}
#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)
#define CHECK_DEVICE(dev)                                                                                              \
    do {                                                                                                               \
        cu_result r_ = mg_device_check(dev);                                                                           \
        if (r_) return r_;                                                                                             \
    } while (0)

static cu_result cuDeviceGet(cu_device *dev, int ordinal)
{
    CHECK_DEVICE(ordinal);
    CHECK(dev);
    *dev = ordinal;
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetCount(int *count)
{
    CHECK_DEVICE(0);
    CHECK(count);
    *count = mg_drv.n_devices;
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetName(char *name, int len, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(name && len > 0);
    snprintf(name, (size_t)len, "%s", mg_drv.name);
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetUuid(cu_uuid *uuid, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(uuid);
    get_uuid(mg_drv.places[dev], (unsigned char *)uuid->bytes);
    return CUE_SUCCESS;
}
static cu_result cuDeviceGetUuid_v2(cu_uuid *uuid, cu_device dev)
{
    return cuDeviceGetUuid(uuid, dev);
}

static cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(bytes);
    *bytes = mg_drv.memory_bytes;
    return CUE_SUCCESS;
}

static cu_result cuDeviceTotalMem(unsigned *bytes, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(bytes);
    *bytes = (unsigned)MG_MIN(mg_drv.memory_bytes, UINT32_MAX);
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetAttribute(int *value, int attr, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(value && attr > 0 && attr < CUDEV_COUNT && mg_drv.attr_known[attr]);
    *value = attribute(attr, dev);
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetProperties(struct cu_device_props *p, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(p);
    const int *a = mg_drv.attrs;
    *p = (struct cu_device_props){
        .max_threads_per_block = a[CUDEV_MAX_THREADS_PER_BLOCK],
        .max_block = {a[CUDEV_MAX_BLOCK_DIM_X], a[CUDEV_MAX_BLOCK_DIM_Y], a[CUDEV_MAX_BLOCK_DIM_Z]},
        .max_grid = {a[CUDEV_MAX_GRID_DIM_X], a[CUDEV_MAX_GRID_DIM_Y], a[CUDEV_MAX_GRID_DIM_Z]},
        .shared_per_block = a[CUDEV_MAX_SHARED_MEMORY_PER_BLOCK],
        .constant_bytes = a[CUDEV_TOTAL_CONSTANT_MEMORY],
        .warp_size = a[CUDEV_WARP_SIZE],
        .max_pitch = a[CUDEV_MAX_PITCH],
        .registers_per_block = a[CUDEV_MAX_REGISTERS_PER_BLOCK],
        .clock_khz = a[CUDEV_CLOCK_RATE],
        .texture_align = a[CUDEV_TEXTURE_ALIGNMENT],
    };
    return CUE_SUCCESS;
}

static cu_result cuDeviceComputeCapability(int *major, int *minor, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(major && minor);
    *major = mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MAJOR];
    *minor = mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MINOR];
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetPCIBusId(char *id, int len, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(id && len > 0);
    snprintf(id, (size_t)len, "%04x:%02x:%02x.0", attribute(CUDEV_PCI_DOMAIN_ID, dev), attribute(CUDEV_PCI_BUS_ID, dev),
             attribute(CUDEV_PCI_DEVICE_ID, dev));
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetByPCIBusId(cu_device *dev, const char *id)
{
    CHECK_DEVICE(0);
    CHECK(dev && id);
    unsigned domain = 0, bus, device, function = 0;
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
        domain = 0;
        CHECK(sscanf(id, "%x:%x.%x", &bus, &device, &function) >= 2);
    }
    for (cu_device d = 0; d < mg_drv.n_devices; d++) {
        if ((int)domain != attribute(CUDEV_PCI_DOMAIN_ID, d) || (int)bus != attribute(CUDEV_PCI_BUS_ID, d) ||
            (int)device != attribute(CUDEV_PCI_DEVICE_ID, d))
            continue;
        *dev = d;
        return CUE_SUCCESS;
    }
    return CUE_INVALID_DEVICE;
}

static cu_result cuDeviceGetTexture1DLinearMaxWidth(size_t *width, int format, unsigned channels, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(width && channels && channels <= 4);
    (void)format;
    *width = (size_t)mg_drv.attrs[CUDEV_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
    return CUE_SUCCESS;
}

static cu_result cuDeviceCanAccessPeer(int *can, cu_device dev, cu_device peer)
{
    CHECK_DEVICE(dev);
    CHECK_DEVICE(peer);
    CHECK(can);
    *can = dev != peer; /* a device is not its own peer */
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetP2PAttribute(int *value, int attr, cu_device src, cu_device dst)
{
    CHECK_DEVICE(src);
    CHECK_DEVICE(dst);
    CHECK(value);
    if (src == dst) return CUE_INVALID_DEVICE;
    CHECK(attr >= CUP2P_PERFORMANCE_RANK && attr <= CUP2P_PARTIAL_ATOMIC);
    *value = attr != CUP2P_PERFORMANCE_RANK && attr != CUP2P_PARTIAL_ATOMIC; /* all are equally near, for all atomics */
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetExecAffinitySupport(int *value, int type, cu_device dev)
{
    CHECK_DEVICE(dev);
    CHECK(value && !type);
    *value = 0;
    return CUE_SUCCESS;
}

static cu_result cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    (void)target, (void)scope;
    return mg_enter(NULL);
}

const struct mg_entry mg_entries_device[] = {
    MG_ENTRY(cuDeviceGet),
    MG_ENTRY(cuDeviceGetCount),
    MG_ENTRY(cuDeviceGetName),
    MG_ENTRY(cuDeviceGetUuid),
    MG_ENTRY(cuDeviceGetUuid_v2),
    MG_ENTRY(cuDeviceTotalMem),
    MG_ENTRY(cuDeviceTotalMem_v2),
    MG_ENTRY(cuDeviceGetAttribute),
    MG_ENTRY(cuDeviceGetProperties),
    MG_ENTRY(cuDeviceComputeCapability),
    MG_ENTRY(cuDeviceGetPCIBusId),
    MG_ENTRY(cuDeviceGetByPCIBusId),
    MG_ENTRY(cuDeviceGetTexture1DLinearMaxWidth),
    MG_ENTRY(cuDeviceCanAccessPeer),
    MG_ENTRY(cuDeviceGetP2PAttribute),
    MG_ENTRY(cuDeviceGetExecAffinitySupport),
    MG_ENTRY(cuFlushGPUDirectRDMAWrites),
    {0},
};
