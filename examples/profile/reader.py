#!/usr/bin/env python3
"""A profile by ctypes, without a binding: python3 reader.py DIR [LIBRARY]."""
import ctypes as c, sys

lib = c.CDLL(sys.argv[2] if len(sys.argv) > 2 else 'libmargay-profile.so')
u64, u32 = c.c_uint64, c.c_uint32


class Kernel(c.Structure):
    _fields_ = [(n, c.c_char_p) for n in ('name', 'demangled', 'module')] + [(n, u64) for n in (
        'launches', 'incomplete', 'thread_instructions', 'warp_instructions', 'time_ns', 'timed_launches')] + [('blocks', u32), ('changed', u64)]


class Launch(c.Structure):
    _fields_ = [('id', u64), ('replay', u64), ('kernel', c.c_char_p)] + [(n, u64) for n in (
        'thread_instructions', 'warp_instructions', 'start_ns', 'time_ns', 'told_ns', 'stream', 'context')] + [
        (n, u32) for n in ('device', 'pid', 'instrumented', 'complete')]


Tell = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Launch))
lib.mg_profile_open.restype = c.c_void_p
lib.mg_profile_kernel.restype = c.POINTER(Kernel)
lib.mg_profile_kernels.restype = c.c_size_t
error = c.create_string_buffer(300)
p = c.c_void_p(lib.mg_profile_open(sys.argv[1].encode(), error, c.c_size_t(len(error))))
if not p:
    sys.exit(error.value.decode())
for i in range(lib.mg_profile_kernels(p)):
    k = lib.mg_profile_kernel(p, c.c_size_t(i)).contents
    print(k.demangled.decode(), k.launches, k.thread_instructions)
told = []
tell = Tell(lambda user, launch: told.append(launch.contents.thread_instructions))
lib.mg_profile_subscribe(p, tell, None)
while lib.mg_profile_wait(p, 1000) >= 0:
    pass
print(len(told), 'launches,', sum(told), 'thread instructions')
lib.mg_profile_close(p)
