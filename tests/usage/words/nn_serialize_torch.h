// Declares names that the usage comments in nn/serialize/torch/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_NN_SERIALIZE_TORCH_H_
#define TESTS_USAGE_WORDS_NN_SERIALIZE_TORCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/serialize/safetensors.h"

namespace troupe::nn::usage {

namespace pickle_h {
extern const std::string bytes;
void Show(absl::string_view text);
}  // namespace pickle_h

namespace torch_tensors_h {
extern const std::string bytes;
}  // namespace torch_tensors_h

namespace zip_archive_h {
extern const std::unique_ptr<base::ReadableFile> file;
}  // namespace zip_archive_h

namespace zip_format_h {
extern const std::uint32_t first_word;
void ReadEntry();
}  // namespace zip_format_h

namespace torch_file_h {
void Show(const std::string& name, const Shape& shape);
}  // namespace torch_file_h

namespace torch_storages_h {
extern std::unique_ptr<base::ReadableFile> file;
extern const absl::Span<char> into;
}  // namespace torch_storages_h

namespace torch_writer_h {
extern base::FileSystem& files;
extern const std::vector<NamedTensor> tensors;
}  // namespace torch_writer_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_SERIALIZE_TORCH_H_
