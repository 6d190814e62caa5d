// Writes a state dict as torch.save does, for torch.load(weights_only=True).
//
//   absl::Status s = WriteTorchFile(files, "resnet18.pt", tensors);
//   // model.load_state_dict(torch.load("resnet18.pt"))
//
// The file is a zip archive with stored entries, whose data begin at multiples
// of 64 bytes, as PyTorch's do for torch.load(mmap=True); every entry has
// fields of 64 bits, so that there is no limit of 4 GB. Equal tensors in equal
// order give equal files. Memory: none beyond the tensors'.

#ifndef NN_SERIALIZE_TORCH_TORCH_WRITER_H_
#define NN_SERIALIZE_TORCH_TORCH_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/serialize/safetensors.h"

namespace troupe::nn {

// Writes, syncs and closes `path`. Tensors are on the host.
//   other: from the file system; the file is incomplete.
absl::Status WriteTorchFile(base::FileSystem& files, const std::string& path,
                            absl::Span<const NamedTensor> tensors);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_TORCH_WRITER_H_
