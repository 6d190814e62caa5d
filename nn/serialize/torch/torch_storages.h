// The bytes of the storages in a file of torch.save, by their keys.
//
//   TROUPE_ASSIGN_OR_RETURN(TorchContents contents,
//                           OpenTorchContents(std::move(file)));
//   absl::Status s = contents.storages->ReadAt("0", /*offset=*/0, into);

#ifndef NN_SERIALIZE_TORCH_TORCH_STORAGES_H_
#define NN_SERIALIZE_TORCH_TORCH_STORAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/serialize/torch/torch_tensors.h"

namespace troupe::nn {

class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  // Returns the number of a storage's bytes.
  //   kDataLoss: the file lacks it.
  virtual absl::StatusOr<std::int64_t> BytesOf(
      const std::string& key) const = 0;
  // Reads into all of `into`.
  virtual absl::Status ReadAt(const std::string& key, std::int64_t offset,
                              absl::Span<char> into) const = 0;
};

struct TorchContents {
  std::vector<TorchTensor> tensors;
  std::unique_ptr<const TorchStorages> storages;
};

// Reads all but the tensors' values. Errors: those of OpenTorchFile(), in words
// that complete "FILE ".
absl::StatusOr<TorchContents> OpenTorchContents(
    std::unique_ptr<const base::ReadableFile> file);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_TORCH_STORAGES_H_
