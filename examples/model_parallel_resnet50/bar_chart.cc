#include "examples/model_parallel_resnet50/bar_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace troupe::examples {
namespace {

// Sizes of one chart and its margins, in pixels.
constexpr double kWidth = 560, kHeight = 400;
constexpr double kLeft = 64, kRight = 16, kTop = 48, kBottom = 48;

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Returns the distance between marks on an axis up to `most`: 1, 2 or 5 times a
// power of ten, so that the axis has 4 to 10 of them.
double MarkDistance(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 4)));
  for (const double factor : {5.0, 2.0}) {
    if (power * factor * 4 <= most) return power * factor;
  }
  return power;
}

class ChartWriter {
 public:
  ChartWriter(const BarChart& chart, double x, std::string* out)
      : chart_(chart), x_(x), out_(*out) {
    for (const Bar& bar : chart.bars) {
      most_ = std::max(most_, bar.mean + bar.deviation);
    }
    if (most_ <= 0) most_ = 1;
    most_ *= 1.1;  // room for the numbers above the bars
  }

  void Write() {
    Text(x_ + kWidth / 2, 24, "middle", chart_.title, /*size=*/16);
    absl::StrAppendFormat(&out_,
                          "<text transform='translate(%.1f %.1f) rotate(-90)' "
                          "text-anchor='middle' font-size='12'>%s</text>\n",
                          x_ + 16, (kTop + kHeight - kBottom) / 2,
                          Escaped(chart_.unit));
    WriteAxis();
    for (std::size_t i = 0; i < chart_.bars.size(); ++i) {
      WriteBar(chart_.bars[i], static_cast<int>(i));
    }
  }

 private:
  // Returns the y coordinate of a value.
  double Y(double value) const {
    return kHeight - kBottom - value / most_ * (kHeight - kBottom - kTop);
  }
  void Line(double x1, double y1, double x2, double y2, const char* colour) {
    absl::StrAppendFormat(&out_,
                          "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' "
                          "stroke='%s'/>\n",
                          x1, y1, x2, y2, colour);
  }
  void Text(double x, double y, const char* anchor, const std::string& text,
            int size = 12) {
    absl::StrAppendFormat(&out_,
                          "<text x='%.1f' y='%.1f' text-anchor='%s' "
                          "font-size='%d'>%s</text>\n",
                          x, y, anchor, size, Escaped(text));
  }

  void WriteAxis() {
    const double distance = MarkDistance(most_);
    for (int i = 0; i * distance <= most_; ++i) {
      const double y = Y(i * distance);
      Line(x_ + kLeft, y, x_ + kWidth - kRight, y, "#dddddd");
      Text(x_ + kLeft - 6, y + 4, "end", absl::StrFormat("%g", i * distance));
    }
  }

  void WriteBar(const Bar& bar, int number) {
    const double step =
        (kWidth - kLeft - kRight) / static_cast<double>(chart_.bars.size());
    const double middle = x_ + kLeft + step * (number + 0.5);
    const double width = step * 0.6;
    absl::StrAppendFormat(&out_,
                          "<rect class='bar' x='%.1f' y='%.1f' width='%.1f' "
                          "height='%.1f' fill='#4878a8'/>\n",
                          middle - width / 2, Y(bar.mean), width,
                          Y(0) - Y(bar.mean));
    const double low = Y(std::max(bar.mean - bar.deviation, 0.0));
    const double high = Y(bar.mean + bar.deviation);
    Line(middle, low, middle, high, "#222222");
    for (const double y : {low, high}) {
      Line(middle - 6, y, middle + 6, y, "#222222");
    }
    Text(middle, high - 6, "middle", absl::StrFormat("%.3g", bar.mean));
    Text(middle, kHeight - kBottom + 18, "middle", bar.label);
  }

  const BarChart& chart_;
  const double x_;  // coordinate of the chart's left edge
  std::string& out_;
  double most_ = 0;
};

}  // namespace

Bar MakeBar(const std::string& label, const std::vector<double>& samples) {
  Bar bar;
  bar.label = label;
  for (double sample : samples) bar.mean += sample / samples.size();
  double squares = 0;
  for (double sample : samples) {
    squares += (sample - bar.mean) * (sample - bar.mean);
  }
  bar.deviation = std::sqrt(squares / samples.size());
  return bar;
}

std::string ToSvg(const std::vector<BarChart>& charts) {
  const double width = kWidth * static_cast<double>(charts.size());
  std::string svg = absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' "
      "font-family='sans-serif'>\n"
      "<rect width='100%%' height='100%%' fill='white'/>\n",
      width, kHeight);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    ChartWriter(charts[i], kWidth * static_cast<double>(i), &svg).Write();
  }
  return svg + "</svg>\n";
}

absl::Status WriteSvg(const std::vector<BarChart>& charts,
                      const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool written = false;
  if (file != nullptr) {
    written = std::fputs(ToSvg(charts).c_str(), file) >= 0;
    written = std::fclose(file) == 0 && written;
  }
  if (written) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

}  // namespace troupe::examples
