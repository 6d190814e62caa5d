// How a parameter is cut into pieces, one for each rank along an axis of the
// mesh: tensor parallelism (Shoeybi et al. 2019, "Megatron-LM",
// arXiv:1909.08053, sec. 3).
//
//   Parameter& w = Declare("weight", {3 * width, width}, init);
//   w.sharding = SplitAlong(/*dim=*/0, /*sections=*/{width, width, width});
//   // Module::Localise() calls:
//   status = LocaliseParameter(w, places);    // shape {3 * width / tp, width}
//   for (const ShardRange& r : RangesOf(w)) {
//     std::copy_n(whole + r.global, r.count, piece + r.local);
//   }
//
// A module declares whole shapes and what may be cut, which has no effect until
// LocaliseModel() (nn/modules/localise.h) tells it the rank's place in the
// mesh. A parameter that is not cut is a copy: every rank along the axis has it
// whole, with the whole gradient; or with a part of it, if ranks share tokens
// and the layer works on a rank's own:
//
//   LocaliseForTokens(norm_weight, places);   // in Localise(), too
//
// A table of tokens has any number of rows: pieces of RowsOfVocabulary() are
// padded to equal extents. The last ones have elements that are none of the
// whole's, stay 0 and are in no file.

#ifndef NN_AUTOGRAD_SHARDING_H_
#define NN_AUTOGRAD_SHARDING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/kernels/linear.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct Parameter;

// Place of a rank along one axis of the mesh: coordinate and number of ranks.
struct AxisPlace {
  std::string axis;  // "tp"
  int coord = 0;
  int size = 1;
  // Whether its ranks share the tokens of each sequence between the layers that
  // they share, too (sequence parallelism, nn/ops/tokens.h).
  bool sequence = false;
  // Number of blocks in which a sum over what the ranks share is computed, each
  // by itself (DepthBlocks); a power of two that `size` divides. 1: a rank adds
  // up its part as one. The same for a rank alone, which then has the bits of
  // several.
  int blocks = 1;
};

// Returns the place along `axis`; {axis, 0, 1} if `places` has none.
AxisPlace PlaceAlong(absl::Span<const AxisPlace> places,
                     absl::string_view axis);
// Returns the same if ranks share tokens along `axis`; otherwise {axis, 0, 1}.
AxisPlace TokensAlong(absl::Span<const AxisPlace> places,
                      absl::string_view axis);

struct Sharding {
  enum class Kind { kCopy, kSplit };
  Kind kind = Kind::kCopy;
  std::string axis = "tp";  // axis of the mesh
  int dim = 0;              // kSplit: axis of the parameter that is cut
  // Extents along `dim` that are cut each by itself, such as those of queries,
  // keys and values in one weight: a rank has a part of each. Their sum is the
  // extent; empty: one section.
  std::vector<std::int64_t> sections;
  // Whether a section need not be a multiple of the number of ranks: pieces are
  // rounded up, and the last ones have fewer elements of the whole, or none.
  bool pads = false;
  // kCopy: whether ranks have parts of its gradient, those of their tokens,
  // which have to be added up along `axis` (LocaliseForTokens()).
  bool partial_grad = false;
  // Number of modules that have declared the piece, or the parts, as theirs:
  // those that share the parameter must do so all.
  int holders = 0;
  // Number of this rank's piece, and of pieces: 0 of 1 until the parameter is
  // localised.
  int coord = 0;
  int size = 1;
  // AxisPlace::blocks of the place that the parameter was localised for.
  int blocks = 1;

  // Whether the parameter is one of several pieces.
  bool is_split() const { return size > 1; }
};

inline Sharding SplitAlong(int dim, std::vector<std::int64_t> sections = {}) {
  Sharding sharding;
  sharding.kind = Sharding::Kind::kSplit;
  sharding.dim = dim;
  sharding.sections = std::move(sections);
  return sharding;
}

// Cut of a table with a row for each token: along its rows, in padded pieces.
inline Sharding RowsOfVocabulary() {
  Sharding sharding = SplitAlong(/*dim=*/0);
  sharding.pads = true;
  return sharding;
}

// `count` elements that follow each other both in the whole parameter, from
// `global` on, and in the piece, from `local` on.
struct ShardRange {
  std::int64_t global = 0;
  std::int64_t local = 0;
  std::int64_t count = 0;
};

// Returns the elements of this rank's piece, in the order of both; a single
// range for a parameter that is not cut. Padding is in none of them.
std::vector<ShardRange> RangesOf(const Parameter& parameter);
// The same for the piece of the rank at `places`. The parameter may be
// localised at another coordinate, or not at all.
std::vector<ShardRange> RangesOf(const Parameter& parameter,
                                 absl::Span<const AxisPlace> places);

// The blocks of a rank's part of a sum, as terms of it: one range for each
// section. Ranks add up each block, then the blocks by a binary tree, then
// their parts by the tree of an all-reduce; so the bits of the sum are those of
// one tree over all blocks, however many ranks there are.
using DepthBlocks = std::vector<std::vector<TermRange>>;

// Returns the blocks of a sum along the dimension in which the parameter is
// cut, such as the columns of a row layer's weight; of sections [begin, end)
// alone if given, from whose first term on ranges count. Null: the parameter
// was localised for one block.
std::shared_ptr<const DepthBlocks> DepthBlocksOf(
    const Parameter& parameter, std::size_t begin = 0,
    std::size_t end = std::numeric_limits<std::size_t>::max());

// Returns the shape of the whole parameter.
const Shape& WholeShape(const Parameter& parameter);

// Copies this rank's piece out of the whole tensor; both are of one dtype, in
// host memory.
void CopyPiece(const Parameter& parameter, const Tensor& whole,
               const Tensor& piece);

// Makes a parameter of Kind::kSplit the piece of the rank at `places`: sets its
// shape, and coord and size of its sharding. Does nothing to a copy, and if the
// axis has one rank, apart from setting the blocks of its sharding. A tied
// parameter becomes a piece together with the one that is used in its place;
// each module that shares it calls this once.
//   kInvalidArgument: a section is no multiple of the number of ranks, or of
//     blocks, and not padded, or the sections do not add up to the extent, or
//     the parameter is tied to one that is cut otherwise.
//   kFailedPrecondition: the parameter has memory.
absl::Status LocaliseParameter(Parameter& parameter,
                               absl::Span<const AxisPlace> places);

// Marks the gradients of a copy, or of the one that is used in its place, as
// parts: its layer uses it for a rank's own tokens. Does nothing unless ranks
// share tokens. Each module that shares it calls this once.
void LocaliseForTokens(Parameter& parameter,
                       absl::Span<const AxisPlace> places);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_SHARDING_H_
