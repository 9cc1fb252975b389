/* A fault for proofs: makes a kernel write one wrong byte, so that whatever claims to find a twin that
 * changes what the application computes can be shown to find it. */
#ifndef MG_INSERT_PLANT_H
#define MG_INSERT_PLANT_H

#include "ir/ir.h"

#define MG_PLANT_BYTE 0xa5

/* Behind the first store of the function to global or generic memory, the thread whose indices are 0
 * writes MG_PLANT_BYTE to where that store began. False: there is no such store. */
bool mg_plant(struct mg_module *m, mg_id func);

#endif
