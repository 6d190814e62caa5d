#include "data/images/png.h"

#include <spng.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

constexpr std::uint8_t kSignature[] = {0x89, 'P',  'N',  'G',
                                       '\r', '\n', 0x1a, '\n'};

struct Free {
  void operator()(spng_ctx* png) const { spng_ctx_free(png); }
};

// Length, type and checksum of a chunk, around its content.
constexpr std::size_t kChunkFrameBytes = 12;

absl::Status Damaged(int error, absl::string_view name) {
  return DamagedImage(name, "PNG", spng_strerror(error));
}

// Returns whether a chunk of this type has no pixels: a lower-case first letter
// says that decoders may pass over it (PNG specification, 5.4).
bool IsAncillary(std::uint8_t first_letter) {
  return first_letter >= 'a' && first_letter <= 'z';
}

// Returns the file without its ancillary chunks (texts, EXIF, profiles), of
// which neither sizes nor damage matter. Broken frames are kept, so that the
// decoder finds them.
std::vector<std::uint8_t> CriticalChunks(absl::Span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> kept;
  kept.reserve(bytes.size());
  std::size_t at = std::size(kSignature);
  kept.assign(bytes.begin(), bytes.begin() + at);
  while (at < bytes.size()) {
    const std::size_t rest = bytes.size() - at;
    std::size_t size = rest;
    if (rest >= kChunkFrameBytes) {
      const std::uint8_t* b = bytes.data() + at;
      const std::size_t length = std::size_t{b[0]} << 24 |
                                 std::size_t{b[1]} << 16 |
                                 std::size_t{b[2]} << 8 | b[3];
      size = std::min(rest, length + kChunkFrameBytes);
    }
    const bool has_pixels =
        rest < kChunkFrameBytes || !IsAncillary(bytes[at + 4]);
    if (has_pixels) {
      kept.insert(kept.end(), bytes.begin() + at, bytes.begin() + at + size);
    }
    at += size;
  }
  return kept;
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
  if (png == nullptr) return NoImageMemory(name, "libspng");
  const std::vector<std::uint8_t> kept = CriticalChunks(bytes);
  int error = spng_set_png_buffer(png.get(), kept.data(), kept.size());
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
