#include "data/images/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

using Colour = std::array<std::uint8_t, kImageChannels>;
// Colours by number; as many as a byte can name.
using Palette = std::array<Colour, 256>;

// The bytes that giflib reads.
struct GifSource {
  absl::Span<const std::uint8_t> bytes;
  std::size_t at = 0;
  // Whether the data of the frame end with the file, between two blocks. Then
  // the zero that ends them is missing, which costs no pixel.
  bool lacks_end = false;
};

int ReadSource(GifFileType* gif, GifByteType* to, int count) {
  GifSource& source = *static_cast<GifSource*>(gif->UserData);
  const std::size_t rest = source.bytes.size() - source.at;
  if (rest == 0 && source.lacks_end && count == 1) {
    *to = 0;
    return 1;
  }
  const std::size_t taken = std::min(rest, static_cast<std::size_t>(count));
  std::memcpy(to, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<int>(taken);
}

// Whether blocks of data, each behind its length, end with the file.
bool EndsBetweenBlocks(absl::Span<const std::uint8_t> bytes, std::size_t at) {
  while (at < bytes.size() && bytes[at] != 0) at += std::size_t{bytes[at]} + 1;
  return at == bytes.size();
}

struct CloseGif {
  void operator()(GifFileType* gif) const {
    int error = 0;
    DGifCloseFile(gif, &error);
  }
};
using GifPtr = std::unique_ptr<GifFileType, CloseGif>;

absl::Status GifError(int error, absl::string_view name) {
  if (error == D_GIF_ERR_NOT_ENOUGH_MEM) return NoImageMemory(name, "giflib");
  const char* text = GifErrorString(error);
  return DamagedImage(name, "GIF", text == nullptr ? "unknown" : text);
}

// Reads an extension. Sets `transparent` if it names a transparent colour.
absl::Status ReadExtension(GifFileType& gif, absl::string_view name,
                           int& transparent) {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(&gif, &code, &block) != GIF_OK) {
    return GifError(gif.Error, name);
  }
  constexpr int kControlBytes = 4, kHasTransparent = 1;
  // The first byte of a block is its length.
  if (block != nullptr && code == GRAPHICS_EXT_FUNC_CODE &&
      block[0] >= kControlBytes && (block[1] & kHasTransparent) != 0) {
    transparent = block[4];
  }
  while (block != nullptr) {
    if (DGifGetExtensionNext(&gif, &block) != GIF_OK) {
      return GifError(gif.Error, name);
    }
  }
  return absl::OkStatus();
}

// Reads up to the data of the first frame. Sets `transparent` as above.
absl::Status FindFrame(GifFileType& gif, absl::string_view name,
                       int& transparent) {
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(&gif, &type) != GIF_OK) {
      return GifError(gif.Error, name);
    }
    if (type == EXTENSION_RECORD_TYPE) {
      TROUPE_RETURN_IF_ERROR(ReadExtension(gif, name, transparent));
    } else if (type == IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetImageDesc(&gif) == GIF_OK) return absl::OkStatus();
      return GifError(gif.Error, name);
    } else {
      return DamagedImage(name, "GIF", "it has no frame");
    }
  }
}

// Returns the colours of the frame: its own, those of the file, or grey ones.
Palette PaletteOf(const GifFileType& gif) {
  Palette palette{};
  const ColorMapObject* map =
      gif.Image.ColorMap != nullptr ? gif.Image.ColorMap : gif.SColorMap;
  if (map == nullptr) {
    for (std::size_t i = 0; i < palette.size(); ++i) {
      palette[i].fill(static_cast<std::uint8_t>(i));
    }
    return palette;
  }
  const std::size_t count =
      std::min(palette.size(), static_cast<std::size_t>(map->ColorCount));
  for (std::size_t i = 0; i < count; ++i) {
    const GifColorType& colour = map->Colors[i];
    palette[i] = {colour.Red, colour.Green, colour.Blue};
  }
  return palette;
}

// Returns the rows of a frame in the order of the file: interlaced ones come in
// four passes (GIF89a, appendix E).
std::vector<int> RowOrder(int rows, bool is_interlaced) {
  struct Pass {
    int first, step;
  };
  constexpr Pass kWhole[] = {{0, 1}};
  constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(rows));
  for (const Pass& pass : is_interlaced ? absl::MakeConstSpan(kInterlaced)
                                        : absl::MakeConstSpan(kWhole)) {
    for (int row = pass.first; row < rows; row += pass.step) {
      order.push_back(row);
    }
  }
  return order;
}

// Decodes the frame to its place in `image`.
absl::Status DecodeGifFrame(GifFileType& gif, const Palette& palette,
                            absl::string_view name, Image& image) {
  const GifImageDesc& frame = gif.Image;
  std::vector<GifPixelType> numbers(static_cast<std::size_t>(frame.Width));
  for (const int row : RowOrder(frame.Height, frame.Interlace)) {
    if (DGifGetLine(&gif, numbers.data(), frame.Width) != GIF_OK) {
      return GifError(gif.Error, name);
    }
    std::uint8_t* to =
        image.pixels.data() +
        ((frame.Top + row) * image.width + frame.Left) * kImageChannels;
    for (const GifPixelType number : numbers) {
      to = std::copy(palette[number].begin(), palette[number].end(), to);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsGif(absl::Span<const std::uint8_t> bytes) {
  const absl::string_view head(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 6));
  return head == GIF87_STAMP || head == GIF89_STAMP;
}

absl::StatusOr<Image> DecodeGif(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name) {
  GifSource source{bytes};
  int error = 0;
  const GifPtr gif(DGifOpen(&source, ReadSource, &error));
  if (gif == nullptr) return GifError(error, name);
  int transparent = 0;  // the first colour if the file names none
  TROUPE_RETURN_IF_ERROR(FindFrame(*gif, name, transparent));
  const GifImageDesc& frame = gif->Image;
  if (frame.Width < 1 || frame.Height < 1) {
    return DamagedImage(name, "GIF", "its first frame has no pixels");
  }
  // A frame that does not fit makes the canvas larger.
  TROUPE_ASSIGN_OR_RETURN(
      Image image,
      MakeImage(std::max(gif->SHeight, frame.Top + frame.Height),
                std::max(gif->SWidth, frame.Left + frame.Width), name));
  source.lacks_end = EndsBetweenBlocks(bytes, source.at);
  const Palette palette = PaletteOf(*gif);
  FillImage(palette[static_cast<std::size_t>(transparent)], image);
  TROUPE_RETURN_IF_ERROR(DecodeGifFrame(*gif, palette, name, image));
  return image;
}

}  // namespace troupe::data
