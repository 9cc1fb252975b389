#!/usr/bin/env python3
"""Prints the instruction forms of the one-instruction tests, one a line: text, then selectors of
video operands or the table of lop3. make_ptx turns them into kernels, record runs those on a GPU."""

def out(*a):
    print(*a)

INTS = "u16 s16 u32 s32 u64 s64".split()
for t in INTS:
    for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max", "mad.lo", "mad.hi", "sad"):
        out(f"{op}.{t}")
for t in ("s16", "s32", "s64"):
    out(f"neg.{t}"), out(f"abs.{t}")
for t in ("b16", "b32", "b64"):
    for op in ("and", "or", "xor", "not", "cnot", "shl", "shr", "selp"):
        out(f"{op}.{t}")
for op in ("and", "or", "xor", "not"):
    out(f"{op}.pred")
for t in INTS:
    out(f"shr.{t}")
for t in ("u16", "s16", "u32", "s32"):
    out(f"mul.wide.{t}"), out(f"mad.wide.{t}")
for t in ("u32", "s32"):
    for op in ("mul24", "mad24"):
        out(f"{op}.lo.{t}"), out(f"{op}.hi.{t}")
for f in "add.sat.s32 sub.sat.s32 mad.hi.sat.s32 mad24.hi.sat.s32".split():
    out(f)
for t in ("u32", "s32", "u64", "s64"):
    for op in ("add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc"):
        out(f"{op}.{t}")
    for p in ("lo", "hi"):
        out(f"mad.{p}.cc.{t}"), out(f"madc.{p}.{t}"), out(f"madc.{p}.cc.{t}")
    out(f"bfe.{t}"), out(f"bfind.{t}"), out(f"bfind.shiftamt.{t}")
for t in ("b32", "b64"):
    for op in ("bfi", "brev", "popc", "clz"):
        out(f"{op}.{t}")
for m in ("clamp", "wrap"):
    out(f"bmsk.{m}.b32"), out(f"szext.{m}.u32"), out(f"szext.{m}.s32")
    out(f"shf.l.{m}.b32"), out(f"shf.r.{m}.b32")
for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
    out(f"prmt.b32{m}")
for lut in (0x00, 0x01, 0x1b, 0x2d, 0x3c, 0x6a, 0x80, 0x96, 0xb8, 0xca, 0xe8, 0xf8, 0xfe, 0xff):
    out(f"lop3.b32 {lut}")
for op in ("and", "or"):
    out(f"lop3.{op}.b32 {0x96}")
for a in ("u32", "s32"):
    for b in ("u32", "s32"):
        out(f"dp4a.{a}.{b}"), out(f"dp2a.lo.{a}.{b}"), out(f"dp2a.hi.{a}.{b}")
for t in ("s16x2", "u16x2"):
    out(f"add.{t}"), out(f"min.{t}"), out(f"max.{t}")
for f in "min.relu.s16x2 max.relu.s16x2 min.relu.s32 max.relu.s32".split():
    out(f)

# comparisons
for t in "b16 b32 b64".split() + INTS:
    for c in ("eq", "ne") if t[0] == "b" else "eq ne lt le gt ge".split() + ("lo ls hi hs".split() if t[0] == "u" else []):
        out(f"setp.{c}.{t}")
FCMP = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split()
for t in ("f32", "ftz.f32", "f64", "f16", "ftz.f16", "bf16", "f16x2", "ftz.f16x2", "bf16x2"):
    for c in FCMP:
        out(f"setp.{c}.{t}")
for c in ("lt.and.s32", "ge.or.u64", "ne.xor.b32", "ltu.and.f32", "gt.or.f64", "eq.xor.f16", "le.and.ftz.f32", "gt.and.f16x2", "le.or.bf16x2"):
    out(f"setp.{c}")
for d in ("u32", "s32", "f32"):
    for s in ("u32", "s64", "f32", "ftz.f32", "f64", "u16", "s16"):
        z = ".ftz" if s.startswith("ftz") else ""
        out(f"set.lt{z}.{d}.{s.split('.')[-1]}"), out(f"set.ge.and{z}.{d}.{s.split('.')[-1]}")
for f in "set.lt.f16.f16 set.neu.bf16.bf16 set.gt.f16x2.f16x2 set.leu.bf16x2.bf16x2 set.lt.u16.f16 set.eq.u32.f16 set.lt.or.f16.f16".split():
    out(f)
for t in "b16 b32 b64 f32 f64".split():
    out(f"slct.{t}.s32"), out(f"slct.{t}.f32"), out(f"slct.ftz.{t}.f32")
    out(f"selp.{t}")

# floats
R = ("rn", "rz", "rm", "rp")
for r in R:
    for v in ("", ".ftz", ".sat", ".ftz.sat"):
        for op in ("add", "sub", "mul", "fma", "mad"):
            out(f"{op}.{r}{v}.f32")
    for v in ("", ".ftz"):
        for op in ("div", "rcp", "sqrt"):
            out(f"{op}.{r}{v}.f32")
    for op in ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"):
        out(f"{op}.{r}.f64")
for f in "add.f32 sub.f32 mul.f32 add.f64 sub.f64 mul.f64".split():
    out(f)
for v in ("", ".ftz"):
    for n in ("", ".NaN"):
        for x in ("", ".xorsign.abs"):
            for op in ("min", "max"):
                out(f"{op}{v}{n}{x}.f32")
                out(f"{op}{v}{n}{x}.f16"), out(f"{op}{v}{n}{x}.f16x2")
                if not v:
                    out(f"{op}{n}{x}.bf16"), out(f"{op}{n}{x}.bf16x2")
    out(f"abs{v}.f32"), out(f"neg{v}.f32")
for f in "min.f64 max.f64 abs.f64 neg.f64 copysign.f32 copysign.f64".split():
    out(f)
for t in ("f32", "f64"):
    for c in "finite infinite number notanumber normal subnormal".split():
        out(f"testp.{c}.{t}")
for t in ("f16", "f16x2"):
    for v in ("", ".ftz", ".sat", ".ftz.sat"):
        for op in ("add", "sub", "mul"):
            out(f"{op}{v}.{t}"), out(f"{op}.rn{v}.{t}")
    for v in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"):
        out(f"fma.rn{v}.{t}")
    for v in ("", ".ftz"):
        out(f"neg{v}.{t}"), out(f"abs{v}.{t}")
for t in ("bf16", "bf16x2"):
    for op in ("add", "sub", "mul"):
        out(f"{op}.{t}"), out(f"{op}.rn.{t}")
    out(f"fma.rn.{t}"), out(f"fma.rn.relu.{t}"), out(f"neg.{t}"), out(f"abs.{t}")

# the approx family
for op in "ex2 lg2 sin cos rcp rsqrt sqrt".split():
    out(f"{op}.approx.f32"), out(f"{op}.approx.ftz.f32")
for f in "div.approx.f32 div.approx.ftz.f32 div.full.f32 div.full.ftz.f32 tanh.approx.f32".split():
    out(f)
for t in "f16 f16x2 bf16 bf16x2".split():
    out(f"tanh.approx.{t}"), out(f"ex2.approx{'.ftz' if t[0] == 'b' else ''}.{t}")
for f in "rcp.approx.ftz.f64 rsqrt.approx.ftz.f64 rsqrt.approx.f64".split():
    out(f)

# conversions
I8 = "u8 s8 u16 s16 u32 s32 u64 s64".split()
for d in I8:
    for s in I8:
        out(f"cvt.{d}.{s}")
        if d != s:
            out(f"cvt.sat.{d}.{s}")
for s in I8:
    for r in R:
        for d in ("f32", "f64", "f16", "bf16"):
            out(f"cvt.{r}.{d}.{s}")
    out(f"cvt.rn.sat.f32.{s}")
for d in I8:
    for r in ("rni", "rzi", "rmi", "rpi"):
        for s in ("f32", "f64", "f16", "bf16"):
            out(f"cvt.{r}.{d}.{s}")
        out(f"cvt.{r}.ftz.{d}.f32"), out(f"cvt.{r}.sat.{d}.f32")
for v in ("", ".ftz", ".sat", ".ftz.sat"):
    for r in R:
        out(f"cvt.{r}{v}.f32.f64")
        for h in ("f16", "bf16"):
            out(f"cvt.{r}{v}.{h}.f32")
    for r in ("rni", "rzi", "rmi", "rpi"):
        out(f"cvt.{r}{v}.f32.f32")
    out(f"cvt{v}.f64.f32"), out(f"cvt{v}.f32.f32"), out(f"cvt{v}.f32.f16"), out(f"cvt{v}.f32.bf16")
for r in ("rni", "rzi", "rmi", "rpi"):
    for t in ("f64", "f16", "bf16"):
        out(f"cvt.{r}.{t}.{t}")
for v in ("", ".sat"):
    out(f"cvt{v}.f64.f64"), out(f"cvt{v}.f64.f16"), out(f"cvt{v}.f64.bf16"), out(f"cvt{v}.f16.f16")
for r in R:
    out(f"cvt.{r}.f16.f64"), out(f"cvt.{r}.bf16.f64"), out(f"cvt.{r}.sat.f16.f32"), out(f"cvt.{r}.f16.bf16"), out(f"cvt.{r}.bf16.f16")
for d in ("f16x2", "bf16x2"):
    for r in ("rn", "rz"):
        out(f"cvt.{r}.{d}.f32"), out(f"cvt.{r}.relu.{d}.f32")
for d in ("f16", "bf16"):
    for r in ("rn", "rz"):
        out(f"cvt.{r}.relu.{d}.f32")
for f in ("u16.s32", "s16.s32", "u8.s32.b32", "s8.s32.b32", "u4.s32.b32", "s4.s32.b32", "u2.s32.b32", "s2.s32.b32"):
    out(f"cvt.pack.sat.{f}")

# video: selectors of d, a, b, c follow
for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
    for d in ("u32", "s32"):
        for a in ("u32", "s32"):
            for b in ("u32", "s32"):
                out(f"{op}.{d}.{a}.{b}"), out(f"{op}.{d}.{a}.{b}.sat")
    out(f"{op}.s32.u32.s32 - b1 h1"), out(f"{op}.s32.s32.s32.sat - b3 b2"), out(f"{op}.s32.s32.u32 - h0 h1")
    for f in ("add", "min", "max"):
        out(f"{op}.u32.s32.u32.{f} - b1 h0"), out(f"{op}.s32.u32.s32.sat.{f}")
    for d in ("b0", "b2", "h0", "h1"):
        out(f"{op}.s32.s32.s32.sat {d} h0 b1"), out(f"{op}.u32.u32.s32 {d} - b3")
for op in ("vshl", "vshr"):
    for d in ("u32", "s32"):
        for a in ("u32", "s32"):
            for m in ("clamp", "wrap"):
                out(f"{op}.{d}.{a}.u32.{m}"), out(f"{op}.{d}.{a}.u32.sat.{m} - b1 b0"), out(f"{op}.{d}.{a}.u32.{m}.add - - h0")
    out(f"{op}.s32.s32.u32.sat.clamp b1 h1 b0")
for d in ("u32", "s32"):
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            for m in ("", ".shr7", ".shr15", ".sat", ".sat.shr7"):
                out(f"vmad.{d}.{a}.{b}{m}"), out(f"vmad.{d}.{a}.{b}{m} - b1 h0")
            if a == b == "u32":
                out(f"vmad.{d}.{a}.{b}.po"), out(f"vmad.{d}.{a}.{b}.po - h1 h0")
out("vmad.s32.s32.s32 - -h1 h0"), out("vmad.s32.s32.s32 - h1 h0 -"), out("vmad.s32.s32.s32.sat - h1 h0 -n")
for c in "eq ne lt le gt ge".split():
    out(f"vset.u32.u32.{c}"), out(f"vset.s32.u32.{c} - b1 h1"), out(f"vset.s32.s32.{c}.add - h0 -"), out(f"vset.u32.s32.{c}.max"), out(f"vset.s32.s32.{c}.min")
    out(f"vset.s32.s32.{c} h1 - -")
for n in ("2", "4"):
    for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
        for d in ("u32", "s32"):
            for a in ("u32", "s32"):
                for b in ("u32", "s32"):
                    out(f"{op}{n}.{d}.{a}.{b}"), out(f"{op}{n}.{d}.{a}.{b}.sat")
                out(f"{op}{n}.{d}.{a}.{a}.add")
    for c in "eq ne lt le gt ge".split():
        for a in ("u32", "s32"):
            for b in ("u32", "s32"):
                out(f"vset{n}.{a}.{b}.{c}")
            out(f"vset{n}.{a}.{a}.{c}.add")
