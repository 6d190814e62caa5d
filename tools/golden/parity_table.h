// The table of tools/golden/parity: for each model, its errors in f64, its
// errors in f32 beside PyTorch's own, and whether they are within the limits.
//
//   ParityRow row;
//   row.model = "resnet18";
//   row.f64 = ours_f64;
//   row.f32 = ours_f32;
//   row.torch_f32 = parity.torch_f32();
//   const std::vector<ParityLine> lines = Judge(row);
//   Show(ParityTableHead(), ParityTableLines(row.model, lines), AllOk(lines));

#ifndef TOOLS_GOLDEN_PARITY_TABLE_H_
#define TOOLS_GOLDEN_PARITY_TABLE_H_

#include <string>
#include <vector>

#include "tools/golden/parity_case.h"

namespace troupe::golden {

// Limits on errors in f64: of the first step, and of the losses of all steps.
inline constexpr double kF64ErrorMax = 1e-9;
inline constexpr double kF64LossesMax = 1e-6;
// Limit on an error in f32, in multiples of PyTorch's own. An error of PyTorch
// below a rounding counts as that: a loss may be exact by chance. That of a
// gradient counts as four at least: it is a sum over many rows, in an order
// that each library chooses, and some roundings more or less are chance.
inline constexpr double kF32RatioMax = 2;
inline constexpr double kF32Rounding = 0x1p-24;
inline constexpr double kF32SumRounding = 4 * kF32Rounding;

struct ParityRow {
  std::string model;
  ParityErrors f64, f32, torch_f32;
};

// Errors of one quantity.
struct ParityLine {
  std::string what;  // "output", "loss", "gradients", "losses"
  double f64 = 0, f64_max = 0;
  double f32 = 0, torch_f32 = 0;
  // Least error that PyTorch's counts as.
  double torch_f32_min = kF32Rounding;
  // Names of the gradients with the largest error in f64, and with the largest
  // ratio in f32.
  std::string f64_where, f32_where;

  double ratio() const;
  bool ok() const;
};

std::vector<ParityLine> Judge(const ParityRow& row);
bool AllOk(const std::vector<ParityLine>& lines);

// Both results end with a line feed.
std::string ParityTableHead();
std::string ParityTableLines(const std::string& model,
                             const std::vector<ParityLine>& lines);

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_PARITY_TABLE_H_
