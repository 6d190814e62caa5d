// MNIST, and data sets with the same layout (Fashion-MNIST, KMNIST): two IDX
// files.
//
//   TROUPE_ASSIGN_OR_RETURN(ByteImages all,
//                           ReadMnist(files, "data/mnist", MnistPart::kTest));
//   TROUPE_ASSIGN_OR_RETURN(ByteImages train, TakeImages(all, 0, 8000));
//   MakeImageDataset(std::move(train),
//                    {ToFloat(), Normalize({kMnistMean}, {kMnistStddev})});
//
// Images are [28, 28, 1], classes 0..9. Files are named as at their source,
// "train-images-idx3-ubyte" and so on, plain or with ".gz" at the end, or with
// a dot before "idx3". They lie in the folder, or in raw, MNIST/raw,
// FashionMNIST/raw or KMNIST/raw below it, where torchvision writes them.

#ifndef DATA_MNIST_H_
#define DATA_MNIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/idx.h"
#include "data/image_dataset.h"

namespace troupe::data {

constexpr std::int64_t kMnistClasses = 10;
// Mean and deviation of the 60,000 training images, pixels in [0, 1]; the
// usual numbers.
constexpr float kMnistMean = 0.1307f;
constexpr float kMnistStddev = 0.3081f;

enum class MnistPart {
  kTrain,  // train-*: 60,000
  kTest,   // t10k-*: 10,000
};

// Pairs images [N, H, W] with labels [N].
//   kInvalidArgument: wrong number of axes, no pixels.
//   kDataLoss:        another number of labels than images; a label above 9
//                     (with its byte).
absl::StatusOr<ByteImages> JoinMnist(const IdxFile& images,
                                     const IdxFile& labels);

// Whether `folder` has the images of `part`.
bool HasMnist(base::FileSystem& files, const std::string& folder,
              MnistPart part);

// Returns the folder with the files: `folder`, or the one of those below it
// that has them. If there are none, or several, `folder`.
std::string FindMnist(base::FileSystem& files, const std::string& folder);

// Reads both files of `part`.
//   kNotFound:        names the file looked for.
//   kInvalidArgument: the files of several data sets are below `folder`.
absl::StatusOr<ByteImages> ReadMnist(base::FileSystem& files,
                                     const std::string& folder, MnistPart part);

}  // namespace troupe::data

#endif  // DATA_MNIST_H_
