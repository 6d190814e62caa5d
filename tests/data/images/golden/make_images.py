"""Prints image files of every kind that is read, with their pixels as Pillow gives
them, for tests/data/images/golden_images_test.cc:

    python3 tests/data/images/golden/make_images.py \\
        >tests/data/images/golden/images.json
    python3 .../make_images.py SEED ROUNDS    # other pictures, of other sizes

Needs Pillow (made with 13.0). Left out are grey of more than 8 bits, which Pillow
clips, and grey with alpha multiplied in, which it does not convert.
"""

import base64
import io
import json
import random
import struct
import sys

from PIL import Image
from image_files import (Tiff, bmp, gif, padded_rows, pnm, pnm_text, tiff,
                         tiles, webp_at)


class Picture:
    """Random smooth or noisy content of a size, and its parts as bytes."""

    def __init__(self, draws, width, height):
        self.width, self.height = width, height
        self._draws = draws

    def values(self, samples, below=256):
        return [self._draws.randrange(below)
                for _ in range(self.width * self.height * samples)]

    def bytes(self, samples, below=256):
        return bytes(self.values(samples, below))

    def pil(self, mode):
        samples = {"1": 1, "L": 1, "P": 1}.get(mode, len(mode))
        if mode == "YCbCr":
            samples = 3
        if mode == "1":
            return self.pil("L").convert("1")
        return Image.frombytes(mode, (self.width, self.height),
                               self.bytes(samples))

    def palette(self, colours):
        return bytes(self._draws.randrange(256) for _ in range(3 * colours))

    def numbered(self, colours):
        image = Image.frombytes("P", (self.width, self.height),
                                self.bytes(1, colours))
        image.putpalette(self.palette(colours))
        return image

    def rows(self, row_bytes):
        return [bytes(self._draws.randrange(256) for _ in range(row_bytes))
                for _ in range(self.height)]


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def webp_cases(p):
    yield "lossy", saved(p.pil("RGB"), "WEBP", quality=80)
    yield "lossy alpha", saved(p.pil("RGBA"), "WEBP", quality=60)
    yield "lossless", saved(p.pil("RGB"), "WEBP", lossless=True)
    yield "lossless alpha", saved(p.pil("RGBA"), "WEBP", lossless=True, exact=True)
    yield "animation", saved(p.pil("RGB"), "WEBP", lossless=True, save_all=True,
                             append_images=[p.pil("RGB")])
    still = saved(p.pil("RGB"), "WEBP", lossless=True)
    yield "frame on a canvas", webp_at(still, (p.width + 7, p.height + 5), (4, 2))


def gif_cases(p):
    w, h = p.width, p.height
    yield "palette", saved(p.numbered(256), "GIF", interlace=0)
    yield "interlaced", saved(p.numbered(200), "GIF", interlace=1)
    yield "few colours", saved(p.numbered(5), "GIF")
    yield "grey", saved(p.pil("L"), "GIF")
    yield "bits", saved(p.pil("1"), "GIF")
    yield "transparent", saved(p.numbered(50), "GIF", transparency=7)
    yield "animation", saved(p.numbered(64), "GIF", save_all=True,
                             append_images=[p.numbered(64)])
    yield "no palette", gif(p.bytes(1), w, h)
    yield "colours beyond the palette", gif(p.bytes(1), w, h, p.palette(100))
    yield "palette of the frame", gif(p.bytes(1), w, h, p.palette(16),
                                      local=p.palette(256))
    yield "frame on a canvas", gif(p.bytes(1), w, h, p.palette(256),
                                   canvas=(w + 5, h + 9), offset=(3, 4))
    yield "frame on a transparent canvas", gif(
        p.bytes(1), w, h, p.palette(256), transparent=99, canvas=(w + 5, h + 9),
        offset=(3, 4))
    yield "frame beyond the canvas", gif(p.bytes(1), w, h, p.palette(256),
                                         canvas=(3, 2), offset=(2, 1))
    yield "end is missing", gif(p.bytes(1), w, h, p.palette(256), rest=b"")[:-1]


def bmp_cases(p):
    w, h = p.width, p.height
    for mode in ("1", "L", "RGB", "RGBA"):
        yield mode, saved(p.pil(mode), "BMP")
    yield "palette", saved(p.numbered(256), "BMP")
    four = b"".join(p.palette(1) + b"\0" for _ in range(16))
    nibbles = padded_rows(p.rows((w + 1) // 2))
    yield "4 bits", bmp(w, h, 4, nibbles, four)
    yield "1 bit", bmp(w, h, 1, padded_rows(p.rows((w + 7) // 8)), four[:8])
    yield "few colours", bmp(w, h, 8, padded_rows(p.rows(w)), four, colours=16)
    yield "OS/2", bmp(w, h, 8, padded_rows(p.rows(w)), p.palette(256), core=True)
    yield "16 bits", bmp(w, h, 16, padded_rows(p.rows(2 * w)))
    yield "5-6-5 bits", bmp(w, h, 16, padded_rows(p.rows(2 * w)), compression=3,
                            masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f))
    yield "other masks", bmp(
        w, h, 32, padded_rows(p.rows(4 * w)), compression=3,
        masks=struct.pack("<III", 0xff000000, 0xff0000, 0xff00))
    yield "upper row first", bmp(w, -h, 24, padded_rows(p.rows(3 * w)))
    runs = bytearray()
    for _ in range(h):
        left = w
        while left:
            count = min(left, 1 + p.bytes(1)[0] % 9)
            if count > 2 and p.bytes(1)[0] % 2:
                literal = (p.bytes(1) * count)[:count]
                runs += bytes([0, count]) + literal + b"\0" * (count % 2)
            else:
                runs += bytes([count, p.bytes(1)[0]])
            left -= count
        runs += b"\0\0"
    palette = b"".join(p.palette(1) + b"\0" for _ in range(256))
    yield "runs of 8 bits", bmp(w, h, 8, bytes(runs) + b"\0\1", palette,
                                compression=1)
    runs = b"".join(bytes([w % 256 or 1, p.bytes(1)[0], 0, 0]) for _ in range(h))
    yield "runs of 4 bits", bmp(w, h, 4, runs + b"\0\1", four, compression=2)
    # One pixel, a move to the right and up, one pixel, and nothing up to the end.
    if w > 3 and h > 2:
        moves = b"\1\x05\0\2\1\1\1\x07" + b"\0\0" + b"\0\2\0" + bytes([h - 2])
        yield "runs with moves", bmp(w, h, 8, moves, palette, compression=1)


def tiff_cases(p):
    w, h = p.width, p.height
    for mode, compression in (
            ("1", "raw"), ("1", "group3"), ("1", "group4"), ("1", "tiff_ccitt"),
            ("L", "tiff_lzw"), ("L", "jpeg"), ("LA", "raw"), ("RGB", "raw"),
            ("RGB", "tiff_lzw"), ("RGB", "tiff_adobe_deflate"),
            ("RGB", "tiff_deflate"), ("RGB", "packbits"), ("RGB", "jpeg"),
            ("RGB", "zstd"), ("RGBA", "tiff_lzw"), ("CMYK", "tiff_lzw"),
            ("YCbCr", "tiff_lzw")):
        yield mode + " " + compression, saved(p.pil(mode), "TIFF",
                                              compression=compression)
    yield "palette", saved(p.numbered(256), "TIFF", compression="tiff_lzw")
    yield "predictor", saved(p.pil("RGB"), "TIFF", compression="tiff_lzw",
                             tiffinfo={317: 2})
    yield "BigTIFF", saved(p.pil("RGB"), "TIFF", big_tiff=True)
    yield "pages", saved(p.pil("RGB"), "TIFF", save_all=True,
                         append_images=[p.pil("L")])
    for orientation in range(1, 9):
        yield "orientation %d" % orientation, tiff(
            Tiff(w, h, [8] * 3, 2, orientation=orientation), [p.bytes(3)])
    for bits in (2, 4):
        yield "grey of %d bits" % bits, tiff(
            Tiff(w, h, [bits]), [b"".join(p.rows((w * bits + 7) // 8))])
    for bits in (1, 2, 4, 8):
        colours = [p.bytes(1)[0] * 257 - 100 & 0xffff for _ in range(3 << bits)]
        yield "palette of %d bits" % bits, tiff(
            Tiff(w, h, [bits], 3, palette=colours),
            [b"".join(p.rows((w * bits + 7) // 8))])
    for bits in (1, 8):
        yield "white is 0, %d bits" % bits, tiff(
            Tiff(w, h, [bits], 0), [b"".join(p.rows((w * bits + 7) // 8))])
    for order in "<>":
        yield "RGB of 16 bits " + order, tiff(
            Tiff(w, h, [16] * 3, 2, order=order), [p.bytes(6)])
    yield "CMYK of 16 bits", tiff(Tiff(w, h, [16] * 4, 5), [p.bytes(8)])
    for kind in (0, 1, 2):
        yield "fourth sample %d" % kind, tiff(
            Tiff(w, h, [8] * 4, 2, extra=[kind]), [p.bytes(4)])
    yield "alpha multiplied in, 16 bits", tiff(
        Tiff(w, h, [16] * 4, 2, extra=[1]), [p.bytes(8)])
    yield "planes", tiff(Tiff(w, h, [8] * 3, 2, planar=2),
                         [p.bytes(1) for _ in range(3)])
    strips = [p.rows(3 * w) for _ in range(1)][0]
    yield "strips", tiff(Tiff(w, h, [8] * 3, 2, rows=2),
                         [b"".join(strips[y:y + 2]) for y in range(0, h, 2)])
    tile = (16, 16)
    yield "tiles", tiff(Tiff(w, h, [8] * 3, 2, tile=tile),
                        tiles(p.bytes(3), w, h, 3, tile))
    yield "tiles of planes", tiff(
        Tiff(w, h, [8] * 3, 2, planar=2, tile=tile),
        [t for _ in range(3) for t in tiles(p.bytes(1), w, h, 1, tile)])


def pnm_cases(p):
    for mode in ("1", "L", "RGB"):
        yield mode, saved(p.pil(mode), "PPM")
    for samples in (1, 3):
        for largest in (1, 7, 200):
            yield "largest of %d is %d" % (samples, largest), pnm(
                p, samples, largest, p.bytes(samples, largest + 1))
    for largest in (256, 1000, 65535):
        yield "largest is %d" % largest, pnm(p, 3, largest, p.bytes(6))
    yield "values beyond the largest", pnm(p, 3, 100, p.bytes(3))
    yield "rest behind the pixels", pnm(p, 3, 255, p.bytes(3) + b"P6 1 1 255 abc")
    yield "comments", pnm(p, 3, 255, p.bytes(3), gap=b" # a line\n\t#\r\n")
    yield "text of bits", pnm_text(p, 1, 1, gap=b"\n# a line\n")
    yield "text of bits side by side", pnm_text(p, 1, 1, between="")
    for samples, largest in ((1, 255), (1, 9), (3, 255), (3, 1000), (3, 65535)):
        yield "text of %d, %d" % (samples, largest), pnm_text(p, samples, largest)
    yield "text with comments", pnm_text(p, 3, 99, between=" # 1 2 3\n ")


KINDS = {"webp": webp_cases, "gif": gif_cases, "bmp": bmp_cases,
         "tiff": tiff_cases, "pnm": pnm_cases}


def cases(seed, size=None):
    draws = random.Random(seed)
    for kind, make in KINDS.items():
        width, height = size or (draws.randint(1, 70), draws.randint(1, 40))
        for name, file in make(Picture(draws, width, height)):
            # Pillow needs the whole size for some compressions of one row.
            image = Image.open(io.BytesIO(file))
            pixels = image.convert("RGB")
            yield {"name": "%s: %s" % (kind, name), "width": pixels.width,
                   "height": pixels.height,
                   "bytes": base64.b64encode(file).decode(),
                   "pixels": base64.b64encode(pixels.tobytes()).decode()}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        made = list(cases(seed=31, size=(9, 5)))
    else:
        seed, rounds = map(int, sys.argv[1:])
        made = [case for i in range(rounds) for case in cases(seed + i)]
    # A line for each file.
    print("[\n%s\n]" % ",\n".join(map(json.dumps, made)))
