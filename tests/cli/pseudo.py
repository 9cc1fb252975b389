"""A folder of Accel-Sim's pseudo form, with that of the memory form and the report of the run. usage: pseudo.py NAME [lanes]
lanes: warps may part and meet anywhere, as on a GPU, so that blocks, accesses and the counter of warps need not see the same groups:
each lane for itself."""
import collections, glob, json, sys

name, lanes_alone = sys.argv[1], sys.argv[2:] == ['lanes']
MAP = set('''FADD FMNMX FMUL FSEL FSET FSETP FFMA MUFU HADD2 HFMA2 HMUL2 HSET2 HSETP2 HMNMX2 HMMA DMMA IMMA DADD DFMA DMUL DSETP BMSK BREV
FLO IABS IADD3 IDP IDP4A IMAD IMNMX ISETP LOP3 POPC SHF VABSDIFF VABSDIFF4 F2F F2I I2F I2I MOV PRMT SEL SGXT SHFL PLOP3 LDC LDG LDL LDS
LDSM STG STL STS MATCH QSPC ATOMS ATOMG RED CCTL MEMBAR REDUX TEX TLD4 TXQ SULD SUQUERY SURED SUST BPT BRA BRX CALL EXIT NANOSLEEP RET BAR
NOP PMTRIG S2R VOTE'''.split())
GLOBAL = {'LDG', 'STG', 'ATOMG', 'RED'}


def lines(path):
    """(CTA, warp), pc, mask, destinations, opcode, sources, width, addresses, as the simulator takes an instruction apart."""
    left, at, warp = 0, None, None
    for line in open(path).read().split('#traces format')[1].split('\n')[1:]:
        w = line.split()
        if not w or w[0].startswith('#'): continue
        if w[0] == 'thread': assert not left; at = w[3]; continue
        if w[0] == 'warp': assert not left; warp = int(w[2]); continue
        if w[0] == 'insts': left = int(w[2]); continue
        left -= 1
        assert left >= 0
        mask, n = int(w[1], 16), int(w[2])
        to, op, w = w[3:3 + n], w[3 + n], w[4 + n:]
        n_from = int(w[0])
        source, width, w = w[1:1 + n_from], int(w[1 + n_from]), w[2 + n_from:]
        assert n <= 1 and n_from <= 4 and all(r[0] == 'R' and int(r[1:]) >= 0 for r in to + source) and mask
        on = [i for i in range(32) if mask >> i & 1]
        if not width: addresses = []; assert not w
        elif w[0] == '1': addresses = [int(w[1], 16) + i * int(w[2]) for i in range(len(on))]; assert len(w) == 3
        else: addresses = [int(x, 16) for x in w[1:]]; assert len(addresses) == len(on)
        yield (at, warp), int(line.split()[0], 16), mask, to, op, source, width, addresses
    assert not left


def each(warp, mask, op, width, addresses):
    """The accesses to compare: of the group, or of each lane."""
    if not lanes_alone: return [(warp, mask, op, width, tuple(addresses))]
    return [(warp, lane, op, width, a) for lane, a in zip([i for i in range(32) if mask >> i & 1], addresses)]


report = json.load(open(name + '.json'))
kernels = {k['id']: k['name'] for k in report['kernels']}
files = sorted(glob.glob(name + '.pseudo/kernel-*'), key=lambda f: int(f.split('-')[-1].split('.')[0]))
assert len(files) == len(report['launches'])
threads, warps, counted = collections.Counter(), collections.Counter(), {}
for path, launch in zip(files, report['launches']):
    head = open(path).read().split('#traces')[0]
    assert 'pseudo: PTX instructions' in head and f'-kernel name = {kernels[launch["kernel"]]}\n' in head
    accesses, ends = collections.Counter(), collections.Counter()
    for warp, pc, mask, to, op, source, width, addresses in lines(path):
        assert op.split('.')[0] in MAP, op
        if op.split('.')[0] in GLOBAL: accesses.update(each(warp, mask, op, width, addresses))
        threads[launch['kernel']] += bin(mask).count('1')
        warps[launch['kernel']] += 1
        assert not ends[warp] & mask, 'a lane goes on behind its exit'
        if op == 'EXIT': ends[warp] |= mask
    other = path.replace('.pseudo/', '.memory/')
    want = collections.Counter(x for warp, _, mask, _, op, _, width, a in lines(other) if op != 'EXIT' for x in each(warp, mask, op, width, a))
    assert accesses == want, (path, list((accesses - want).items())[:3], list((want - accesses).items())[:3])
    ctas = launch['grid'][0] * launch['grid'][1] * launch['grid'][2]
    size = launch['block'][0] * launch['block'][1] * launch['block'][2]
    assert len(ends) == ctas * ((size + 31) // 32) and sum(bin(m).count('1') for m in ends.values()) == ctas * size
for k in report['kernels']:
    assert threads[k['id']] == k['thread_instructions'], (k['name'], threads[k['id']], k['thread_instructions'])
    if lanes_alone: assert threads[k['id']] / 32 <= warps[k['id']] <= threads[k['id']]
    else: assert k['warp_instructions'] in (None, warps[k['id']]), (k['name'], warps[k['id']], k['warp_instructions'])
