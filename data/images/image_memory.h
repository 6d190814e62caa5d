// Allocates an image whose size a header declares, for all decoders.
//
//   TROUPE_ASSIGN_OR_RETURN(Image image, MakeImage(480, 640, "cat.jpg"));
//   image.pixels.size();                     // 480 * 640 * 3
//
// height and width have at most 32 bits each. Errors: see DecodeImage().

#ifndef DATA_IMAGES_IMAGE_MEMORY_H_
#define DATA_IMAGES_IMAGE_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/images/decode.h"

namespace troupe::data {

absl::StatusOr<Image> MakeImage(std::int64_t height, std::int64_t width,
                                absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_MEMORY_H_
