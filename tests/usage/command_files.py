"""Files that the commands of pages and help texts read, and that no command has
written.

    write_files(folder)
"""

import os
import struct
import zlib

TEXTS = {
    "run.toml": """
[model]
kind = "mlp"

[data]
kind = "synthetic"

[checkpoint]
dir = "checkpoints/run"
replace = true
""",
    "long.toml": """
[model]
kind = "gpt_nano"

[data]
kind = "text"

[train]
global_batch_size = 4

[checkpoint]
dir = "checkpoints/long"
""",
    "photos.toml": """
[model]
kind = "linear"

[data]
kind = "images"
path = "photos"
image_size = 8
resize = 8

[train]
global_batch_size = 2

[checkpoint]
dir = "checkpoints/photos"
keep_best = true
""",
    "input.txt": "ROMEO: Is the day so young?\n" * 300,
}


def picture(red, green, blue):
    """Returns a PNG of 8 x 8 pixels of one colour. Decoders look at the first
    bytes of a file, not at the ending of its name."""
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    rows = (b"\0" + bytes([red, green, blue] * 8)) * 8
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


PHOTOS = {
    "sea.jpg": (10, 10, 240),
    **{"photos/%s/%d.png" % (name, i): colour
       for name, colour in (("blue", (9, 30, 200)), ("fire", (200, 30, 9)))
       for i in range(4)},
}


def write_files(folder):
    """Writes them into the folder."""
    files = {name: text.encode() for name, text in TEXTS.items()}
    files.update({name: picture(*colour) for name, colour in PHOTOS.items()})
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
