#!/usr/bin/env python3
"""verdicts.py FILE SEED: verdicts.cu four times, FOLDER/verdicts.cu: `before` and `after` with names and sizes that the seed draws and lines that
stand elsewhere in either; `moved`, which is before with other places of lines; `renamed`, which has other names, too."""
import os, random, re, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutate

SIZES = {'ROWS': [128 * r for r in (128, 150, 190)], 'TERMS': [20, 24, 31], 'SIDE': [384, 512, 576], 'CHUNKS': [270, 300, 410], 'GROUPS': [96, 120, 132], 'ITEMS': [9, 12, 14],
         'RECORDS': [256 * r for r in (200, 250, 333)], 'PAIRS': [256 * p for p in (140, 200, 260)], 'DEPTH': [30, 40, 55], 'PARTS': [264, 280, 400], 'ORDER': [160, 192, 224]}


def main(path, seed):
    text, draw = open(path).read(), random.Random(f'verdicts {seed}')
    for name, choices in SIZES.items():
        size = draw.choice(choices)
        text, n = re.subn(rf'\b{name} = [^;,]*', f'{name} = {size}', text)
        assert n == 1, name
        print(name, size)
    for folder in ('before', 'after', 'moved', 'renamed'):
        os.mkdir(folder)
        named = mutate.rename(text, random.Random(f'{seed} {folder == "renamed"}'))
        with open(f'{folder}/verdicts.cu', 'w') as f: f.write(mutate.shift(named, random.Random(f'{seed} {folder}')))


main(sys.argv[1], sys.argv[2])
