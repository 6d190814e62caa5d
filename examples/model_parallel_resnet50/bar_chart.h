// Draws bar charts with error bars, as SVG.
//
//   BarChart chart;
//   chart.title = "ResNet-50 in two parts";
//   chart.unit = "seconds a step";
//   chart.bars.push_back(MakeBar("one rank", {1.02, 1.00, 1.04}));
//   absl::Status written = WriteSvg({chart}, "chart.svg");
//
// Charts of one file stand side by side, each with a scale of its own.

#ifndef EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_
#define EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::examples {

struct Bar {
  std::string label;
  double mean = 0;
  double deviation = 0;  // population standard deviation of the samples
};

// Returns the mean and deviation of `samples`, of which there must be at least
// one.
Bar MakeBar(const std::string& label, const std::vector<double>& samples);

struct BarChart {
  std::string title;
  std::string unit;  // label of the axis
  std::vector<Bar> bars;
};

std::string ToSvg(const std::vector<BarChart>& charts);

// Errors: kUnavailable, if the file cannot be written; the message names it.
absl::Status WriteSvg(const std::vector<BarChart>& charts,
                      const std::string& path);

}  // namespace troupe::examples

#endif  // EXAMPLES_MODEL_PARALLEL_RESNET50_BAR_CHART_H_
