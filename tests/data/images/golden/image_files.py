"""Writers of image files that Pillow reads but does not write.

    gif(numbers, width, height, palette, transparent=2)   # bytes of a file
    tiff(Tiff(width, height, bits=[16] * 3, photometric=2), data)
    bmp(width, height, 24, rows, palette=b"", compression=0)
    pnm(picture, 3, 255, data), pnm_text(picture, samples=1, largest=99)
    webp_at(still, canvas=(40, 30), offset=(2, 4))        # a frame on a canvas

Arrays are bytes, row by row.
"""

import struct


def _padded_palette(palette):
    """Returns the palette with 2, 4, 8, .. colours, and the field of its size."""
    field = 0
    while 3 * 2 << field < len(palette):
        field += 1
    return palette.ljust(3 * 2 << field, b"\0"), field


def _lzw(numbers):
    """Codes of nine bits; a clear code often enough that they stay so wide."""
    clear, end = 256, 257
    bits = count = 0
    for i, number in enumerate(numbers):
        for code in ([clear, number] if i % 100 == 0 else [number]):
            bits |= code << count
            count += 9
    bits |= end << count
    packed = bits.to_bytes((count + 9 + 7) // 8, "little")
    blocks = [packed[i:i + 255] for i in range(0, len(packed), 255)]
    return b"\x08" + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def gif(numbers, width, height, palette=None, local=None, transparent=None,
        canvas=None, offset=(0, 0), rest=b";"):
    head = b"GIF89a" + struct.pack("<HH", *(canvas or (width, height)))
    if palette is None:
        head += b"\0\0\0"
    else:
        palette, field = _padded_palette(palette)
        head += bytes([0x80 | field, 0, 0]) + palette
    if transparent is not None:
        head += b"!\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
    head += b"!\xfe\x05hello\0"  # a comment
    head += b"," + struct.pack("<HHHH", *offset, width, height)
    if local is None:
        head += b"\0"
    else:
        local, field = _padded_palette(local)
        head += bytes([0x80 | field]) + local
    return head + _lzw(numbers) + rest


class Tiff:
    """Fields of a TIFF file; those that are None are left out."""

    def __init__(self, width, height, bits=(8,), photometric=1, extra=None,
                 planar=None, palette=None, tile=None, rows=None, order="<",
                 orientation=None, inks=None, subsampling=None):
        self.order = order
        self.tile = tile
        self.fields = {
            256: ("I", [width]), 257: ("I", [height]), 258: ("H", list(bits)),
            259: ("H", [1]), 262: ("H", [photometric]),
            274: ("H", orientation and [orientation]),
            277: ("H", [len(bits)]), 284: ("H", planar and [planar]),
            278: ("I", None if tile else [rows or height]),
            320: ("H", palette), 322: ("I", tile and [tile[0]]),
            323: ("I", tile and [tile[1]]), 332: ("H", inks and [inks]),
            338: ("H", extra), 530: ("H", subsampling)}


def tiff(layout, blocks):
    """`blocks`: the bytes of each strip or tile."""
    at, sizes = (324, 325) if layout.tile else (273, 279)
    fields = {**layout.fields, sizes: ("I", [len(b) for b in blocks]),
              at: ("I", [0] * len(blocks))}
    fields = sorted((tag, kind, values) for tag, (kind, values) in fields.items()
                    if values)
    behind = 8 + 2 + 12 * len(fields) + 4

    def directory(offset):
        entries, values_behind = b"", b""
        for tag, kind, values in fields:
            if tag == at:
                values = [offset + sum(map(len, blocks[:i]))
                          for i in range(len(blocks))]
            packed = struct.pack(layout.order + kind * len(values), *values)
            entries += struct.pack(layout.order + "HHI", tag,
                                   {"H": 3, "I": 4}[kind], len(values))
            if len(packed) <= 4:
                entries += packed.ljust(4, b"\0")
            else:
                entries += struct.pack(layout.order + "I",
                                       behind + len(values_behind))
                values_behind += packed
        return struct.pack(layout.order + "H", len(fields)) + entries + \
            b"\0" * 4 + values_behind

    mark = {"<": b"II", ">": b"MM"}[layout.order]
    head = mark + struct.pack(layout.order + "HI", 42, 8)
    return head + directory(8 + len(directory(0))) + b"".join(blocks)


def tiles(data, width, height, pixel_bytes, tile):
    """Cuts an image into tiles, of which those at its edges have zeros."""
    cut = []
    for top in range(0, height, tile[1]):
        for left in range(0, width, tile[0]):
            rows = []
            for y in range(top, top + tile[1]):
                row = b"" if y >= height else data[
                    (y * width + left) * pixel_bytes:
                    (y * width + min(width, left + tile[0])) * pixel_bytes]
                rows.append(row.ljust(tile[0] * pixel_bytes, b"\0"))
            cut.append(b"".join(rows))
    return cut


def bmp(width, height, bits, data, palette=b"", compression=0, masks=b"",
        core=False, colours=0):
    """`height` < 0: the first row is the upper one. `palette`: four bytes for a
    colour, three if `core`."""
    if core:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits,
                             compression, len(data), 0, 0, colours, 0)
    behind = header + masks + palette
    return b"BM" + struct.pack("<IHHI", 14 + len(behind) + len(data), 0, 0,
                               14 + len(behind)) + behind + data


def padded_rows(rows):
    """Rows from the lowest to the upper one, each padded to four bytes."""
    return b"".join(row + b"\0" * (-len(row) % 4) for row in reversed(rows))


def pnm(picture, samples, largest, data, gap=b"\n"):
    """P5 or P6; `gap` stands between the numbers of the header."""
    head = [b"P%d" % (5 if samples == 1 else 6), b"%d" % picture.width,
            b"%d" % picture.height, b"%d\n" % largest]
    return gap.join(head) + data


def pnm_text(picture, samples, largest, gap=b"\n", between="\n"):
    """P1 if `largest` is 1, else P2 or P3, with random values."""
    kind = 1 if largest == 1 else 2 if samples == 1 else 3
    head = [b"P%d" % kind, b"%d" % picture.width, b"%d" % picture.height]
    if kind != 1:
        head.append(b"%d" % largest)
    values = picture.values(samples, largest + 1)
    return gap.join(head) + b"\n" + between.join(map(str, values)).encode()


def webp_at(still, canvas, offset):
    """An animation of one frame: that of a still image, at a place of a canvas.
    Both numbers of the offset are even."""
    def chunk(name, content):
        return (name + struct.pack("<I", len(content)) + content +
                b"\0" * (len(content) % 2))

    def three(number):
        return struct.pack("<I", number)[:3]

    width, height = _webp_size(still)
    frame = (three(offset[0] // 2) + three(offset[1] // 2) + three(width - 1) +
             three(height - 1) + three(40) + b"\0")
    parts = [chunk(b"VP8X", b"\x12\0\0\0" + three(canvas[0] - 1) +
                   three(canvas[1] - 1)),
             chunk(b"ANIM", b"\xff\x80\x40\xff" + b"\0\0"),
             chunk(b"ANMF", frame + still[12:])]
    return b"RIFF" + struct.pack("<I", 4 + sum(map(len, parts))) + b"WEBP" + \
        b"".join(parts)


def _webp_size(still):
    """The size of a lossless still image."""
    assert still[12:16] == b"VP8L", still[12:16]
    packed = struct.unpack("<I", still[21:25])[0]
    return (packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1
