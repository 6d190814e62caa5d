#include "tools/bench/report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/bench/cpu_info.h"

namespace troupe::bench {
namespace {

// Returns about four significant digits, without an exponent.
std::string Short(double value) {
  const double size = value < 0 ? -value : value;
  const int decimals = size < 1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : 1;
  return absl::StrFormat("%.*f", size < 1000 ? decimals : 0, value);
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (!peer || *peer <= 0 || ours <= 0) return std::nullopt;
  return better == Better::kLower ? *peer / ours : ours / *peer;
}

std::string ToJson(const std::string& bench, const std::string& cpu,
                   const Row& row, const std::string& gpu) {
  nlohmann::ordered_json json;
  json["bench"] = bench;
  json["case"] = row.name;
  json["ranks"] = row.ranks;
  json["unit"] = row.unit;
  json["ours"] = row.ours;
  json["peer"] = nullptr;
  json["ratio"] = nullptr;
  if (row.peer) json["peer"] = *row.peer;
  if (row.ratio()) json["ratio"] = *row.ratio();
  json["cpu"] = cpu;
  if (!gpu.empty()) json["gpu"] = gpu;
  return json.dump();
}

Report::Report(std::string bench, Form form, std::string gpu)
    : bench_(std::move(bench)),
      form_(form),
      cpu_(CpuName()),
      gpu_(std::move(gpu)) {
  if (form_ == Form::kJson) return;
  absl::PrintF("%s on %s\n", bench_, DescribeCpu());
  if (!gpu_.empty()) absl::PrintF("%s\n", gpu_);
  absl::PrintF("\n");
  absl::PrintF("%-38s %5s %10s %10s %10s %8s\n", "case", "ranks", "unit",
               "ours", "peer", "ratio");
}

void Report::Add(const Row& row) {
  has_rows_ = true;
  if (row.peer) has_peer_ = true;
  if (form_ == Form::kJson) {
    absl::PrintF("%s\n", ToJson(bench_, cpu_, row, gpu_));
  } else {
    absl::PrintF("%-38s %5d %10s %10s %10s %8s", row.name, row.ranks, row.unit,
                 Short(row.ours), row.peer ? Short(*row.peer) : "-",
                 row.ratio() ? absl::StrFormat("%.2f", *row.ratio()) : "-");
    absl::PrintF("%s%s\n", row.note.empty() ? "" : "  ", row.note);
  }
  std::fflush(stdout);
}

void Report::End() {
  if (form_ == Form::kJson) return;
  absl::PrintF("\nA ratio above 1: better than the peer.\n");
  if (!has_rows_ || has_peer_) return;
  absl::PrintF(
      "No peer was measured. The peer is PyTorch, best in a virtual\n"
      "environment outside the source tree:\n"
      "  python3 -m venv ~/peer && ~/peer/bin/pip install torch\n"
      "Then give --python=$HOME/peer/bin/python.\n");
}

double Median(std::vector<double> values) {
  TROUPE_CHECK(!values.empty(), "a median is of something");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace troupe::bench
