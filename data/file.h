// Reads whole files, with a limit, and says what went wrong in words.
//
//   absl::StatusOr<std::vector<uint8_t>> bytes =
//       ReadFile("mnist/t10k-labels-idx1-ubyte", /*bytes_max=*/1 << 20);
//
// The parsers (idx.h, cifar10.h) work on bytes and never touch a file.

#ifndef DATA_FILE_H_
#define DATA_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::data {

// The contents of a regular file. Every error names `path`.
//   kNotFound:           no such file.
//   kPermissionDenied:   it may not be read.
//   kFailedPrecondition: it is not a regular file.
//   kResourceExhausted:  it is larger than `bytes_max`.
//   kDataLoss:           it ended before its size, or the disk failed.
absl::StatusOr<std::vector<std::uint8_t>> ReadFile(const std::string& path,
                                                   std::int64_t bytes_max);

// Whether something is at `path`, readable or not.
bool FileExists(const std::string& path);

// "folder/name"; `name` alone when the folder is empty.
std::string JoinPath(const std::string& folder, const std::string& name);

}  // namespace troupe::data

#endif  // DATA_FILE_H_
