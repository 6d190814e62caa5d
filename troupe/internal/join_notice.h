// The notice that ranks exchange before each forward and backward under Join()
// (troupe/join.h): the call that a rank is about to make, and those since its
// last notice. It travels as a row of i64, of a length that depends on the
// number of models alone.
//
//   JoinNotice notice;                    // one model
//   notice.call = JoinCall::kForward;
//   notice.of = {0};
//   notice.shape = {16, 784};
//   notice.models.resize(1);
//   std::vector<std::int64_t> row(JoinNotice::NumbersOf(/*models=*/1));
//   notice.Write(row.data());
//   JoinNotice::Read(row.data(), /*models=*/1).shape;   // [16, 784]

#ifndef TROUPE_INTERNAL_JOIN_NOTICE_H_
#define TROUPE_INTERNAL_JOIN_NOTICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"

namespace troupe {

// Call that a rank is about to make.
enum class JoinCall : std::int64_t { kEnded, kForward, kBackward };

struct JoinNotice {
  // State of a model.
  struct Model {
    std::int64_t steps = 0;  // number of Step()s under this guard
    double rate = 0;         // learning rate of the last of these
    // Whether ZeroGrad() was called since the last backward.
    bool discarded = false;
    bool synced = true;   // whether its (next) backward reduces gradients
    bool frozen = false;  // whether it trains no parameter at present
    // The forwards since the last backward that a backward goes through: bit i
    // is that of forward i; kAll: all of them.
    std::int64_t reached = 0;
  };

  // Limit on the number of models, and on that of the forwards of a model since
  // the last backward unless a backward goes through all of them.
  static constexpr int kModelsMax = 32;
  static constexpr int kForwardsMax = 62;
  static constexpr std::int64_t kAll = -1;
  // Returns the length of a row.
  static int NumbersOf(int models);

  void Write(std::int64_t* row) const;
  static JoinNotice Read(const std::int64_t* row, int models);

  // Returns whether another rank with this notice makes the same calls.
  bool Agrees(const JoinNotice& other) const;
  // Returns "rank 1 is at a backward after 3 steps". `names`: those of the
  // models, which the text has if there are several.
  std::string ToString(int rank, absl::Span<const std::string> names) const;
  // Returns the differences from another notice that ToString() leaves out,
  // such as ", where its loss depends on other outputs of model 2".
  std::string MoreThan(const JoinNotice& other,
                       absl::Span<const std::string> names) const;

  JoinCall call = JoinCall::kEnded;
  std::vector<int> of;  // the models of the call, in ascending order
  std::vector<Model> models;
  // A forward's input, and whether gradients go to it.
  nn::Shape shape;
  nn::DType dtype = nn::DType::kF32;
  bool tracked = false;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_JOIN_NOTICE_H_
