"""A small transformer with random weights on the GPU, its modules and operations marked with NVTX:
  small.py eager|compile|train|generate [STEPS]
Prints what it computed, rounded, and on stderr seconds a step without the first two."""
import sys
import time

import torch

MODES = ('eager', 'compile', 'train', 'generate')
mode = sys.argv[1] if len(sys.argv) > 1 else ''
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 5
if mode not in MODES:
    sys.exit(__doc__)
torch.manual_seed(3)
device = torch.device('cuda')


def mark_modules(model):
    """A range for each module's forward, by its qualified name."""
    for name, module in model.named_modules():
        if not name:
            continue
        module.register_forward_pre_hook(lambda m, a, name=name: begin_range(name))
        module.register_forward_hook(lambda m, a, out: end_range())


def begin_range(name):
    torch.cuda.nvtx.range_push(name)  # what a hook returns takes the place of tensors: nothing


def end_range():
    torch.cuda.nvtx.range_pop()


def small_model():
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    config = GPT2Config(n_layer=4, n_head=8, n_embd=512, vocab_size=4096, n_positions=256, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                        bos_token_id=0, eos_token_id=4095)
    return GPT2LMHeadModel(config).to(device)


class Plain(torch.nn.Module):
    """Where transformers is not installed."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0, batch_first=True)
        self.embed = torch.nn.Embedding(4096, 512)
        self.layers = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = torch.nn.Linear(512, 4096)

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids)))


model = small_model()
plain = model is None
if plain:
    model = Plain().to(device)
logits = (lambda m, ids: m(ids)) if plain else (lambda m, ids: m(ids).logits)
ids = torch.randint(0, 4096, (4, 128), generator=torch.Generator().manual_seed(5)).to(device)
if mode != 'compile':
    mark_modules(model)
runner = torch.compile(model) if mode == 'compile' else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4) if mode == 'train' else None


def step():
    if mode == 'train':
        torch.cuda.nvtx.range_push('forward')
        out = logits(runner, ids)
        loss = torch.nn.functional.cross_entropy(out[:, :-1].reshape(-1, 4096), ids[:, 1:].reshape(-1))
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_push('backward')
        loss.backward()
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_push('optimizer')
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.nvtx.range_pop()
        return float(loss)
    with torch.no_grad():
        if mode == 'generate' and not plain:
            return int(model.generate(ids[:, :16], max_new_tokens=16, do_sample=False, pad_token_id=0).sum())
        if mode == 'generate':
            text = ids[:, :16]
            for _ in range(16):
                text = torch.cat([text, logits(runner, text)[:, -1:].argmax(-1)], 1)
            return int(text.sum())
        return float(logits(runner, ids).float().abs().mean())


model.train(mode == 'train')
times, value = [], None
with torch.autograd.profiler.emit_nvtx(enabled=mode != 'compile'):
    for _ in range(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        value = step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
print(mode, 'plain' if plain else 'gpt2', '%.4g' % value)
rest = times[2:] or times
print('%.4f s a step' % (sum(rest) / len(rest)), file=sys.stderr)
