#include "tools/golden/parity_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe::golden {
namespace {

// Returns PyTorch's error of a gradient; 0 if it has none of that name, so that
// ours may only be off by a rounding.
double TorchErrorOf(const std::string& name, const ParityErrors& torch) {
  for (const NamedError& gradient : torch.gradients) {
    if (gradient.name == name) return gradient.error;
  }
  return 0;
}

ParityLine JudgeOne(const char* what, double f64, double f64_max, double f32,
                    double torch_f32) {
  ParityLine line;
  line.what = what;
  line.f64 = f64;
  line.f64_max = f64_max;
  line.f32 = f32;
  line.torch_f32 = torch_f32;
  return line;
}

ParityLine JudgeGradients(const ParityRow& row) {
  ParityLine line;
  line.what = "gradients";
  line.f64_max = kF64ErrorMax;
  line.torch_f32_min = kF32SumRounding;
  for (const NamedError& gradient : row.f64.gradients) {
    if (!line.f64_where.empty() && gradient.error <= line.f64) continue;
    line.f64 = gradient.error;
    line.f64_where = gradient.name;
  }
  for (const NamedError& gradient : row.f32.gradients) {
    ParityLine other = line;
    other.f32 = gradient.error;
    other.torch_f32 = TorchErrorOf(gradient.name, row.torch_f32);
    other.f32_where = gradient.name;
    if (line.f32_where.empty() || other.ratio() > line.ratio()) line = other;
  }
  return line;
}

constexpr auto kHeadFormat = "%-9s %-10s %8s %8s %9s %9s %6s\n";
constexpr auto kLineFormat = "%-9s %-10s %8.1e %8.0e %9.1e %9.1e %6.2f%s\n";

}  // namespace

double ParityLine::ratio() const {
  return f32 / std::max(torch_f32, torch_f32_min);
}

bool ParityLine::ok() const {
  return f64 <= f64_max && ratio() <= kF32RatioMax;
}

std::vector<ParityLine> Judge(const ParityRow& row) {
  const ParityErrors& torch = row.torch_f32;
  return {
      JudgeOne("output", row.f64.output, kF64ErrorMax, row.f32.output,
               torch.output),
      JudgeOne("loss", row.f64.loss, kF64ErrorMax, row.f32.loss, torch.loss),
      JudgeGradients(row),
      JudgeOne("losses", row.f64.losses, kF64LossesMax, row.f32.losses,
               torch.losses)};
}

bool AllOk(const std::vector<ParityLine>& lines) {
  return std::all_of(lines.begin(), lines.end(),
                     [](const ParityLine& line) { return line.ok(); });
}

std::string ParityTableHead() {
  return absl::StrFormat(kHeadFormat, "model", "what", "f64", "limit", "f32",
                         "PyTorch", "ratio");
}

std::string ParityTableLines(const std::string& model,
                             const std::vector<ParityLine>& lines) {
  std::string text;
  for (const ParityLine& line : lines) {
    absl::StrAppendFormat(&text, kLineFormat, model, line.what, line.f64,
                          line.f64_max, line.f32, line.torch_f32, line.ratio(),
                          line.ok() ? "" : "  FAILED");
    if (line.f64_where.empty()) continue;
    absl::StrAppend(&text, "          worst: f64 ", line.f64_where, ", f32 ",
                    line.f32_where, "\n");
  }
  return text;
}

}  // namespace troupe::golden
