#include "nn/generate/stop_sequences.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"

namespace troupe::nn {

StopSequences::StopSequences(std::vector<std::string> sequences)
    : sequences_(std::move(sequences)) {
  sequences_.erase(std::remove(sequences_.begin(), sequences_.end(), ""),
                   sequences_.end());
}

std::string StopSequences::Add(absl::string_view piece) {
  if (found_) return "";
  held_.append(piece.data(), piece.size());
  std::size_t end = std::string::npos;
  for (const std::string& sequence : sequences_) {
    end = std::min(end, held_.find(sequence));
  }
  found_ = end != std::string::npos;
  if (!found_) end = held_.size() - Undecided();
  std::string certain = held_.substr(0, end);
  held_.erase(0, end);
  if (found_) held_.clear();
  return certain;
}

std::string StopSequences::Rest() { return std::exchange(held_, ""); }

std::size_t StopSequences::Undecided() const {
  std::size_t undecided = 0;
  for (const std::string& sequence : sequences_) {
    std::size_t length = std::min(sequence.size() - 1, held_.size());
    while (length > undecided &&
           !absl::EndsWith(held_, sequence.substr(0, length))) {
      --length;
    }
    undecided = std::max(undecided, length);
  }
  return undecided;
}

}  // namespace troupe::nn
