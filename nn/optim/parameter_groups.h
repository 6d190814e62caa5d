// Parameters with options of their own, such as no weight decay for biases.
//
//   SgdOptions options;
//   options.common.groups = {{"*.bias", /*lr_factor=*/2, /*weight_decay=*/0},
//                            {"0.*", /*lr_factor=*/0.1}};
//   options.common.groups = {NoDecayGroup()};   // biases and norms
//
// A parameter belongs to the first group that matches its full name
// ("features.0.weight"), or to none. In a pattern `*` matches any run of
// characters and `?` any one; if `matches` is set, it decides instead.
//
// GroupRanges holds the elements of an arena by group and by first update, so
// that an update of a range becomes a few updates of parts of it.

#ifndef NN_OPTIM_PARAMETER_GROUPS_H_
#define NN_OPTIM_PARAMETER_GROUPS_H_

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/parameter.h"

namespace troupe::nn {

struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;  // multiplies the optimizer's rate
  std::optional<double> weight_decay =
      std::nullopt;  // instead of the optimizer's
  std::function<bool(const Parameter&)> matches = nullptr;

  bool Has(const Parameter& parameter) const;
  // kInvalidArgument: a value below 0 or not finite, or nothing to match by.
  absl::Status Validate() const;
};

// Returns a group without weight decay for parameters of fewer than two axes:
// biases, and weights of norms.
ParameterGroup NoDecayGroup();

class GroupRanges {
 public:
  static constexpr int kNoGroup = -1;
  struct Part {
    ArenaRange range;
    int group = kNoGroup;
    // The run's update that is the first one of its parameters
    // (Optimizer::SetFirstUpdates).
    double first_update = 0;
    // The parameter, if parts are kParameters; otherwise the first one.
    const ArenaSlot* slot = nullptr;
  };
  // Extent of a part: neighbours of one group and first update, with the
  // padding between them and behind them; or one parameter, without padding.
  enum class Parts { kNeighbours, kParameters };

  GroupRanges() = default;
  // `first_updates`: one for each slot; empty: all are 0.
  GroupRanges(const ParameterArena& arena,
              absl::Span<const ParameterGroup> groups, Parts parts,
              absl::Span<const double> first_updates = {});

  // All parts, in ascending order; kNeighbours parts cover all buckets.
  const std::vector<Part>& parts() const { return parts_; }

  // Calls fn(part) for the elements of each part that are in `range`, in order,
  // until one call fails; returns its status.
  template <typename Fn>
  absl::Status ForEach(const ArenaRange& range, Fn fn) const {
    for (const Part& part : parts_) {
      const ArenaRange common = {std::max(part.range.begin, range.begin),
                                 std::min(part.range.end, range.end)};
      if (common.begin >= common.end) continue;
      Part clipped = part;
      clipped.range = common;
      const absl::Status status = fn(clipped);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Part> parts_;
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_PARAMETER_GROUPS_H_
