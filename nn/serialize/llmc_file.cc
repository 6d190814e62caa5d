#include "nn/serialize/llmc_file.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

constexpr std::int32_t kLlmcMagic = 20240326;
constexpr std::int32_t kVersionF32 = 3;
constexpr std::int32_t kVersionBF16 = 5;
constexpr std::size_t kHeaderNumbers = 256;
// Limit on each number of the header: GPT-2 XL has 50304, and 48 layers.
constexpr std::int32_t kExtentMax = 1 << 24;
constexpr std::int32_t kLayersMax = 10000;

using Header = std::array<std::int32_t, kHeaderNumbers>;

class LlmcFile : public TensorSource {
 public:
  LlmcFile(std::unique_ptr<const base::ReadableFile> file, const Header& header)
      : file_(std::move(file)), end_(sizeof(Header)) {
    const std::int64_t context = header[2], vocabulary = header[3];
    const std::int64_t width = header[6], rows = header[7];
    layers_ = header[4];
    dtype_ = header[1] == kVersionF32 ? DType::kF32 : DType::kBF16;
    Add("wte.weight", {vocabulary, width});
    end_ += (rows - vocabulary) * width * Bytes();
    Add("wpe.weight", {context, width});
    AddOfLayers("ln_1.weight", {width});
    AddOfLayers("ln_1.bias", {width});
    AddOfLayers("attn.c_attn.weight", {3 * width, width});
    AddOfLayers("attn.c_attn.bias", {3 * width});
    AddOfLayers("attn.c_proj.weight", {width, width});
    AddOfLayers("attn.c_proj.bias", {width});
    AddOfLayers("ln_2.weight", {width});
    AddOfLayers("ln_2.bias", {width});
    AddOfLayers("mlp.c_fc.weight", {4 * width, width});
    AddOfLayers("mlp.c_fc.bias", {4 * width});
    AddOfLayers("mlp.c_proj.weight", {width, 4 * width});
    AddOfLayers("mlp.c_proj.bias", {width});
    Add("ln_f.weight", {width});
    Add("ln_f.bias", {width});
  }

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }

  absl::Status Read(std::size_t index, const Tensor& into) const override {
    TROUPE_CHECK(
        into.shape() == tensors_[index].shape && into.dtype() == dtype_,
        "a tensor is read as it is");
    return file_->ReadAt(begins_[index],
                         {static_cast<char*>(into.raw()), into.bytes()});
  }

  // Number of bytes that the file must have.
  std::int64_t end() const { return end_; }

 private:
  std::int64_t Bytes() const { return SizeOf(dtype_); }

  void Add(std::string name, const Shape& shape) {
    tensors_.push_back({std::move(name), dtype_, shape});
    begins_.push_back(end_);
    end_ += shape.numel() * Bytes();
  }
  void AddOfLayers(absl::string_view name, const Shape& shape) {
    for (int i = 0; i < layers_; ++i)
      Add(absl::StrCat("h.", i, ".", name), shape);
  }

  const std::unique_ptr<const base::ReadableFile> file_;
  DType dtype_ = DType::kF32;
  int layers_ = 0;
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begins_;
  std::int64_t end_;
};

absl::Status LlmcDamaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, " is a damaged model file of llm.c: ", what,
                   "; write it again with llm.c's train_gpt2.py"));
}

}  // namespace

bool IsLlmcFile(absl::string_view head) {
  std::int32_t magic = 0;
  if (head.size() < sizeof(magic)) return false;
  std::memcpy(&magic, head.data(), sizeof(magic));
  return magic == kLlmcMagic;
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenLlmcFile(
    base::FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
                          files.Open(path));
  const std::int64_t size = file->size();
  if (size < static_cast<std::int64_t>(sizeof(Header))) {
    return LlmcDamaged(path, "its header is cut off");
  }
  Header header;
  TROUPE_RETURN_IF_ERROR(file->ReadAt(
      0, {reinterpret_cast<char*>(header.data()), sizeof(Header)}));
  if (header[1] != kVersionF32 && header[1] != kVersionBF16) {
    return absl::UnimplementedError(absl::StrCat(
        path, " is a model file of llm.c of version ", header[1],
        "; write one of version 3 (f32) or 5 (bf16) with its train_gpt2.py"));
  }
  for (int i = 2; i < 8; ++i) {
    if (header[i] >= 1 && header[i] <= (i == 4 ? kLayersMax : kExtentMax)) {
      continue;
    }
    return LlmcDamaged(
        path, absl::StrCat("number ", i, " of its header is ", header[i]));
  }
  const std::int64_t parameters_max = size;
  const std::int64_t width = header[6];
  if (header[7] < header[3] || width > parameters_max / width ||
      header[7] > parameters_max / width ||
      header[2] > parameters_max / width ||
      header[4] > parameters_max / width / width) {
    return LlmcDamaged(path, "its header does not fit its length");
  }
  auto opened = std::make_unique<LlmcFile>(std::move(file), header);
  if (opened->end() == size) return opened;
  return LlmcDamaged(
      path, absl::StrCat("it has ", size, " bytes, not ", opened->end()));
}

}  // namespace troupe::nn
