// A bar chart with the spread of each bar, as SVG.
//
//   BarChart chart;
//   chart.title = "ResNet-50 in two parts";
//   chart.unit = "seconds a step";
//   chart.bars.push_back(MakeBar("one rank", {1.02, 1.00, 1.04}));
//   absl::Status written = WriteSvg({chart}, "chart.svg");
//
// Charts of one file stand side by side, and share no scale.

#ifndef EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_
#define EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::examples {

struct Bar {
  std::string label;
  double mean = 0;
  double deviation = 0;  // standard deviation of the samples
};

// Of at least one sample.
Bar MakeBar(const std::string& label, const std::vector<double>& samples);

struct BarChart {
  std::string title;
  std::string unit;  // of the bars, along the axis
  std::vector<Bar> bars;
};

std::string ToSvg(const std::vector<BarChart>& charts);

//   kUnavailable: the file cannot be written; names it.
absl::Status WriteSvg(const std::vector<BarChart>& charts,
                      const std::string& path);

}  // namespace troupe::examples

#endif  // EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_
