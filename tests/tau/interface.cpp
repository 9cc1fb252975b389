// The overloads and vectors of table 1 in C++, over more streams than one call's room.
#include <margay/tau_cuda.h>

#include <cstdio>

#include "fake_cuda.h"

int main(int argc, char **argv)
{
    tau_cuda_init(argc, argv);
    int failed = 0;
    cudaStream_t streams[20];
    for (cudaStream_t &s : streams) {
        s = fake_stream();
        for (int i = 0; i < 3; i++) {
            void *h = tau_cuda_stream_begin("block", s);
            fake_work(s, 5);
            tau_cuda_stream_end(h);
        }
    }
    failed += tau_cuda_update(streams[0]) != 3;
    failed += tau_cuda_finalize(streams[1]) != 3;
    std::vector<Event> events = tau_cuda_update();
    failed += events.size() != 20;
    for (size_t i = 0; i < events.size(); i++) failed += events[i].completed != (i < 2 ? 0 : 3) || events[i].stream != (int)i + 1 || events[i].device;
    for (Event &e : tau_cuda_finalize()) failed += e.completed != 0;
    tau_cuda_exit();
    if (failed) std::printf("FAIL %d\n", failed);
    return failed != 0;
}
