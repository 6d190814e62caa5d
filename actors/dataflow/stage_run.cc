#include "actors/dataflow/stage_run.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Calls a user's function, and turns an exception into a status.
template <typename Function>
auto Guarded(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace

StageRun::StageRun(std::shared_ptr<const Dataflow> flow, int stage)
    : flow_(std::move(flow)),
      stage_(stage),
      handlers_(spec().handlers.size()),
      inputs_(flow_->channels().size()),
      outputs_(flow_->channels().size()) {
  for (std::size_t c = 0; c < outputs_.size(); ++c) {
    outputs_[c].credits = flow_->channels()[c].capacity;
  }
}

absl::Status StageRun::Begin(Host* host) {
  host_ = host;
  if (spec().make_state == nullptr) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<void>> state = Guarded(spec().make_state);
  if (!state.ok()) return InStage(state.status());
  state_ = *std::move(state);
  return absl::OkStatus();
}

absl::Status StageRun::OnTensor(int channel, std::int64_t number,
                                nn::Tensor tensor) {
  Input& input = inputs_[channel];
  if (number != input.received || input.count) {
    return InStage(absl::InternalError(
        absl::StrCat("tensor ", number, " of channel ", NameOf(channel),
                     " came when ", input.received, " had come")));
  }
  const int capacity = flow_->channels()[channel].capacity;
  if (static_cast<int>(input.tensors.size()) >= capacity) {
    return InStage(absl::InternalError(absl::StrCat(
        "channel ", NameOf(channel), " holds more than ", capacity)));
  }
  ++input.received;
  input.tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

void StageRun::OnCredit(int channel) { ++outputs_[channel].credits; }

absl::Status StageRun::OnEnd(int channel, std::int64_t count) {
  Input& input = inputs_[channel];
  if (input.count || count != input.received) {
    return InStage(absl::InternalError(
        absl::StrCat("channel ", NameOf(channel), " ends after ", count,
                     " tensors, of which ", input.received, " came")));
  }
  input.count = count;
  return absl::OkStatus();
}

absl::StatusOr<bool> StageRun::RunNext() {
  if (done_) return false;
  Doing waits;
  waits.kind = Doing::Kind::kWaits;
  bool all_ended = true;
  for (int h = 0; h < static_cast<int>(handlers_.size()); ++h) {
    if (handlers_[h].ended) continue;
    if (MayRun(h, waits)) {
      TROUPE_RETURN_IF_ERROR(Run(h));
      return true;
    }
    TROUPE_ASSIGN_OR_RETURN(const bool ends, MayEnd(h));
    if (ends) {
      EndHandler(h);
      return true;
    }
    all_ended = false;
  }
  if (all_ended) {
    TROUPE_RETURN_IF_ERROR(Finish());
    return false;
  }
  Set(std::move(waits));
  return false;
}

bool StageRun::MayRun(int handler, Doing& lacks) {
  const HandlerSpec& spec = this->spec().handlers[handler];
  bool may = true;
  for (int channel : spec.inputs) {
    if (!inputs_[channel].tensors.empty()) continue;
    may = false;
    if (!inputs_[channel].count) lacks.inputs.push_back(channel);
  }
  for (int channel : spec.outputs) {
    if (outputs_[channel].credits > 0) continue;
    may = false;
    lacks.outputs.push_back(channel);
  }
  if (!may || spec.when == nullptr || spec.when(state_.get())) return may;
  lacks.condition = true;
  return false;
}

absl::StatusOr<bool> StageRun::MayEnd(int handler) const {
  const std::vector<int>& inputs = spec().handlers[handler].inputs;
  const auto ended =
      std::find_if(inputs.begin(), inputs.end(),
                   [&](int channel) { return inputs_[channel].exhausted(); });
  if (ended == inputs.end()) return false;
  bool all = true;
  for (int channel : inputs) {
    const Input& input = inputs_[channel];
    if (input.exhausted()) continue;
    all = false;
    if (input.tensors.empty()) continue;
    return InStage(absl::InvalidArgumentError(
        absl::StrCat("channel ", NameOf(*ended), " has ended after ",
                     *inputs_[*ended].count, " tensors, but ", NameOf(channel),
                     " has more; send as many to each input of a handler")));
  }
  return all;
}

absl::Status StageRun::Run(int h) {
  const HandlerSpec& handler = spec().handlers[h];
  Doing runs;
  runs.kind = Doing::Kind::kRuns;
  runs.handler = h;
  runs.number = handlers_[h].runs;
  Set(std::move(runs));
  Tensors taken;
  for (int channel : handler.inputs) {
    taken.push_back(std::move(inputs_[channel].tensors.front()));
    inputs_[channel].tensors.pop_front();
  }
  HandlerSpec::Result given =
      Guarded([&] { return handler.run(state_.get(), taken); });
  if (!given.ok()) return InHandler(h, given.status());
  taken.clear();
  if (given->has_value()) {
    TROUPE_RETURN_IF_ERROR(Give(h, **given));
    ++handlers_[h].runs;
  } else {
    EndHandler(h);
  }
  for (int channel : handler.inputs) host_->ReturnCredit(channel);
  handled_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status StageRun::Give(int h, const Tensors& outputs) {
  const std::vector<int>& channels = spec().handlers[h].outputs;
  if (outputs.size() != channels.size()) {
    return InHandler(h, absl::InvalidArgumentError(absl::StrCat(
                            "gives ", outputs.size(), " tensors where it has ",
                            channels.size(), " channels")));
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const int channel = channels[i];
    if (!outputs[i].defined() || outputs[i].is_meta()) {
      return InHandler(h, absl::InvalidArgumentError(absl::StrCat(
                              "gives a tensor without memory for channel ",
                              NameOf(channel), "; return one with values")));
    }
    Output& output = outputs_[channel];
    --output.credits;
    output.use.in_flight_max =
        std::max(output.use.in_flight_max,
                 flow_->channels()[channel].capacity - output.credits);
    if (absl::Status sent =
            host_->Send(channel, output.use.tensors++, outputs[i].Detached());
        !sent.ok()) {
      return InHandler(h, sent);
    }
  }
  return absl::OkStatus();
}

void StageRun::EndHandler(int h) {
  handlers_[h].ended = true;
  for (int channel : spec().handlers[h].outputs) {
    host_->End(channel, outputs_[channel].use.tensors);
  }
}

absl::Status StageRun::Finish() {
  Doing ends;
  ends.kind = Doing::Kind::kEnds;
  Set(ends);
  if (spec().at_end != nullptr) {
    TROUPE_RETURN_IF_ERROR(
        InStage(Guarded([&] { return spec().at_end(state_.get()); })));
  }
  state_.reset();
  done_ = true;
  ends.kind = Doing::Kind::kDone;
  Set(std::move(ends));
  return absl::OkStatus();
}

std::vector<ChannelUse> StageRun::uses() const {
  std::vector<ChannelUse> uses;
  for (const Output& output : outputs_) uses.push_back(output.use);
  return uses;
}

void StageRun::Set(Doing doing) {
  absl::MutexLock lock(&mutex_);
  doing_ = std::move(doing);
}

std::string StageRun::Describe() const {
  absl::MutexLock lock(&mutex_);
  const std::string& name = spec().name;
  switch (doing_.kind) {
    case Doing::Kind::kBegins:
      return absl::StrCat(name, " makes its state");
    case Doing::Kind::kEnds:
      return absl::StrCat(name, " is at its end");
    case Doing::Kind::kDone:
      return absl::StrCat(name, " is done");
    case Doing::Kind::kRuns: {
      const std::vector<int>& inputs = spec().handlers[doing_.handler].inputs;
      return absl::StrCat(name, " runs on ",
                          inputs.empty() ? "its source" : NameOf(inputs[0]),
                          ", number ", doing_.number);
    }
    case Doing::Kind::kWaits:
      break;
  }
  std::vector<std::string> waits;
  for (int channel : doing_.inputs) {
    waits.push_back(absl::StrCat("a tensor in ", NameOf(channel)));
  }
  for (int channel : doing_.outputs) {
    waits.push_back(absl::StrCat("room in ", NameOf(channel)));
  }
  if (doing_.condition) waits.push_back("a condition of its own");
  return absl::StrCat(name, " waits for ", absl::StrJoin(waits, " and for "));
}

absl::Status StageRun::InHandler(int h, const absl::Status& status) const {
  const std::vector<int>& inputs = spec().handlers[h].inputs;
  return base::WithMessage(
      status,
      absl::StrCat("stage ", spec().name, ", ",
                   inputs.empty() ? "its source" : NameOf(inputs[0]),
                   ", number ", handlers_[h].runs, ": ", status.message()));
}

absl::Status StageRun::InStage(const absl::Status& status) const {
  if (status.ok()) return status;
  return base::WithMessage(
      status, absl::StrCat("stage ", spec().name, ": ", status.message()));
}

}  // namespace troupe::actors
