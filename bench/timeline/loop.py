"""A loop of PyTorch as bench/timeline/loops runs it: usage: loop.py busy|small COUNT none|kineto|cupti
busy: the device is the limit, kernels of 20 us and more; small: the host is, kernels of 2 us. Prints the least of five times a
launch, in nanoseconds, from the first launch to the end of the last, and the same without the wait at the end."""
import ctypes, os, sys, time

import torch

mode, count, with_ = sys.argv[1], int(sys.argv[2]), sys.argv[3]
side = 1024 if mode == 'busy' else 8
a = torch.ones(side, side, device='cuda') / side
b = torch.empty_like(a)


def step():
    if mode == 'busy':
        torch.mm(a, a, out=b)
    else:
        torch.add(a, a, out=b)


def once():
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(count):
        step()
    launched = time.perf_counter_ns()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / count, (launched - begin) / count


def times():
    for _ in range(3):
        once()
    found = [once() for _ in range(5)]
    return min(f[0] for f in found), min(f[1] for f in found)


if with_ == 'kineto':
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]):
        t = times()
elif with_ == 'cupti':
    loaded = [l.split()[-1] for l in open('/proc/self/maps') if 'libcupti.so' in l]
    client = ctypes.CDLL(os.environ['CUPTI_CLIENT'])
    if client.client_start(loaded[0].encode() if loaded else None):
        sys.exit('no CUPTI, or another one uses it')
    t = times()
    client.client_stop()
    n = ctypes.c_ulonglong.in_dll(client, 'client_kernels').value
    assert n >= 8 * count, 'CUPTI saw %d kernels' % n
else:
    t = times()
assert float(b[0, 0]) > 0
print('%.1f %.1f' % t)
