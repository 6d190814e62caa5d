// Allocates an image whose size a header declares, for all decoders.
//
//   TROUPE_ASSIGN_OR_RETURN(Image image, MakeImage(480, 640, "cat.jpg"));
//   image.pixels.size();                     // 480 * 640 * 3
//   FillImage({255, 0, 0}, image);           // red
//
// height and width have at most 32 bits each. Errors: see DecodeImage().

#ifndef DATA_IMAGES_IMAGE_MEMORY_H_
#define DATA_IMAGES_IMAGE_MEMORY_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/images/decode.h"

namespace troupe::data {

// Returns the error of MakeImage() without allocating anything.
absl::Status CheckImageSize(std::int64_t height, std::int64_t width,
                            absl::string_view name);

// Returns a black image.
absl::StatusOr<Image> MakeImage(std::int64_t height, std::int64_t width,
                                absl::string_view name);

// Gives all pixels of a black image one colour.
void FillImage(const std::array<std::uint8_t, kImageChannels>& colour,
               Image& image);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_MEMORY_H_
