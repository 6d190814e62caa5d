#include "data/mnist.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/check.h"

namespace troupe::data {
namespace {

constexpr char kImages[] = "images";
constexpr char kLabels[] = "labels";

// Folders below the one that is given, where torchvision unpacks its data sets.
constexpr const char* kFoldersBelow[] = {"raw", "MNIST/raw", "FashionMNIST/raw",
                                         "KMNIST/raw"};

// Returns the names that a file of `part` may have. The second has a dot where
// an archive's program changed the name.
std::vector<std::string> NamesOf(MnistPart part, absl::string_view what) {
  const absl::string_view prefix = part == MnistPart::kTrain ? "train" : "t10k";
  const absl::string_view axes = what == kImages ? "idx3" : "idx1";
  std::vector<std::string> names;
  for (const absl::string_view separator : {"-", "."}) {
    const std::string name =
        absl::StrCat(prefix, "-", what, separator, axes, "-ubyte");
    names.push_back(name);
    names.push_back(name + ".gz");
  }
  return names;
}

// Returns the path of a file in `folder`; empty: none of its names exists.
std::string PathIn(base::FileSystem& files, const std::string& folder,
                   MnistPart part, absl::string_view what) {
  for (const std::string& name : NamesOf(part, what)) {
    const std::string path = base::JoinPath(folder, name);
    // Kaggle's archive has each file in a folder of the same name.
    const std::string inside = base::JoinPath(path, name);
    if (files.Exists(inside)) return inside;
    if (files.Exists(path)) return path;
  }
  return "";
}

bool HasImages(base::FileSystem& files, const std::string& folder) {
  return !PathIn(files, folder, MnistPart::kTrain, kImages).empty() ||
         !PathIn(files, folder, MnistPart::kTest, kImages).empty();
}

// Returns the folders with the files: `folder` itself, or those below it.
std::vector<std::string> FoldersOf(base::FileSystem& files,
                                   const std::string& folder) {
  if (HasImages(files, folder)) return {folder};
  std::vector<std::string> found;
  for (const char* name : kFoldersBelow) {
    const std::string below = base::JoinPath(folder, name);
    if (HasImages(files, below)) found.push_back(below);
  }
  return found;
}

// Returns the path of a file of `part`.
absl::StatusOr<std::string> PathOf(base::FileSystem& files,
                                   const std::string& folder, MnistPart part,
                                   absl::string_view what) {
  const std::vector<std::string> folders = FoldersOf(files, folder);
  if (folders.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has the files of ", folders.size(),
                     " data sets; give one of ", absl::StrJoin(folders, ", ")));
  }
  if (folders.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no ", base::JoinPath(folder, NamesOf(part, what).front()),
                     ", plain or with .gz, here or in ", kFoldersBelow[1],
                     "; give the folder of MNIST's IDX files"));
  }
  const std::string path = PathIn(files, folders.front(), part, what);
  if (!path.empty()) return path;
  return absl::NotFoundError(absl::StrCat(
      "no ", base::JoinPath(folders.front(), NamesOf(part, what).front()),
      ", plain or with .gz, beside the other files; put it there"));
}

}  // namespace

absl::StatusOr<ByteImages> JoinMnist(const IdxFile& images,
                                     const IdxFile& labels) {
  const nn::Shape& shape = images.array.shape;
  if (shape.rank() != 3 || labels.array.shape.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        images.path, " and ", labels.path,
        ": images have three axes and labels one, not ", shape.ToString(),
        " and ", labels.array.shape.ToString(), "; give MNIST's files"));
  }
  if (shape[1] < 1 || shape[2] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.path, ": images ", shape.ToString(),
                     " have no pixels; give MNIST's files"));
  }
  if (shape[0] != labels.array.shape[0]) {
    return absl::DataLossError(absl::StrCat(
        images.path, " has ", shape[0], " images, ", labels.path, " has ",
        labels.array.shape[0], " labels; give both files of one data set"));
  }
  for (std::size_t i = 0; i < labels.array.values.size(); ++i) {
    if (labels.array.values[i] >= kMnistClasses) {
      const std::size_t header = labels.bytes.size() - shape[0];
      return absl::DataLossError(absl::StrCat(
          labels.path, ": label ", labels.array.values[i], " at byte ",
          header + i, " is not a digit; give labels of 10 classes, 0 to 9"));
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
  for (const std::string& where : FoldersOf(files, folder)) {
    if (!PathIn(files, where, part, kImages).empty()) return true;
  }
  return false;
}

std::string FindMnist(base::FileSystem& files, const std::string& folder) {
  const std::vector<std::string> found = FoldersOf(files, folder);
  return found.size() == 1 ? found.front() : folder;
}

absl::StatusOr<ByteImages> ReadMnist(base::FileSystem& files,
                                     const std::string& folder,
                                     MnistPart part) {
  TROUPE_ASSIGN_OR_RETURN(const std::string of_images,
                          PathOf(files, folder, part, kImages));
  TROUPE_ASSIGN_OR_RETURN(const std::string of_labels,
                          PathOf(files, folder, part, kLabels));
  TROUPE_ASSIGN_OR_RETURN(const IdxFile images, ReadIdx(files, of_images));
  TROUPE_ASSIGN_OR_RETURN(const IdxFile labels, ReadIdx(files, of_labels));
  return JoinMnist(images, labels);
}

}  // namespace troupe::data
