#include "data/mnist.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

constexpr char kImages[] = "images-idx3-ubyte";
constexpr char kLabels[] = "labels-idx1-ubyte";

// Returns the path of a file of `part`: plain if it exists, else with ".gz".
std::string PathOf(base::FileSystem& files, const std::string& folder,
                   MnistPart part, const char* what) {
  const char* prefix = part == MnistPart::kTrain ? "train-" : "t10k-";
  const std::string plain = base::JoinPath(folder, absl::StrCat(prefix, what));
  return files.Exists(plain) ? plain : plain + ".gz";
}

}  // namespace

absl::StatusOr<ByteImages> JoinMnist(const IdxFile& images,
                                     const IdxFile& labels) {
  const nn::Shape& shape = images.array.shape;
  if (shape.rank() != 3 || labels.array.shape.rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.path, " and ", labels.path,
                     ": images have three axes and labels one, not ",
                     shape.ToString(), " and ", labels.array.shape.ToString()));
  }
  if (shape[1] < 1 || shape[2] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        images.path, ": images ", shape.ToString(), " have no pixels"));
  }
  if (shape[0] != labels.array.shape[0]) {
    return absl::DataLossError(absl::StrCat(images.path, " has ", shape[0],
                                            " images, ", labels.path, " has ",
                                            labels.array.shape[0], " labels"));
  }
  for (std::size_t i = 0; i < labels.array.values.size(); ++i) {
    if (labels.array.values[i] >= kMnistClasses) {
      const std::size_t header = labels.bytes.size() - shape[0];
      return absl::DataLossError(
          absl::StrCat(labels.path, ": label ", labels.array.values[i],
                       " at byte ", header + i, " is not a digit"));
    }
  }
  ByteImages joined;
  joined.shape = {shape[1], shape[2], 1};
  joined.num_classes = kMnistClasses;
  joined.pixels.assign(images.array.values.begin(), images.array.values.end());
  joined.labels.assign(labels.array.values.begin(), labels.array.values.end());
  return joined;
}

bool HasMnist(base::FileSystem& files, const std::string& folder,
              MnistPart part) {
  return files.Exists(PathOf(files, folder, part, kImages));
}

absl::StatusOr<ByteImages> ReadMnist(base::FileSystem& files,
                                     const std::string& folder,
                                     MnistPart part) {
  TROUPE_ASSIGN_OR_RETURN(const IdxFile images,
                          ReadIdx(files, PathOf(files, folder, part, kImages)));
  TROUPE_ASSIGN_OR_RETURN(const IdxFile labels,
                          ReadIdx(files, PathOf(files, folder, part, kLabels)));
  return JoinMnist(images, labels);
}

}  // namespace troupe::data
