#include "driver/priv.h"
void mg_module_refs_free(struct CUmod_st *m) { (void)m; }
