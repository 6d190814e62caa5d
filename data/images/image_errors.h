// Errors of the image decoders, in the same words for every format.
//
//   return DamagedImage("cat.gif", "GIF", "it ends inside its first frame");
//   return UnreadKind("scan.tif", "TIFF", "samples of 32 bits");
//   return NoImageMemory("cat.png", "libspng");
//
// All name the file and say what to do. Errors: see DecodeImage().

#ifndef DATA_IMAGES_IMAGE_ERRORS_H_
#define DATA_IMAGES_IMAGE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe::data {

// Returns kDataLoss: `cause` is wrong in a file of this format.
absl::Status DamagedImage(absl::string_view name, absl::string_view format,
                          absl::string_view cause);

// Returns kUnimplemented: a file of this format that may be undamaged, of a
// kind that is not decoded.
absl::Status UnreadKind(absl::string_view name, absl::string_view format,
                        absl::string_view kind);

// Returns kResourceExhausted: `library` could not allocate memory.
absl::Status NoImageMemory(absl::string_view name, absl::string_view library);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_ERRORS_H_
