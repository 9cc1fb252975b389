/* CRC-32C (Castagnoli): checksum of what lies on disk. It finds every change of up to 32 bits in a row. */
#ifndef MG_BASE_CRC_H
#define MG_BASE_CRC_H

#include "base/compiler.h"

/* crc: of the bytes before, 0 for the first. */
uint32_t mg_crc32c(uint32_t crc, const void *p, size_t bytes);

#endif
