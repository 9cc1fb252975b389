#!/usr/bin/env python3
"""forms.py | make_ptx.py DIR: one kernel per form, assembled for sm_90; forms that ptxas refuses are
dropped and named on stderr. Writes DIR/<n>.cubin and DIR/manifest for record.c: per kernel
`cubin kernel result-types operand-types form...`. Types as in PTX; `cin` is a carry bit."""
import os, re, subprocess, sys

COUNT = dict(neg=1, abs=1, cnot=1, popc=1, clz=1, bfind=1, brev=1, rcp=1, sqrt=1, rsqrt=1, sin=1, cos=1, ex2=1, lg2=1, tanh=1,
             testp=1, cvt=1, mad=3, madc=3, mad24=3, sad=3, fma=3, bfe=3, bfi=4, fns=3, prmt=3, lop3=3, shf=3, dp4a=3, dp2a=3,
             selp=3, slct=3, vmad=3)
COUNT["not"] = 1
TYPE = re.compile(r"^([usbf](8|16|32|64)|b128|b?f16(x2)?|[us]16x2|[us][248]|pred)$")
BITS = lambda t: 1 if t in ("pred", "cin") else 32 if t.endswith("x2") else max(8, int(re.search(r"\d+", t)[0]))
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}

def operands(words):
    """destination types, source types"""
    op, types = words[0], [w for w in words[1:] if TYPE.match(w)]
    t = types[0]
    n = COUNT.get(op, 2)
    dst, src = [t], [t] * n
    second = any(w in ("add", "min", "max") for w in words[1:])
    if op in ("mul", "mad") and "wide" in words:
        dst, src = [WIDE[t]], [t, t, WIDE[t]][:n]
    elif op in ("shl", "shr"): src[1] = "u32"
    elif op == "selp": src[2] = "pred"
    elif op == "slct": src[2] = types[1]
    elif op == "setp":
        dst, src = ["pred"] * (1 if t in ("f16", "bf16") else 2), [types[-1]] * 2 + (["pred"] if set(words) & {"and", "or", "xor"} else [])
    elif op == "set":
        src = [types[1]] * 2 + (["pred"] if set(words) & {"and", "or", "xor"} else [])
    elif op == "testp": dst = ["pred"]
    elif op in ("bfe", "bfi"): src[-2:] = ["u32", "u32"]
    elif op in ("popc", "clz", "bfind"): dst = ["u32"]
    elif op == "fns": src = ["b32", "u32", "s32"]
    elif op == "szext": src[1] = "u32"
    elif op in ("dp4a", "dp2a"): dst, src = ["u32"], [types[0], types[1], "u32"]
    elif op == "cvt":
        src = ["s32", "s32"] + (["b32"] if len(types) == 3 else []) if "pack" in words else [types[1]] * (2 if t.endswith("x2") else 1)
        if "pack" in words: dst = ["b32"]
    elif re.match(r"v(add|sub|absdiff|min|max|avrg)[24]$", op): src = [types[1], types[2], t]
    elif re.match(r"vset[24]$", op): dst, src = ["u32"], [types[0], types[1], "u32"]
    elif op == "vset": dst, src = ["u32"], [types[0], types[1]] + (["u32"] if second else [])
    elif op == "vmad": src = [types[1], types[2], t]
    elif op in ("vshl", "vshr"): src = [types[1], "u32"] + ([t] if second else [])
    elif re.match(r"v(add|sub|absdiff|min|max)$", op): src = [types[1], types[2]] + ([t] if second else [])
    elif op == "lop3" and set(words) & {"and", "or", "xor"}: dst, src = ["b32", "pred"], ["b32"] * 3 + ["pred"]
    elif "cc" in words or op in ("addc", "subc", "madc"):
        src.append("cin")
    return dst, src

def reg(t): return "pred" if t == "pred" else f"b{max(16, BITS(t))}" if t != "cin" else "b32"

def kernel(name, line):
    parts = line.split()
    words = parts[0].split(".")
    dst, src = operands(words)
    sel = parts[1:] if words[0].startswith("v") else []
    shift = 0
    if sel and sel[0] != "-" and len(src) == 2: src = src + [dst[0]] # selecting a destination part takes c
    k = [f".visible .entry {name}(.param .u64 pin, .param .u64 pout)", "{",
         ".reg .b64 %in, %out, %t; .reg .b32 %i, %n, %x, %y; .reg .pred %q;"]
    k += [f".reg .{reg(t)} %s{i};" for i, t in enumerate(src)] + [f".reg .{reg(t)} %d{i};" for i, t in enumerate(dst)]
    k += ["mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %x, %tid.x; mad.lo.u32 %i, %i, %n, %x;",
          "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mul.wide.u32 %t, %i, 32; add.u64 %in, %in, %t; mul.wide.u32 %t, %i, 16; add.u64 %out, %out, %t;"]
    for i, t in enumerate(src):
        if t == "pred": k.append(f"ld.global.b32 %x, [%in+{8*i}]; and.b32 %x, %x, 1; setp.ne.u32 %s{i}, %x, 0;")
        elif t == "cin": k.append(f"ld.global.b32 %s{i}, [%in+24]; and.b32 %s{i}, %s{i}, 1;")
        else: k.append(f"ld.global.{reg(t)} %s{i}, [%in+{8*i}];")
    names = [f"%s{i}" for i, t in enumerate(src) if t != "cin"]
    d = "%d0"
    if src and src[-1] == "cin":
        c = f"%s{len(src)-1}"
        k.append(f"sub.cc.u32 %y, 0, {c};" if words[0].startswith("sub") else f"add.cc.u32 %y, {c}, -1;")
    if len(dst) == 2: d = "%d0|%d1"
    for i, s in enumerate(sel):
        if s == "-": continue
        if i == 0: d += "." + s
        elif s == "-n": names[i-1] = "-" + names[i-1]
        elif s[0] == "-": names[i-1] = "-" + names[i-1] + "." + s[1:]
        else: names[i-1] += "." + s
    if words[0] == "lop3": names.insert(3, parts[1])
    k.append("\x01" + parts[0] + f" {d}, " + ", ".join(names) + ";")
    if src and src[-1] == "cin":
        k.append(("subc" if words[0].startswith("sub") else "addc") + ".u32 %y, 0, 0; and.b32 %y, %y, 1; st.global.b32 [%out+8], %y;")
        if "cc" in words: dst = dst + ["pred"]
    for i, t in enumerate(dst):
        if t == "pred" and not (i == 1 and src and src[-1] == "cin"): k.append(f"selp.u32 %x, 1, 0, %d{i}; st.global.b32 [%out+{8*i}], %x;")
        elif t != "pred": k.append(f"st.global.{reg(t)} [%out+{8*i}], %d{i};")
    k += ["ret;", "}"]
    return k, dst, src

def main():
    where = sys.argv[1]
    os.makedirs(where, exist_ok=True)
    lines = list(dict.fromkeys(l.strip() for l in sys.stdin if l.strip()))
    manifest = open(f"{where}/manifest", "w")
    for part in range(0, len(lines), 150):
        todo = lines[part:part + 150]
        while todo:
            text, owner, facts = [".version 9.0", ".target sm_90", ".address_size 64"], {}, []
            for n, l in enumerate(todo):
                k, dst, src = kernel(f"k{n}", l)
                for x in k:
                    text.append(x.replace("\x01", ""))
                    owner[len(text)] = n
                facts.append((f"k{n}", ",".join(dst), ",".join(src), l))
            open(f"{where}/t.ptx", "w").write("\n".join(text) + "\n")
            r = subprocess.run(["ptxas", "-O1", "-arch=sm_90", f"{where}/t.ptx", "-o", f"{where}/{part}.cubin"], capture_output=True, text=True)
            bad = {owner[int(m)] for m in re.findall(r"line (\d+); error", r.stderr) if int(m) in owner}
            if r.returncode == 0: break
            if not bad: sys.exit(r.stderr)
            for n in sorted(bad): print("refused by ptxas:", todo[n], file=sys.stderr)
            todo = [l for n, l in enumerate(todo) if n not in bad]
        for f in facts: print(f"{part}.cubin", *f, file=manifest)
main()
