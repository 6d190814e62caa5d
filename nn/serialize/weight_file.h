// Trained weights of other programs, with the names of a PyTorch model, read
// into a model of this library: a safetensors file, a file of torch.save, a
// model file of llm.c, an index with its files, or a folder (weight_sources.h).
//
//   TROUPE_ASSIGN_OR_RETURN(const WeightFile weights,
//                           WeightFile::Open(files, "resnet18.safetensors"));
//   TROUPE_RETURN_IF_ERROR(weights.CheckStrict(*model));
//   for (const Parameter* p : model->Parameters()) {
//     TROUPE_RETURN_IF_ERROR(weights.Read(*p, p->value).status());
//   }
//
// Modules here are named as in PyTorch, so names mostly are the same. Beyond
// that a file may
//     have names of wrappers, in any number and order, before a name
//       (wrapped_names.h): "module.", "_orig_mod.", "model.", "transformer."
//       of DistributedDataParallel, torch.compile, Lightning, GPT2LMHeadModel;
//     be of torchvision's ViT, or of Hugging Face's ResNet or ViT, whose names
//       are others (name_styles.h);
//     have a shared parameter under any of its names, or under all of them;
//     be of Hugging Face's GPT-2, whose Conv1D layers keep their weights as
//       [in, out]: they are transposed. attn.c_attn.weight, [D, 3D] there and
//       [3D, D] elsewhere, tells which it is;
//     lack lm_head.weight: a head that is not tied begins as wte.weight;
//     have other floating dtypes: values are converted, rounded once.
//
// Causal masks ("h.0.attn.bias") and counters ("bn1.num_batches_tracked") that
// only one side has are not counted as a difference. Two tensors of a file that
// are the same parameter but for their wrappers are: the one with more of them
// is unexpected.
//
// The file is not trusted (safetensors.h, torch/pickle.h): nothing in it runs.
// Memory: one tensor at a time.
// Threads: any number of threads may read.

#ifndef NN_SERIALIZE_WEIGHT_FILE_H_
#define NN_SERIALIZE_WEIGHT_FILE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/modules/module.h"
#include "nn/serialize/name_styles.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/weight_sources.h"

namespace troupe::nn {

// A tensor of a model, an optimizer, ... that is looked for in a file.
struct WantedWeight {
  // Its name, then others under which a file may have it.
  std::vector<absl::string_view> names;
  TensorSpec spec;
};

// A tensor that has another shape or kind in a file than in a model.
struct WeightMismatch {
  std::string name;      // name in the model
  std::string sentence;  // "conv1.weight is f32[64, 3, 7, 7], not ..."
  Shape file;            // rank 0 if the tensor is unreadable
  Shape model;
};

// Differences between a file and a model. Each list is in the order of its
// side.
struct WeightDifferences {
  std::vector<std::string> missing;     // in the model, not in the file
  std::vector<std::string> unexpected;  // in the file, not in the model
  std::vector<std::string> mismatched;  // other shape or kind; sentences
  // The same as `mismatched`, in fields, to give advice.
  std::vector<WeightMismatch> mismatches;
  // Unexpected names that are like a missing one; sentences.
  std::vector<std::string> nearest;

  bool any() const {
    return !missing.empty() || !unexpected.empty() || !mismatched.empty();
  }
  // Returns "missing: 0.bias, 2.bias; unexpected: ..."; of each list up to 20
  // entries, then the number of the others.
  std::string ToString() const;
};

class WeightFile {
 public:
  // `path` and errors: those of OpenWeightSources().
  static absl::StatusOr<WeightFile> Open(base::FileSystem& files,
                                         const std::string& path);

  // Path of the file, or of the index.
  const std::string& path() const { return opened_.path; }
  // Whether the weights of GPT-2's layers are [in, out] in the file.
  bool has_conv1d() const { return has_conv1d_; }

  // Compares the file with the parameters and buffers of `model`.
  WeightDifferences Compare(Module& model) const;
  // Compares the file with these tensors alone.
  WeightDifferences Compare(absl::Span<const WantedWeight> wanted) const;
  //   kInvalidArgument: they differ; lists all that Compare() finds.
  absl::Status CheckStrict(Module& model) const;

  // Whether Read() would find the tensor, in its shape.
  bool Has(const Parameter& parameter) const;
  bool Has(const Buffer& buffer) const;

  // Fills `into`, in host memory and of the parameter's shape; the file has the
  // whole of a piece (nn/autograd/sharding.h). Returns false, and leaves `into`
  // unchanged, if the file does not have the tensor, or in another shape.
  absl::StatusOr<bool> Read(const Parameter& parameter,
                            const Tensor& into) const;
  absl::StatusOr<bool> Read(const Buffer& buffer, const Tensor& into) const;
  absl::StatusOr<bool> Read(const WantedWeight& wanted,
                            const Tensor& into) const;

 private:
  // A tensor of a file, and that file.
  struct Part {
    const TensorSource* source = nullptr;
    std::size_t index = 0;
    const StoredTensor& tensor() const { return source->tensors()[index]; }
  };
  // One tensor, or several that are one in the model, above each other.
  struct Found {
    std::vector<Part> parts;
    int wrappers = 0;  // number of wrappers before the name that was looked for
    // Describes the tensor of all parts, under the first one's name.
    StoredTensor Whole() const;
  };
  using Names = absl::Span<const absl::string_view>;

  explicit WeightFile(WeightSources opened);

  // Adds what remains of a tensor's name under so many wrappers.
  void AddFound(const StyledName& name, int wrappers, Part part);
  // Returns the first of `names` that the files have, with wrappers or without;
  // null: none.
  const Found* Find(Names names) const;
  const Found* FindOne(absl::string_view name) const;
  bool IsTransposed(absl::string_view name) const;
  // Returns the difference that keeps the tensor from being read as `wanted`.
  std::optional<WeightMismatch> Mismatch(const Found& found,
                                         const TensorSpec& wanted) const;
  bool HasAny(Names names, const TensorSpec& wanted) const;
  absl::StatusOr<bool> ReadAny(Names names, const Tensor& into) const;

  absl::Status ReadPart(const Part& part, bool transpose,
                        const Tensor& into) const;

  WeightSources opened_;
  // Tensors by each name that remains when wrappers are removed, and by its
  // name here.
  absl::flat_hash_map<std::string, Found> found_;
  bool has_conv1d_ = false;
};

// Converts in the other direction: returns copies of `tensors`, named as in a
// model here, with the names and layouts of Hugging Face's GPT2LMHeadModel:
// "transformer." before all names except lm_head's, weights of Conv1D layers
// [in, out].
//   kInvalidArgument: `tensors` has no attn.c_attn.weight.
//   kResourceExhausted: no memory is left for a transposed copy.
absl::StatusOr<std::vector<NamedTensor>> AsTransformersGpt2(
    absl::Span<const NamedTensor> tensors, Allocator& allocator);

// Returns a copy of `tensor`, on the host, in another floating dtype, rounded
// once; a tensor of integers keeps its dtype.
absl::StatusOr<Tensor> ConvertFloats(const Tensor& tensor, DType dtype,
                                     Allocator& allocator);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_WEIGHT_FILE_H_
