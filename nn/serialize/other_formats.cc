#include "nn/serialize/other_formats.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

constexpr absl::string_view kConvert =
    "; convert it in Python: safetensors.torch.save_file(torch.load(\"FILE\", "
    "weights_only=True), \"FILE.safetensors\"), of the state_dict alone if it "
    "has more";

// A mark at the beginning of files of one format.
struct Format {
  absl::string_view mark;
  absl::string_view what;
};

constexpr Format kFormats[] = {
    {"version https://git-lfs.github.com/spec/",
     "a pointer of git-lfs, not the file itself; fetch it by `git lfs pull`"},
    {"GGUF", "a GGUF file of llama.cpp; take the model's safetensors file"},
    {"\x89HDF\r\n\x1a\n",
     "an HDF5 file, as Keras writes; save the weights as safetensors there"},
    {"\x93NUMPY",
     "an array of NumPy (.npy); write it by safetensors.numpy.save_file"},
    {"<!DOCTYPE", "a web page, not the file itself; download it again"},
    {"<html", "a web page, not the file itself; download it again"},
};

constexpr absl::string_view kZipMark("PK\3\4", 4);

// Returns the name of the first file in a zip archive, or its beginning (PKWARE
// APPNOTE, 4.3.7: its length at byte 26, the name at byte 30).
absl::string_view FirstInZip(absl::string_view head) {
  constexpr std::size_t kLengthAt = 26, kNameAt = 30;
  if (head.size() < kNameAt) return "";
  const auto low = static_cast<unsigned char>(head[kLengthAt]);
  const auto high = static_cast<unsigned char>(head[kLengthAt + 1]);
  return head.substr(kNameAt, low + 256u * high);
}

// Whether a pickle begins here: PROTO with a version of 2 to 5.
bool IsPickle(absl::string_view head) {
  return head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

}  // namespace

std::string OtherFormat(absl::string_view head) {
  for (const Format& format : kFormats) {
    if (absl::StartsWith(head, format.mark)) return std::string(format.what);
  }
  if (absl::StartsWith(head, kZipMark)) {
    const absl::string_view first = FirstInZip(head);
    if (absl::EndsWith(first, ".npy")) {
      return "an archive of NumPy (.npz); write it by "
             "safetensors.numpy.save_file";
    }
    if (absl::StrContains(first, '/')) {
      return absl::StrCat("a file of torch.save", kConvert);
    }
    return "a zip archive; unpack it";
  }
  if (IsPickle(head)) {
    return absl::StrCat("a pickle, as torch.save writes (before PyTorch 1.6)",
                        kConvert);
  }
  return "";
}

}  // namespace troupe::nn
