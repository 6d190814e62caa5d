// Declares names that the usage comments in data/images/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_DATA_IMAGES_H_
#define TESTS_USAGE_WORDS_DATA_IMAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "data/images/decode.h"
#include "data/images/tiff_file.h"

namespace troupe::data::usage {

extern const std::shared_ptr<base::FileSystem> files;
extern const std::vector<std::uint8_t> bytes;
extern const absl::string_view name;
extern const Image image;
extern const std::uint64_t seed;

namespace crop_h {
extern const std::int64_t epoch, index, height, width;
extern float* const values;
}  // namespace crop_h

namespace decode_h {
extern const std::int64_t x, y;
}

namespace image_names_h {
extern const std::string path;
}

namespace tiff_file_h {
extern void* const row;
}

namespace tiff_samples_h {
extern TiffFile* const file;
}

}  // namespace troupe::data::usage

#endif  // TESTS_USAGE_WORDS_DATA_IMAGES_H_
