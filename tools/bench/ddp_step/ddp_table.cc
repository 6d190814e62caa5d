#include "tools/bench/ddp_step/ddp_table.h"

#include <algorithm>
#include <cstdio>

#include "nlohmann/json.hpp"
#include "tools/bench/cpu_info.h"

namespace troupe::bench {
namespace {

Row RowOf(const Figure& figure) {
  Row row;
  row.name = figure.name;
  row.ranks = figure.ranks;
  row.unit = figure.unit;
  row.better = figure.better;
  row.ours = Median(figure.ours);
  if (!figure.peer.empty()) row.peer = Median(figure.peer);
  return row;
}

nlohmann::ordered_json Best(const std::vector<double>& values, Better better) {
  if (values.empty()) return nullptr;
  return better == Better::kHigher
             ? *std::max_element(values.begin(), values.end())
             : *std::min_element(values.begin(), values.end());
}

void PrintJson(const std::deque<Figure>& rows) {
  const std::string cpu = CpuName();
  const double f32_peak = F32PeakGflops();
  const std::optional<double> bf16_peak = Bf16PeakGflops();
  for (const Figure& figure : rows) {
    if (figure.ours.empty()) continue;
    auto json =
        nlohmann::ordered_json::parse(ToJson("ddp_step", cpu, RowOf(figure)));
    json["ours_median"] = json["ours"];
    json["peer_median"] = json["peer"];
    json["ours_best"] = Best(figure.ours, figure.better);
    json["peer_best"] = Best(figure.peer, figure.better);
    json["rounds"] = figure.ours.size();
    json["f32_peak_gflops"] = f32_peak;
    json["bf16_peak_gflops"] = nullptr;
    if (bf16_peak) json["bf16_peak_gflops"] = *bf16_peak;
    std::printf("%s\n", json.dump().c_str());
  }
}

}  // namespace

Figure& DdpTable::At(const std::string& name, int ranks,
                     const std::string& unit, Better better) {
  for (Figure& row : rows_) {
    if (row.name == name && row.ranks == ranks) return row;
  }
  rows_.push_back({name, ranks, unit, better, {}, {}});
  return rows_.back();
}

const Figure* DdpTable::Find(const std::string& name, int ranks) const {
  for (const Figure& row : rows_) {
    if (row.name == name && row.ranks == ranks) return &row;
  }
  return nullptr;
}

void DdpTable::Print(bool json) const {
  if (json) {
    PrintJson(rows_);
    return;
  }
  Report report("ddp_step", Report::Form::kTable);
  for (const Figure& figure : rows_) {
    if (!figure.ours.empty()) report.Add(RowOf(figure));
  }
  report.End();
}

}  // namespace troupe::bench
