// Reads the model files of llm.c (gpt2_124M.bin, gpt2_124M_bf16.bin): a GPT-2
// under the names of nn/models/gpt2.h.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> weights,
//                           OpenLlmcFile(files, "gpt2_124M.bin"));
//   weights->tensors()[0].name;   // "wte.weight"
//
// The format (karpathy/llm.c, train_gpt2.py, write_model): 256 integers i32,
// little-endian: magic 20240326, version (3: f32, 5: bf16), context,
// vocabulary, layers, heads, width, rows of the token table; then the tensors,
// of each kind those of all layers, [out, in] as in PyTorch. The token table
// has rows behind the vocabulary, to make their number round; they are left
// out.

#ifndef NN_SERIALIZE_LLMC_FILE_H_
#define NN_SERIALIZE_LLMC_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nn/serialize/tensor_source.h"

namespace troupe::nn {

// Whether a file that begins with `head` has llm.c's magic number.
bool IsLlmcFile(absl::string_view head);

// Every error names `path`.
//   kDataLoss: not such a file, or its length is not the one that its header
//     demands.
//   kUnimplemented: of another version.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenLlmcFile(
    base::FileSystem& files, const std::string& path);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_LLMC_FILE_H_
