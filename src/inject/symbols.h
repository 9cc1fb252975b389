/* Functions of libraries that libmargay stands in for (preload.c, nvrtc.c, nvjitlink.c). */
#ifndef MG_INJECT_SYMBOLS_H
#define MG_INJECT_SYMBOLS_H

/* dlsym of the C library, as called by this library. */
void *mg_real_symbol(void *handle, const char *name);
/* The C library's own function, past everybody who stands in for it; NULL: not found. */
void *mg_libc_symbol(const char *name);
/* What a program gets that asked for nvrtcGetCUBIN and would have got `real`; NULL: just that. */
void *mg_nvrtc_symbol(void *real);
/* The same for the functions of nvJitLink that nvjitlink.c stands in for. */
void *mg_nvjitlink_symbol(const char *name, void *real);

#endif
