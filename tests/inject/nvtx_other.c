/* Another tool for NVTX: counts pushes and pops of the core module, and answers with depths of its own. */
#include <stdint.h>
#include <stdio.h>

struct exports {
    size_t size;
    int (*table)(unsigned, void ****, unsigned *);
};
static unsigned pushes, pops;
static int push(const char *s)
{
    return pushes += *s == 'o', 40;
}
static int pop(void)
{
    return pops++, 41;
}
__attribute__((destructor)) static void tell(void)
{
    if (pushes) fprintf(stderr, "other tool: %u pushes, %u pops\n", pushes, pops);
}
int InitializeInjectionNvtx2(const struct exports *(*get)(uint32_t));
int InitializeInjectionNvtx2(const struct exports *(*get)(uint32_t))
{
    void ***places;
    unsigned n;
    if (!get(1)->table(1, &places, &n)) return 0;
    *places[9] = (void *)push;
    *places[11] = (void *)pop;
    return 1;
}
