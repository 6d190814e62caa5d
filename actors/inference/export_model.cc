#include "actors/inference/export_model.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "actors/checkpoint/load_model.h"
#include "actors/inference/predict.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "nn/kernels/open_kernels.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {
namespace {

// The file system of the job's checkpoints, to which files are written, too.
class Disk {
 public:
  explicit Disk(const JobSpec& spec)
      : spec_(spec),
        files_(spec.checkpoint.files == nullptr ? &posix_
                                                : spec.checkpoint.files) {}

  absl::StatusOr<Checkpoint> OpenNewest() {
    return OpenCheckpoint(*files_, spec_.checkpoint.dir);
  }
  absl::Status Write(const std::string& path,
                     const std::vector<nn::NamedTensor>& tensors) {
    return nn::WriteSafetensors(*files_, path, tensors, {{"format", "pt"}});
  }

 private:
  const JobSpec& spec_;
  base::PosixFileSystem posix_;
  base::FileSystem* const files_;
};

}  // namespace

absl::Status ExportModel(const JobSpec& spec, const std::string& path) {
  Disk disk(spec);
  TROUPE_ASSIGN_OR_RETURN(const Checkpoint saved, disk.OpenNewest());
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<nn::NamedTensor> tensors,
                          ReadModel(saved, memory));
  return disk.Write(path, tensors);
}

absl::Status ExportAnswers(const JobSpec& spec, int samples,
                           const std::string& path) {
  Disk disk(spec);
  TROUPE_ASSIGN_OR_RETURN(const Checkpoint saved, disk.OpenNewest());
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Kernels> kernels,
                          nn::OpenKernels(nn::Device(), /*options=*/{}));
  const std::unique_ptr<nn::Module> model = spec.model();
  TROUPE_RETURN_IF_ERROR(LoadModel(saved, *model, *kernels));
  std::vector<std::int64_t> indices(samples);
  std::iota(indices.begin(), indices.end(), 0);
  const data::Dataset& dataset = spec.test ? *spec.test : *spec.train;
  TROUPE_ASSIGN_OR_RETURN(
      const Prediction seen,
      Predict(*model, *kernels, dataset, indices, spec.dtype));
  return disk.Write(path, {{"input", seen.input}, {"output", seen.output}});
}

}  // namespace troupe::actors
