#include "base/foreign_format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace troupe::base {
namespace {

constexpr absl::string_view kUnpack = "unpack it";
constexpr absl::string_view kExtract =
    "extract what is to be read with your own program";
constexpr absl::string_view kCheckpoint =
    "check the path: such files have weights";
constexpr absl::string_view kConvertImage = "convert or remove it";

struct Magic {
  std::size_t offset;
  absl::string_view bytes;
  ForeignFormat format;
};

// Makes a string_view of a literal that may contain zeros.
template <std::size_t N>
constexpr absl::string_view Bytes(const char (&literal)[N]) {
  return absl::string_view(literal, N - 1);
}

// The first that fits is taken.
constexpr Magic kMagics[] = {
    {0,
     "version https://git-lfs.github.com/spec/",
     {"a pointer of git-lfs", "fetch the file itself (git lfs pull)"}},
    {0,
     Bytes("\x93NUMPY"),
     {"an array of NumPy (.npy)",
      "write its numbers alone (array.tofile(path)), or read it with your own "
      "program",
      Contents::kNumPy}},
    {4, Bytes("1AY&SY"), {"a bzip2 file", kUnpack}},
    {0, Bytes("\xfd\x37zXZ\0"), {"an xz file", kUnpack}},
    {0, Bytes("\x28\xb5\x2f\xfd"), {"a Zstandard file", kUnpack}},
    {0, Bytes("7z\xbc\xaf\x27\x1c"), {"a 7-Zip archive", kUnpack}},
    {0, Bytes("Rar!\x1a\x07"), {"a RAR archive", kUnpack}},
    {257, Bytes("ustar"), {"a tar archive", kUnpack}},
    {0, Bytes("PAR1"), {"a Parquet table", kExtract}},
    {0, Bytes("ARROW1\0\0"), {"an Arrow table", kExtract}},
    {0,
     Bytes("\x89HDF\r\n\x1a\n"),
     {"an HDF5 file", kExtract, Contents::kWeights}},
    {0, Bytes("SQLite format 3\0"), {"an SQLite database", kExtract}},
    {0, Bytes("GGUF"), {"a model in GGUF", kCheckpoint, Contents::kWeights}},
    // The number by which torch.save began before it wrote zip archives.
    {0,
     Bytes("\x80\2\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19"),
     {"a file of torch.save", kCheckpoint, Contents::kPickle}},
    {0, Bytes("%PDF-"), {"a PDF document", kExtract}},
    {0, Bytes("\xff\xd8\xff"), {"a JPEG image", kConvertImage}},
    {0, Bytes("\x89PNG\r\n\x1a\n"), {"a PNG image", kConvertImage}},
    {0, Bytes("GIF8"), {"a GIF image", kConvertImage}},
    {8, Bytes("WEBP"), {"a WebP image", kConvertImage}},
    {0, Bytes("II*\0"), {"a TIFF image", kConvertImage}},
    {0, Bytes("MM\0*"), {"a TIFF image", kConvertImage}},
    {4, Bytes("ftypheic"), {"an HEIC image", kConvertImage}},
    {4, Bytes("ftypmif1"), {"an HEIC image", kConvertImage}},
    {4, Bytes("ftypavif"), {"an AVIF image", kConvertImage}},
    {0, Bytes("\0\0\0\x0cJXL "), {"a JPEG XL image", kConvertImage}},
};

bool HasBytes(absl::string_view head, std::size_t offset,
              absl::string_view bytes) {
  return head.size() >= offset && absl::StartsWith(head.substr(offset), bytes);
}

// Returns whether the six bytes after the length of a BMP file, which has only
// "BM" as its magic, are its own: four reserved zeros and a small offset.
bool IsBmp(absl::string_view head) {
  return HasBytes(head, 0, "BM") && HasBytes(head, 6, Bytes("\0\0\0\0")) &&
         HasBytes(head, 12, Bytes("\0\0"));
}

// Returns whether the file is a pickle of an object: after the number of the
// protocol, up to 3, a dict or list and its name; from 4 on, the length of a
// frame of less than 2^40 bytes.
bool IsPickle(absl::string_view head) {
  if (head.size() < 11 || head[0] != '\x80') return false;
  if (head[1] == 2 || head[1] == 3) {
    return HasBytes(head, 2, "}q") || HasBytes(head, 2, "]q");
  }
  return (head[1] == 4 || head[1] == 5) && head[2] == '\x95' &&
         HasBytes(head, 8, Bytes("\0\0\0"));
}

// Returns whether reserved flags are 0 after the magic, which is short.
bool IsGzip(absl::string_view head) {
  return HasBytes(head, 0, "\x1f\x8b\x08") && head.size() > 3 &&
         (head[3] & 0xe0) == 0;
}

// Returns whether a header of JSON follows its length, of less than 2^32.
bool IsSafetensors(absl::string_view head) {
  return HasBytes(head, 4, Bytes("\0\0\0\0{\""));
}

// Returns whether the file is a zip archive; torch.save and numpy.savez write
// such files, too.
bool IsZip(absl::string_view head) {
  return HasBytes(head, 0, "PK\3\4") || HasBytes(head, 0, "PK\5\6");
}

ForeignFormat ZipFormat(absl::string_view head) {
  if (absl::StrContains(head, "/data.pkl")) {
    return {"a file of torch.save", kCheckpoint, Contents::kPickle};
  }
  if (absl::StrContains(head, ".npy")) {
    return {"arrays of NumPy (.npz)", kExtract, Contents::kNumPy};
  }
  return {"a zip archive", kUnpack};
}

bool IsWebPage(absl::string_view head) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(head);
  return absl::StartsWithIgnoreCase(text, "<!doctype html") ||
         absl::StartsWithIgnoreCase(text, "<html");
}

}  // namespace

std::optional<ForeignFormat> RecogniseFormat(absl::string_view head) {
  head = head.substr(0, kFormatHeadBytes);
  for (const Magic& magic : kMagics) {
    if (HasBytes(head, magic.offset, magic.bytes)) return magic.format;
  }
  if (IsZip(head)) return ZipFormat(head);
  if (IsGzip(head)) return ForeignFormat{"a gzip file", kUnpack};
  if (IsSafetensors(head)) {
    return ForeignFormat{"a safetensors file", kCheckpoint,
                         Contents::kSafetensors};
  }
  if (IsPickle(head)) {
    return ForeignFormat{"a pickle of Python", kExtract, Contents::kPickle};
  }
  if (IsBmp(head)) return ForeignFormat{"a BMP image", kConvertImage};
  if (IsWebPage(head)) {
    return ForeignFormat{"a page of the web (HTML)",
                         "download the file itself, not a page about it",
                         Contents::kOther, /*is_text=*/true};
  }
  return std::nullopt;
}

absl::Status RefuseForeignFormat(absl::string_view head, absl::string_view path,
                                 absl::string_view instead_of) {
  const std::optional<ForeignFormat> format = RecogniseFormat(head);
  if (!format.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", format->name, ", ", instead_of, "; ", format->advice));
}

}  // namespace troupe::base
