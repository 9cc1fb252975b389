/* A device for tests of the driver: modules are parsed and have addresses, and a launch does in C
 * what the kernel's name says. So the driver is tested without an emulator, also under tsan. */
#ifndef MG_TESTS_UNIT_FAKE_DEVICE_H
#define MG_TESTS_UNIT_FAKE_DEVICE_H

#include "device/device.h"

extern const struct mg_device_ops fake_ops;
extern const char fake_ptx[];
extern int fake_launches; /* so far */

#endif
