#include "data/images/png.h"

#include <spng.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

constexpr std::uint8_t kSignature[] = {0x89, 'P',  'N',  'G',
                                       '\r', '\n', 0x1a, '\n'};

struct Free {
  void operator()(spng_ctx* png) const { spng_ctx_free(png); }
};

absl::Status Damaged(int error, absl::string_view name) {
  return absl::DataLossError(
      absl::StrCat(name, ": damaged PNG: ", spng_strerror(error)));
}

}  // namespace

bool IsPng(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= std::size(kSignature) &&
         std::equal(std::begin(kSignature), std::end(kSignature),
                    bytes.begin());
}

absl::StatusOr<Image> DecodePng(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name) {
  const std::unique_ptr<spng_ctx, Free> png(spng_ctx_new(0));
  if (png == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": libspng has no memory to decode it"));
  }
  int error =
      spng_set_chunk_limits(png.get(), kPngChunkBytesMax, kPngChunkBytesMax);
  if (error == 0) {
    error = spng_set_png_buffer(png.get(), bytes.data(), bytes.size());
  }
  spng_ihdr header{};
  if (error == 0) error = spng_get_ihdr(png.get(), &header);
  if (error != 0) return Damaged(error, name);
  TROUPE_ASSIGN_OR_RETURN(Image image,
                          MakeImage(header.height, header.width, name));
  std::size_t size = 0;
  error = spng_decoded_image_size(png.get(), SPNG_FMT_RGB8, &size);
  if (error != 0) return Damaged(error, name);
  TROUPE_CHECK(size == image.pixels.size(), "libspng and we agree on RGB");
  error = spng_decode_image(png.get(), image.pixels.data(), size, SPNG_FMT_RGB8,
                            /*flags=*/0);
  if (error != 0) return Damaged(error, name);
  return image;
}

}  // namespace troupe::data
