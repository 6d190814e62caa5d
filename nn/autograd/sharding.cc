#include "nn/autograd/sharding.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/autograd/parameter.h"

namespace troupe::nn {
namespace {

std::vector<std::int64_t> SectionsOf(const Parameter& parameter) {
  const Sharding& sharding = parameter.sharding;
  if (!sharding.sections.empty()) return sharding.sections;
  return {WholeShape(parameter)[sharding.dim]};
}

// Returns the extent of each rank's piece of a section: blocks, or the piece if
// there is one, are rounded up if the section is no multiple of their number.
std::int64_t PieceOf(std::int64_t section, int size, int blocks) {
  const int parts = std::max(size, blocks);
  return (section + parts - 1) / parts * (parts / size);
}

std::vector<ShardRange> RangesAt(const Parameter& parameter, int coord,
                                 int size, int blocks) {
  const Shape& shape = WholeShape(parameter);
  if (size <= 1) return {{0, 0, shape.numel()}};
  const int dim = parameter.sharding.dim;
  std::int64_t outer = 1, inner = 1;
  for (int axis = 0; axis < dim; ++axis) outer *= shape[axis];
  for (int axis = dim + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
  const std::vector<std::int64_t> sections = SectionsOf(parameter);
  std::vector<ShardRange> ranges;
  std::int64_t global = 0, local = 0;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const std::int64_t section : sections) {
      const std::int64_t piece = PieceOf(section, size, blocks);
      const std::int64_t begin = std::min(section, coord * piece);
      const std::int64_t end = std::min(section, begin + piece);
      if (begin < end) {
        ranges.push_back(
            {global + begin * inner, local, (end - begin) * inner});
      }
      global += section * inner;
      local += piece * inner;
    }
  }
  return ranges;
}

absl::Status CheckSections(const Parameter& parameter, const AxisPlace& place) {
  const int size = std::max(place.size, place.blocks);
  const std::string number =
      size > place.size ? "depth_blocks" : parameter.sharding.axis;
  const Sharding& sharding = parameter.sharding;
  const Shape& shape = WholeShape(parameter);
  const std::string what =
      absl::StrCat("parameter ", parameter.name, shape.ToString());
  if (sharding.dim < 0 || sharding.dim >= shape.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is cut along dimension ", sharding.dim,
        ", which it does not have; its layer must name one of its own"));
  }
  const std::vector<std::int64_t> sections = SectionsOf(parameter);
  const std::int64_t extent = shape[sharding.dim];
  if (std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) !=
      extent) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is cut along dimension ", sharding.dim,
                     " in sections that do not add up to ", extent,
                     "; give those of all outputs or inputs of its layer"));
  }
  for (const std::int64_t section : sections) {
    if (sharding.pads || section % size == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, " cannot be cut along dimension ", sharding.dim, " for ", number,
        " = ", size, ": ", section, " is no multiple of ", size,
        "; choose a width that is one, or a ", number, " that divides ",
        section));
  }
  return absl::OkStatus();
}

bool IsCutAlike(const Sharding& a, const Sharding& b) {
  return a.kind == b.kind && a.axis == b.axis && a.dim == b.dim &&
         a.sections == b.sections && a.pads == b.pads;
}

// Makes a tied parameter a piece, with the one that is used in its place.
absl::Status LocaliseTied(Parameter& parameter,
                          absl::Span<const AxisPlace> places) {
  Parameter& used = *parameter.tied_to;
  if (!IsCutAlike(parameter.sharding, used.sharding)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", parameter.name, " is tied to ", used.name,
                     " and cannot be cut along ", parameter.sharding.axis,
                     " otherwise; cut both alike, leave them whole, or do not "
                     "tie them"));
  }
  TROUPE_RETURN_IF_ERROR(LocaliseParameter(used, places));
  parameter.shape = used.shape;
  parameter.global_shape = used.global_shape;
  parameter.sharding = used.sharding;
  return absl::OkStatus();
}

}  // namespace

AxisPlace PlaceAlong(absl::Span<const AxisPlace> places,
                     absl::string_view axis) {
  for (const AxisPlace& place : places) {
    if (place.axis == axis) return place;
  }
  return {std::string(axis), 0, 1};
}

AxisPlace TokensAlong(absl::Span<const AxisPlace> places,
                      absl::string_view axis) {
  const AxisPlace place = PlaceAlong(places, axis);
  return place.sequence ? place : AxisPlace{std::string(axis), 0, 1};
}

// A parameter that was made by hand may have no global shape: unless it is a
// piece, both are the same.
const Shape& WholeShape(const Parameter& parameter) {
  return parameter.sharding.is_split() ? parameter.global_shape
                                       : parameter.shape;
}

void CopyPiece(const Parameter& parameter, const Tensor& whole,
               const Tensor& piece) {
  const auto elem_bytes = static_cast<std::int64_t>(SizeOf(whole.dtype()));
  const char* const from = static_cast<const char*>(whole.raw());
  char* const to = static_cast<char*>(piece.raw());
  for (const ShardRange& range : RangesOf(parameter)) {
    std::memcpy(to + range.local * elem_bytes, from + range.global * elem_bytes,
                range.count * elem_bytes);
  }
}

std::vector<ShardRange> RangesOf(const Parameter& parameter) {
  const Sharding& sharding = parameter.sharding;
  return RangesAt(parameter, sharding.coord, sharding.size, sharding.blocks);
}

std::vector<ShardRange> RangesOf(const Parameter& parameter,
                                 absl::Span<const AxisPlace> places) {
  if (parameter.sharding.kind == Sharding::Kind::kCopy) {
    return RangesAt(parameter, 0, 1, /*blocks=*/1);
  }
  const AxisPlace place = PlaceAlong(places, parameter.sharding.axis);
  return RangesAt(parameter, place.coord, place.size,
                  std::max(place.blocks, parameter.sharding.blocks));
}

std::shared_ptr<const DepthBlocks> DepthBlocksOf(const Parameter& parameter,
                                                 std::size_t begin,
                                                 std::size_t end) {
  const Sharding& sharding = parameter.sharding;
  if (sharding.blocks == 1) return nullptr;
  const int count = sharding.blocks / sharding.size;
  const std::vector<std::int64_t> sections = SectionsOf(parameter);
  auto blocks = std::make_shared<DepthBlocks>(count);
  std::int64_t first = 0;
  for (std::size_t i = begin; i < std::min(end, sections.size()); ++i) {
    // A rank alone has no padding behind the last rows of a vocabulary.
    const std::int64_t extent =
        sharding.is_split()
            ? PieceOf(sections[i], sharding.size, sharding.blocks)
            : sections[i];
    const std::int64_t most = (extent + count - 1) / count;
    for (int block = 0; block < count; ++block) {
      const std::int64_t from = std::min(extent, block * most);
      const std::int64_t to = std::min(extent, from + most);
      (*blocks)[block].push_back({first + from, first + to});
    }
    first += extent;
  }
  return blocks;
}

absl::Status LocaliseParameter(Parameter& parameter,
                               absl::Span<const AxisPlace> places) {
  Sharding& sharding = parameter.sharding;
  if (sharding.kind == Sharding::Kind::kCopy) return absl::OkStatus();
  const AxisPlace place = PlaceAlong(places, sharding.axis);
  if (place.size <= 1 && place.blocks <= 1) return absl::OkStatus();
  if (parameter.tied_to != nullptr) return LocaliseTied(parameter, places);
  if (sharding.is_split()) {  // a module that shares it has come first
    ++sharding.holders;
    return absl::OkStatus();
  }
  if (parameter.value.defined() && !parameter.value.is_meta()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "parameter ", parameter.name,
        " has memory already; call LocaliseModel() before an arena binds it"));
  }
  TROUPE_RETURN_IF_ERROR(CheckSections(parameter, place));
  sharding.blocks = place.blocks;
  if (place.size <= 1) return absl::OkStatus();
  const int dim = sharding.dim;
  std::int64_t extent = 0;
  for (const std::int64_t section : SectionsOf(parameter)) {
    extent += PieceOf(section, place.size, place.blocks);
  }
  parameter.global_shape = parameter.shape;
  parameter.shape.set(dim, extent);
  parameter.value = Tensor::Meta(parameter.shape, parameter.dtype, Device{});
  sharding.coord = place.coord;
  sharding.size = place.size;
  sharding.holders = 1;
  return absl::OkStatus();
}

void LocaliseForTokens(Parameter& parameter,
                       absl::Span<const AxisPlace> places) {
  const AxisPlace place = TokensAlong(places, parameter.sharding.axis);
  if (place.size <= 1) return;
  Parameter& used =
      parameter.tied_to != nullptr ? *parameter.tied_to : parameter;
  used.sharding.partial_grad = true;
  ++used.sharding.holders;
}

}  // namespace troupe::nn
