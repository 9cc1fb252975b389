"""NCCL's all-reduce by PyTorch, a process a GPU: prints a hash of what each rank has.   allreduce.py"""
import hashlib, os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp


def rank(r, n):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29511', NCCL_NVLS_ENABLE='0')
    torch.cuda.set_device(r)
    dist.init_process_group('nccl', rank=r, world_size=n)
    lines = []
    for size, kind in (1000, torch.float32), (1 << 20, torch.float32), (3 << 20, torch.int32):
        t = ((torch.arange(size, device='cuda') * 2654435761 + r) % 1000).to(kind)
        t = t * 3 + 1
        dist.all_reduce(t)
        lines.append(hashlib.sha256(t.cpu().numpy().tobytes()).hexdigest()[:16])
    torch.cuda.synchronize()
    print(f'rank {r} of {n}:', *lines, flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    n = torch.cuda.device_count()
    mp.spawn(rank, args=(n,), nprocs=n)
