#include "tools/trainer/terminal/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe::tools {
namespace {

constexpr int kBarColumnsMin = 8;
constexpr int kBarColumnsMax = 30;
constexpr double kSecondsMax = 100 * 3600;

// "[====>    ]", `columns` wide with the brackets.
std::string Bar(double done, int columns) {
  const int inside = columns - 2;
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * inside);
  std::string bar(filled, '=');
  if (filled < inside) bar += '>';
  bar.resize(inside, ' ');
  return absl::StrCat("[", bar, "]");
}

std::string Rate(const Progress& p, const char* gap, const char* unit) {
  return absl::StrCat(
      gap, FormatCount(static_cast<std::int64_t>(p.samples_per_s)), unit);
}

std::string TimeLeft(const Progress& p, const char* gap) {
  return absl::StrCat(gap, "ETA ", FormatDuration(p.left_s));
}

// Whether there is an accuracy to show: it is NaN if no target of the step
// counts.
bool HasAccuracy(const Progress& p) {
  return p.accuracy && !std::isnan(*p.accuracy);
}

// Returns what a bar shows behind the count of steps, the most important first.
std::vector<std::string> PartsOf(const Progress& p) {
  std::vector<std::string> parts = {absl::StrCat(" loss ", FormatLoss(p.loss))};
  if (HasAccuracy(p)) {
    parts.push_back(absl::StrFormat(" acc %5.1f%%", 100 * *p.accuracy));
  }
  if (p.samples_per_s > 0) {
    parts.push_back(Rate(p, " ", "/s"));
    parts.push_back(TimeLeft(p, " "));
  }
  return parts;
}

}  // namespace

std::string FormatCount(std::int64_t count) {
  std::string digits = absl::StrCat(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(at, ",");
  }
  return digits;
}

std::string FormatDuration(double seconds) {
  if (!(seconds < kSecondsMax)) return ">100 h";
  const std::int64_t s = std::llround(std::max(seconds, 0.0));
  if (s < 3600) return absl::StrFormat("%d:%02d", s / 60, s % 60);
  return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

std::string FormatElapsed(double seconds) {
  return seconds < 59.95 ? absl::StrFormat("%.1f s", seconds)
                         : FormatDuration(seconds);
}

std::string FormatLoss(double loss) {
  if (std::isnan(loss)) return "nan";
  const double size = std::abs(loss);
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e4);
  return plain ? absl::StrFormat("%.4f", loss) : absl::StrFormat("%.2e", loss);
}

std::string FormatPercent(double fraction) {
  return absl::StrFormat("%.2f%%", 100 * fraction);
}

std::string FormatBar(const Progress& p, int columns) {
  const std::string epoch = absl::StrCat("epoch ", p.epoch, "/", p.epochs);
  const int digits = static_cast<int>(absl::StrCat(p.steps).size());
  const std::string count = absl::StrFormat("%*d/%d", digits, p.step, p.steps);
  // Columns for texts that may grow, so that the bar keeps its width.
  constexpr int kTextColumns = 58;
  const int left = columns - kTextColumns - 2 * digits -
                   static_cast<int>(2 * absl::StrCat(p.epochs).size());
  std::string line = epoch;
  if (left >= kBarColumnsMin) {
    const double done =
        p.steps == 0 ? 1 : static_cast<double>(p.step) / double(p.steps);
    absl::StrAppend(&line, " ", Bar(done, std::min(left, kBarColumnsMax)));
  }
  absl::StrAppend(&line, " ", count);
  const auto fits = [&](const std::string& text) {
    return static_cast<int>(text.size()) <= columns;
  };
  if (!fits(line)) line = count;
  for (const std::string& part : PartsOf(p)) {
    if (!fits(line + part)) break;
    line += part;
  }
  if (!fits(line)) line.resize(static_cast<std::size_t>(std::max(columns, 0)));
  return line;
}

std::string FormatLine(const Progress& p) {
  std::string line = absl::StrCat("step ", p.step, "/", p.steps, "  epoch ",
                                  p.epoch, "  loss ", FormatLoss(p.loss));
  if (HasAccuracy(p)) {
    absl::StrAppend(&line, "  accuracy ", FormatPercent(*p.accuracy));
  }
  if (p.loss_scale) absl::StrAppend(&line, "  loss scale ", *p.loss_scale);
  if (p.skipped_steps > 0) {
    absl::StrAppend(&line, "  ", FormatCount(p.skipped_steps), " skipped");
  }
  if (p.samples_per_s <= 0) return line;
  return absl::StrCat(line, Rate(p, "  ", " samples/s"), TimeLeft(p, "  "));
}

void RateMeter::Add(double seconds, std::int64_t samples) {
  marks_.emplace_back(seconds, marks_.back().second + samples);
  while (marks_.size() > 2 &&
         marks_.back().first - marks_.front().first > kWindowSeconds) {
    marks_.pop_front();
  }
}

double RateMeter::SamplesPerSecond() const {
  const double seconds = marks_.back().first - marks_.front().first;
  if (seconds <= 0) return 0;
  return double(marks_.back().second - marks_.front().second) / seconds;
}

}  // namespace troupe::tools
