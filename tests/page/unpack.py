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


def replace(path, to, name, value):
    """The same page with another value of one part, as an LZ4 block of literals alone."""
    page, text = open(path, encoding='utf-8').read(), json.dumps(value).encode()
    n, block = len(text), bytearray()
    block.append(min(n, 15) << 4)
    if n >= 15: block += b'\xff' * ((n - 15) // 255) + bytes([(n - 15) % 255])
    block += text
    part = f'<script type="application/octet-stream" id="data-{name}" data-bytes="{n}">{base64.b64encode(bytes(block)).decode()}</script>'
    open(to, 'w', encoding='utf-8').write(re.sub(rf'<script type="application/octet-stream" id="data-{name}".*?</script>', lambda m: part, page, count=1, flags=re.S))
