#include "troupe/internal/join_notice.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

constexpr int kShapeAt = 5;
constexpr int kModelsAt = kShapeAt + nn::Shape::kMaxRank;
constexpr int kNumbersOfModel = 4;

const char* NameOf(JoinCall call) {
  switch (call) {
    case JoinCall::kForward:
      return "a forward";
    case JoinCall::kBackward:
      return "a backward";
    case JoinCall::kEnded:
      break;
  }
  return "the end of its batches";
}

}  // namespace

int JoinNotice::NumbersOf(int models) {
  return kModelsAt + kNumbersOfModel * models;
}

void JoinNotice::Write(std::int64_t* row) const {
  std::fill(row, row + NumbersOf(static_cast<int>(models.size())), 0);
  row[0] = static_cast<std::int64_t>(call);
  for (const int model : of) row[1] |= std::int64_t{1} << model;
  row[2] = static_cast<std::int64_t>(dtype);
  row[3] = shape.rank();
  row[4] = tracked ? 1 : 0;
  std::copy(shape.dims().begin(), shape.dims().end(), row + kShapeAt);
  std::int64_t* next = row + kModelsAt;
  for (const Model& model : models) {
    next[0] = model.steps;
    std::memcpy(&next[1], &model.rate, sizeof(model.rate));
    next[2] = (model.discarded ? 1 : 0) + (model.synced ? 2 : 0) +
              (model.frozen ? 4 : 0);
    next[3] = model.reached;
    next += kNumbersOfModel;
  }
}

JoinNotice JoinNotice::Read(const std::int64_t* row, int models) {
  JoinNotice notice;
  notice.call = static_cast<JoinCall>(row[0]);
  for (int i = 0; i < models; ++i) {
    if ((row[1] >> i) % 2 != 0) notice.of.push_back(i);
  }
  notice.dtype = static_cast<nn::DType>(row[2]);
  notice.shape = nn::Shape(absl::MakeConstSpan(row + kShapeAt, row[3]));
  notice.tracked = row[4] != 0;
  const std::int64_t* next = row + kModelsAt;
  for (int i = 0; i < models; ++i) {
    Model model;
    model.steps = next[0];
    std::memcpy(&model.rate, &next[1], sizeof(model.rate));
    model.discarded = next[2] % 2 != 0;
    model.synced = next[2] / 2 % 2 != 0;
    model.frozen = next[2] / 4 != 0;
    model.reached = next[3];
    notice.models.push_back(model);
    next += kNumbersOfModel;
  }
  return notice;
}

bool JoinNotice::Agrees(const JoinNotice& other) const {
  if (call != other.call || of != other.of || tracked != other.tracked) {
    return false;
  }
  for (const int i : of) {
    if (models[i].synced != other.models[i].synced ||
        models[i].frozen != other.models[i].frozen) {
      return false;
    }
  }
  return std::equal(models.begin(), models.end(), other.models.begin(),
                    [](const Model& a, const Model& b) {
                      return a.steps == b.steps && a.reached == b.reached;
                    });
}

std::string JoinNotice::ToString(int rank,
                                 absl::Span<const std::string> names) const {
  std::vector<std::int64_t> steps;
  for (const Model& model : models) steps.push_back(model.steps);
  std::string text = absl::StrCat("rank ", rank, " is at ", NameOf(call));
  const auto append_model = [&](std::string* to, int model) {
    if (names.size() > 1) absl::StrAppend(to, " of ", names[model]);
    absl::StrAppend(to, models[model].frozen ? ", frozen" : "",
                    models[model].synced ? "" : " under NoSync()");
  };
  absl::StrAppend(&text, absl::StrJoin(of, " and", append_model));
  return absl::StrCat(text, " after ", absl::StrJoin(steps, " and "), " steps");
}

std::string JoinNotice::MoreThan(const JoinNotice& other,
                                 absl::Span<const std::string> names) const {
  std::string text;
  if (call == other.call && tracked != other.tracked) {
    text = tracked ? ", where gradients go to its input"
                   : ", where no gradients go to its input";
  }
  for (std::size_t i = 0; call == other.call && i < models.size(); ++i) {
    if (models[i].reached == other.models[i].reached) continue;
    absl::StrAppend(&text, ", where its loss depends on other outputs of ",
                    names[i]);
  }
  return text;
}

}  // namespace troupe
