#include "actors/dataflow/dataflow.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

template <typename... Words>
absl::Status Wrong(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("dataflow: ", words...));
}

template <typename Specs>
absl::Status CheckNamesOf(const char* kind, const Specs& specs, int most) {
  if (static_cast<int>(specs.size()) > most) {
    return Wrong("has ", specs.size(), " ", kind, "s; the limit is ", most);
  }
  std::set<std::string> names;
  for (const auto& spec : specs) {
    if (spec.name.empty()) {
      return Wrong("a ", kind, " has no name; give it one");
    }
    if (!names.insert(spec.name).second) {
      return Wrong("two ", kind, "s are called ", spec.name, "; rename one");
    }
  }
  return absl::OkStatus();
}

bool Contains(const std::vector<int>& channels, int channel) {
  return std::find(channels.begin(), channels.end(), channel) != channels.end();
}

}  // namespace

Dataflow::End Dataflow::WriterOf(int channel) const {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t h = 0; h < stages_[s].handlers.size(); ++h) {
      if (Contains(stages_[s].handlers[h].outputs, channel)) {
        return {static_cast<int>(s), static_cast<int>(h)};
      }
    }
  }
  return {};
}

Dataflow::End Dataflow::ReaderOf(int channel) const {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t h = 0; h < stages_[s].handlers.size(); ++h) {
      if (Contains(stages_[s].handlers[h].inputs, channel)) {
        return {static_cast<int>(s), static_cast<int>(h)};
      }
    }
  }
  return {};
}

absl::Status Dataflow::Check(int processes) const {
  TROUPE_RETURN_IF_ERROR(CheckNames());
  TROUPE_RETURN_IF_ERROR(CheckStages(processes));
  TROUPE_RETURN_IF_ERROR(CheckChannels());
  return CheckCircles();
}

absl::Status Dataflow::CheckNames() const {
  TROUPE_RETURN_IF_ERROR(CheckNamesOf("stage", stages_, kDataflowStagesMax));
  return CheckNamesOf("channel", channels_, kDataflowChannelsMax);
}

absl::Status Dataflow::CheckStages(int processes) const {
  if (stages_.empty()) return Wrong("has no stage; call AddStage()");
  const int channels = static_cast<int>(channels_.size());
  for (const StageSpec& stage : stages_) {
    if (stage.process < 0 || stage.process >= processes) {
      return Wrong("stage ", stage.name, " must lie in process 0 to ",
                   processes - 1, ", not ", stage.process);
    }
    if (stage.handlers.empty()) {
      return Wrong("stage ", stage.name, " has no handler; add one");
    }
    for (const HandlerSpec& handler : stage.handlers) {
      if (handler.inputs.empty() && handler.outputs.empty()) {
        return Wrong("a source of stage ", stage.name,
                     " has no output; add one");
      }
      for (const std::vector<int>* ends : {&handler.inputs, &handler.outputs}) {
        for (int channel : *ends) {
          if (channel >= 0 && channel < channels) continue;
          return Wrong(
              "stage ", stage.name,
              " names a channel that was not added; call AddChannel()");
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Dataflow::CheckChannels() const {
  std::vector<int> writers(channels_.size()), readers(channels_.size());
  for (const StageSpec& stage : stages_) {
    for (const HandlerSpec& handler : stage.handlers) {
      for (int channel : handler.outputs) ++writers[channel];
      for (int channel : handler.inputs) ++readers[channel];
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const ChannelSpec& channel = channels_[c];
    if (channel.capacity < 1 || channel.capacity > kChannelCapacityMax) {
      return Wrong("channel ", channel.name, " has room for ", channel.capacity,
                   " tensors; from 1 to ", kChannelCapacityMax);
    }
    if (writers[c] == 1 && readers[c] == 1) continue;
    return Wrong("channel ", channel.name, " is written by ", writers[c],
                 " handlers and read by ", readers[c],
                 "; it must be one and one");
  }
  return absl::OkStatus();
}

// Topological sort: repeatedly removes the channels whose writer reads no
// channel that is left.
absl::Status Dataflow::CheckCircles() const {
  std::vector<int> left;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    left.push_back(static_cast<int>(c));
  }
  while (!left.empty()) {
    std::vector<int> still;
    for (int channel : left) {
      const End writer = WriterOf(channel);
      const auto& inputs =
          stages_[writer.stage].handlers[writer.handler].inputs;
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](int input) { return Contains(left, input); })) {
        still.push_back(channel);
      }
    }
    if (still.size() == left.size()) {
      return Wrong(
          "handlers go in a circle, and none could begin; the channels: ",
          absl::StrJoin(left, ", ", [&](std::string* out, int channel) {
            absl::StrAppend(out, channels_[channel].name);
          }));
    }
    left = std::move(still);
  }
  return absl::OkStatus();
}

std::string Dataflow::ToString() const {
  const auto names = [&](const std::vector<int>& channels) {
    return absl::StrJoin(channels, ", ", [&](std::string* out, int channel) {
      absl::StrAppend(out, channels_[channel].name, "[",
                      channels_[channel].capacity, "]");
    });
  };
  std::string text;
  for (const StageSpec& stage : stages_) {
    for (const HandlerSpec& handler : stage.handlers) {
      absl::StrAppend(&text, stage.name);
      if (stage.process != 0) {
        absl::StrAppend(&text, " (process ", stage.process, ")");
      }
      absl::StrAppend(&text, ": ", names(handler.inputs));
      if (!handler.inputs.empty()) absl::StrAppend(&text, " ");
      absl::StrAppend(&text, "-> ", names(handler.outputs), "\n");
    }
  }
  return text;
}

}  // namespace troupe::actors
