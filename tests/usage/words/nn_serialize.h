// Declares names that the usage comments in nn/serialize/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_SERIALIZE_H_
#define TESTS_USAGE_WORDS_NN_SERIALIZE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nn/modules/module.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/tensor_parts.h"
#include "nn/serialize/tensor_source.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage {

namespace tensor_source_h {
extern const TensorSource& source;
extern const Tensor into;
void Show(const std::string& name, const Shape& shape);
}  // namespace tensor_source_h

namespace weight_sources_h {
extern base::FileSystem& files;
}  // namespace weight_sources_h

namespace llmc_file_h {
extern base::FileSystem& files;
}  // namespace llmc_file_h

namespace transformers_model_h {
extern base::FileSystem& files;
extern const std::vector<NamedTensor> tensors;
extern CachingAllocator memory;
}  // namespace transformers_model_h

namespace weight_file_h {
extern base::FileSystem& files;
extern std::unique_ptr<Module> model;
}  // namespace weight_file_h

namespace float_conversion_h {
extern const Tensor tensor, converted;
}

namespace shard_index_h {
extern const std::string text;
}  // namespace shard_index_h

namespace safetensors_h {
extern Tensor w, b;
void Show(const std::string& name, const Shape& shape);
}  // namespace safetensors_h

namespace tensor_parts_h {
extern base::FileSystem& files;
extern const Tensor mine;
}  // namespace tensor_parts_h

namespace safetensors_header_h {
extern const absl::string_view json;
extern const std::int64_t file_size, n;
}  // namespace safetensors_header_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_SERIALIZE_H_
