"""The data of a page of `margay report --html`: part name -> JSON value. An LZ4 reader of its own, written from the format's description."""
import base64, json, re


def lz4_block(packed, size):
    out, at = bytearray(), 0
    while at < len(packed):
        token = packed[at]
        at += 1
        n = token >> 4
        if n == 15:
            while True:
                n += packed[at]
                at += 1
                if packed[at - 1] != 255: break
        out += packed[at:at + n]
        at += n
        if at == len(packed): break
        offset = int.from_bytes(packed[at:at + 2], 'little')
        at += 2
        n = token & 15
        if n == 15:
            while True:
                n += packed[at]
                at += 1
                if packed[at - 1] != 255: break
        assert 0 < offset <= len(out), 'a match from before the beginning'
        for _ in range(n + 4): out.append(out[-offset])
    assert len(out) == size, (len(out), size)
    return bytes(out)


def parts(path):
    page = open(path, encoding='utf-8').read()
    return {name: json.loads(lz4_block(base64.b64decode(text), int(size))) for name, size, text in
            re.findall(r'<script type="application/octet-stream" id="data-([\w-]+)" data-bytes="(\d+)">([A-Za-z0-9+/=]*)</script>', page)}
