#include "pipeline/mesh.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::pipeline {
namespace {

constexpr absl::string_view kFixedAxes[] = {"tp", "dp", "pp"};

// Number of an axis that every mesh has, or -1.
int FixedNumber(absl::string_view name) {
  for (int i = 0; i < static_cast<int>(std::size(kFixedAxes)); ++i) {
    if (kFixedAxes[i] == name) return i;
  }
  return -1;
}

absl::Status CheckName(absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
  };
  if (!name.empty() && name.size() <= kAxisNameMax && name != "world" &&
      absl::ascii_islower(name[0]) &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "mesh: \"", absl::CHexEscape(name.substr(0, 2 * kAxisNameMax)),
      "\" is no name of an axis; write up to ", kAxisNameMax,
      " lower-case letters, digits and _, such as \"dp\", and not \"world\""));
}

// "dp and pp", "tp, dp and pp"
std::string NamesOf(const std::vector<Axis>& axes) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const char* before = i == 0 ? "" : i + 1 == axes.size() ? " and " : ", ";
    absl::StrAppend(&text, before, axes[i].name);
  }
  return text;
}

}  // namespace

Mesh::Mesh(int dp, int pp, int tp)
    : Mesh(tp == 1 ? std::vector<Axis>{{"dp", dp}, {"pp", pp}}
                   : std::vector<Axis>{{"tp", tp}, {"dp", dp}, {"pp", pp}}) {}

Mesh::Mesh(std::vector<Axis> axes)
    : axes_(std::move(axes)), strides_(std::size(kFixedAxes)) {
  std::int64_t stride = 1;
  for (const Axis& axis : axes_) {
    // Sizes that Check rejects count as 1, to avoid divisions by 0.
    const std::int64_t size = std::max(1, axis.size);
    const Stride here = {static_cast<int>(size), static_cast<int>(stride)};
    const int number = FixedNumber(axis.name);
    if (number >= 0) {
      strides_[number] = here;
    } else {
      strides_.push_back(here);
    }
    stride = std::min(stride * size, kMeshRanksMax);
  }
  size_ = static_cast<int>(stride);
}

absl::StatusOr<Mesh> Mesh::Create(std::vector<Axis> axes) {
  Mesh mesh(std::move(axes));
  TROUPE_RETURN_IF_ERROR(mesh.Check());
  return mesh;
}

absl::Status Mesh::Check() const {
  if (axes_.size() > kMeshAxesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mesh: ", axes_.size(), " axes; must be at most ", kMeshAxesMax));
  }
  std::set<absl::string_view> names;
  std::int64_t ranks = 1;
  for (const Axis& axis : axes_) {
    TROUPE_RETURN_IF_ERROR(CheckName(axis.name));
    if (!names.insert(axis.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mesh: axis ", axis.name, " is there twice; name each once"));
    }
    if (axis.size < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mesh: ", NamesOf(axes_), " must be at least 1, got ", ToString()));
    }
    ranks *= axis.size;
    if (ranks > kMeshRanksMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh: ", ToString(), " has more than ", kMeshRanksMax,
                       " ranks; make it smaller"));
    }
  }
  return absl::OkStatus();
}

int Mesh::AxisNumber(absl::string_view axis) const {
  const int fixed = FixedNumber(axis);
  if (fixed >= 0) return fixed;
  int number = std::size(kFixedAxes);
  for (const Axis& listed : axes_) {
    if (listed.name == axis) return number;
    number += FixedNumber(listed.name) < 0;
  }
  return -1;
}

int Mesh::SizeOf(absl::string_view axis) const {
  const int number = AxisNumber(axis);
  return number < 0 ? 1 : SizeOf(number);
}

int Mesh::CoordOf(int rank, absl::string_view axis) const {
  const int number = AxisNumber(axis);
  return number < 0 ? 0 : CoordOf(rank, number);
}

Mesh::Coords Mesh::CoordsOf(int rank) const {
  return {CoordOf(rank, kDpAxis), CoordOf(rank, kPpAxis),
          CoordOf(rank, kTpAxis)};
}

int Mesh::RankAt(const std::vector<int>& coords) const {
  TROUPE_CHECK(coords.size() == axes_.size(), "one coordinate for each axis");
  int rank = 0, stride = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    rank += coords[i] * stride;
    stride *= axes_[i].size;
  }
  return rank;
}

int Mesh::RankOf(const Coords& coords) const {
  return coords.tp * strides_[kTpAxis].stride +
         coords.dp * strides_[kDpAxis].stride +
         coords.pp * strides_[kPpAxis].stride;
}

std::vector<int> Mesh::Group(int rank, int axis) const {
  std::vector<int> group(SizeOf(axis));
  for (int coord = 0; coord < SizeOf(axis); ++coord) {
    group[coord] = RankWith(rank, axis, coord);
  }
  return group;
}

std::vector<int> Mesh::Group(int rank, absl::string_view axis) const {
  const int number = AxisNumber(axis);
  return number < 0 ? std::vector<int>{rank} : Group(rank, number);
}

std::vector<int> Mesh::Group(int rank, GroupId group) const {
  const bool of_axes = group == GroupId::kDpPp || group == GroupId::kTpDpPp ||
                       group == GroupId::kTpDp;
  if (!of_axes) return Group(rank, AxisOf(group));
  const int first = AtFirstOf(rank, group);
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other) {
    if (AtFirstOf(other, group) == first) ranks.push_back(other);
  }
  return ranks;
}

int Mesh::AtFirstOf(int rank, GroupId group) const {
  int first = RankWith(rank, kDpAxis, 0);
  if (group != GroupId::kTpDp) first = RankWith(first, kPpAxis, 0);
  return group == GroupId::kDpPp ? first : RankWith(first, kTpAxis, 0);
}

bool Mesh::IsFirstCopy(int rank) const {
  return AtFirstOf(rank, GroupId::kDpPp) == 0;
}

std::string Mesh::ToString() const {
  std::vector<std::string> words;
  for (const Axis& axis : axes_) {
    if (axis.name == "tp" && axis.size == 1) continue;
    words.push_back(absl::StrCat(axis.name, "=", axis.size));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace troupe::pipeline
