#include "tools/bench/figure_table.h"

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
  row.note = figure.note;
  return row;
}

nlohmann::ordered_json Best(const std::vector<double>& values, Better better) {
  if (values.empty()) return nullptr;
  return better == Better::kHigher
             ? *std::max_element(values.begin(), values.end())
             : *std::min_element(values.begin(), values.end());
}

}  // namespace

Figure& FigureTable::At(const std::string& name, int ranks,
                        const std::string& unit, Better better) {
  for (Figure& row : rows_) {
    if (row.name == name && row.ranks == ranks && row.unit == unit) return row;
  }
  rows_.push_back({name, ranks, unit, better});
  return rows_.back();
}

const Figure* FigureTable::Find(const std::string& name, int ranks,
                                const std::string& unit) const {
  for (const Figure& row : rows_) {
    if (row.name == name && row.ranks == ranks && row.unit == unit) return &row;
  }
  return nullptr;
}

void FigureTable::Print() {
  for (; printed_ < rows_.size(); ++printed_) {
    const Figure& figure = rows_[printed_];
    if (figure.ours.empty()) continue;
    if (form_ == Report::Form::kJson) {
      PrintJson(figure);
    } else {
      PrintRow(figure);
    }
  }
}

void FigureTable::PrintRow(const Figure& figure) {
  if (!report_) report_.emplace(bench_, form_);
  report_->Add(RowOf(figure));
}

void FigureTable::PrintJson(const Figure& figure) {
  if (!cpu_) cpu_ = {CpuName(), F32PeakGflops(), Bf16PeakGflops()};
  auto json =
      nlohmann::ordered_json::parse(ToJson(bench_, cpu_->name, RowOf(figure)));
  json["ours_median"] = json["ours"];
  json["peer_median"] = json["peer"];
  json["ours_best"] = Best(figure.ours, figure.better);
  json["peer_best"] = Best(figure.peer, figure.better);
  json["rounds"] = figure.ours.size();
  json["f32_peak_gflops"] = cpu_->f32_peak;
  json["bf16_peak_gflops"] = nullptr;
  if (cpu_->bf16_peak) json["bf16_peak_gflops"] = *cpu_->bf16_peak;
  for (const auto& [key, value] : figure.details) json[key] = value;
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

void FigureTable::End() {
  if (report_) report_->End();
}

}  // namespace troupe::bench
