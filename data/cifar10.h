// CIFAR-10 in its binary version: records of one label and 3072 pixels.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       ByteImages train,
//       ReadCifar10(files, "data/cifar", Cifar10Part::kTrain));
//   MakeImageDataset(std::move(train),
//                    {RandomShift(4, seed), RandomMirror(seed), ToFloat(),
//                     Normalize(Cifar10Mean(), Cifar10Stddev())});
//
// In the file an image is C, H, W (red plane first); here it is H, W, C:
// [32, 32, 3]. The folder is the one that holds data_batch_1.bin, or the one
// above it, where cifar-10-binary.tar.gz was unpacked.
// Source: A. Krizhevsky, "Learning multiple layers of features from tiny
// images", 2009; the layout is on the data set's page, "binary version".

#ifndef DATA_CIFAR10_H_
#define DATA_CIFAR10_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "data/image_dataset.h"

namespace troupe::data {

constexpr std::int64_t kCifar10Classes = 10;
constexpr std::int64_t kCifar10Side = 32;           // pixels
constexpr std::int64_t kCifar10RecordBytes = 3073;  // label, R, G, B planes
// Limit on one file: 100,000 records, ten times what the real ones have.
constexpr std::int64_t kCifar10BytesMax = 100000 * kCifar10RecordBytes;

// Mean and deviation of each channel of the 50,000 training images, pixels in
// [0, 1].
std::vector<float> Cifar10Mean();
std::vector<float> Cifar10Stddev();

enum class Cifar10Part {
  kTrain,  // data_batch_1.bin to data_batch_5.bin: 50,000
  kTest,   // test_batch.bin: 10,000
};

// Appends the records of one file called `name` to `images` (empty at first).
//   kDataLoss: not a whole number of records (with the byte where the last
//              begins), or a label above 9 (with its byte). `images` is then
//              unchanged.
absl::Status ParseCifar10(absl::Span<const std::uint8_t> bytes,
                          absl::string_view name, ByteImages& images);

// Whether `folder` has a file of `part`.
bool HasCifar10(base::FileSystem& files, const std::string& folder,
                Cifar10Part part);

// Reads all files of `part`.
//   kNotFound:        names the file looked for.
//   kInvalidArgument: `folder` has the python version, or CIFAR-100.
absl::StatusOr<ByteImages> ReadCifar10(base::FileSystem& files,
                                       const std::string& folder,
                                       Cifar10Part part);

}  // namespace troupe::data

#endif  // DATA_CIFAR10_H_
