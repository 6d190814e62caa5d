// Reads what torch.save writes: a zip archive, or the plain stream of PyTorch
// before 1.6 (_use_new_zipfile_serialization=False), with a state dict or a
// checkpoint that has one (torch_tensors.h).
//
//   base::PosixFileSystem files;
//   TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> weights,
//                           OpenTorchFile(files, "resnet18.pt"));
//   for (const StoredTensor& t : weights->tensors()) Show(t.name, t.shape);
//
// Pickles are read as data, by a reader of our own that runs nothing
// (pickle.h); a file with a pickled call that is not known to be harmless is
// refused by that name. Only the bytes of tensors that are asked for are read.
//
// The formats (torch/serialization.py). An archive has the entries
// NAME/data.pkl, NAME/data/KEY for each storage, and NAME/byteorder. A stream
// has four pickles: a number, a version, facts on the machine, the object; then
// a pickle of the storages' keys, and each storage behind its length.

#ifndef NN_SERIALIZE_TORCH_TORCH_FILE_H_
#define NN_SERIALIZE_TORCH_TORCH_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nn/serialize/tensor_source.h"

namespace troupe::nn {

// Whether a file that begins with `head`, of at least 16 bytes, may be one of
// torch.save: a zip archive, or a pickle.
bool MayBeTorchFile(absl::string_view head);

// Every error names `path`.
//   kDataLoss, kOutOfRange, kResourceExhausted: damaged, or beyond a limit.
//   kPermissionDenied: it has a pickled call that is not harmless; names it.
//   kNotFound: no state dict is in it.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenTorchFile(
    base::FileSystem& files, const std::string& path);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_TORCH_FILE_H_
