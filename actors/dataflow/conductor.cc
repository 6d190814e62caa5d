#include "actors/dataflow/conductor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/caf/actor_timeout.h"
#include "actors/dataflow/channel_wire.h"

namespace troupe::actors {
namespace {

// Number of checks for progress in a time-out.
constexpr int kLooksPerTimeout = 8;

WireWord::Kind WireKind(DataflowNews::Kind kind) {
  switch (kind) {
    case DataflowNews::Kind::kDone:
      return WireWord::Kind::kDone;
    case DataflowNews::Kind::kFailed:
      return WireWord::Kind::kFailed;
    case DataflowNews::Kind::kBye:
      return WireWord::Kind::kBye;
    case DataflowNews::Kind::kAlive:
    case DataflowNews::Kind::kLost:
      break;
  }
  return WireWord::Kind::kAlive;
}

// Returns a text as a tensor, cut at kFailureBytesMax; undefined if empty.
nn::Tensor TextTensor(const std::string& text) {
  if (text.empty()) return nn::Tensor();
  static nn::CachingAllocator memory;
  const std::size_t bytes = std::min(text.size(), kFailureBytesMax);
  absl::StatusOr<nn::Tensor> tensor = nn::Tensor::Create(
      {static_cast<std::int64_t>(bytes)}, nn::DType::kU8, memory);
  if (!tensor.ok()) return nn::Tensor();
  std::memcpy(tensor->raw(), text.data(), bytes);
  return *std::move(tensor);
}

}  // namespace

void DataflowConductorState::OnContext(DataflowContextPtr context) {
  context_ = std::move(context);
  peers_.resize(context_->processes());
  uses_.resize(flow_->channels().size());
  stages_left_ = static_cast<int>(
      std::count_if(context_->runs.begin(), context_->runs.end(),
                    [](const auto& run) { return run != nullptr; }));
  changed_ = self_->clock().now();
  for (const DataflowNews& news : std::exchange(early_, {})) OnNews(news);
  FinishIfDone();
  if (verdict_) return;
  self_->delayed_send(self_, ActorTimeout(context_->timeout) / kLooksPerTimeout,
                      watch_atom::value);
}

void DataflowConductorState::OnStageDone(const DataflowStageDone& message) {
  if (verdict_) return;
  for (std::size_t c = 0; c < uses_.size(); ++c) {
    if (message.uses[c].tensors > 0) uses_[c] = message.uses[c];
  }
  --stages_left_;
  FinishIfDone();
}

void DataflowConductorState::FinishIfDone() {
  if (verdict_ || stages_left_ > 0) return;
  Peer& own = peers_[context_->process];
  if (!own.done) TellPeers(DataflowNews::Kind::kDone);
  own.done = true;
  if (std::all_of(peers_.begin(), peers_.end(),
                  [](const Peer& peer) { return peer.done; })) {
    verdict_ = absl::OkStatus();
    Leave();
  }
}

void DataflowConductorState::OnNews(const DataflowNews& news) {
  if (context_ == nullptr) {
    early_.push_back(news);
    return;
  }
  Peer& peer = peers_[news.process];
  const absl::Status status(static_cast<absl::StatusCode>(news.code),
                            news.message);
  switch (news.kind) {
    case DataflowNews::Kind::kAlive:
      peer.handled = news.count;
      break;
    case DataflowNews::Kind::kDone:
      peer.done = true;
      FinishIfDone();
      break;
    case DataflowNews::Kind::kFailed:
      Fail(status);
      break;
    case DataflowNews::Kind::kBye:
      peer.gone = true;
      break;
    case DataflowNews::Kind::kLost:
      // A process that has sent kBye may close its links.
      if (!peer.gone) {
        peer.gone = true;
        Fail(absl::UnavailableError(absl::StrCat(context_->names[news.process],
                                                 " is lost: ", news.message)));
      }
      break;
  }
  LeaveIfAllKnow();
}

void DataflowConductorState::Fail(const absl::Status& status) {
  if (verdict_) return;
  verdict_ = status;
  for (std::size_t s = 0; s < context_->runs.size(); ++s) {
    if (context_->runs[s] == nullptr) continue;
    caf::anon_send_exit(context_->stages[s], caf::exit_reason::user_shutdown);
  }
  TellPeers(DataflowNews::Kind::kFailed, status.raw_code(),
            std::string(status.message()));
  Leave();
}

void DataflowConductorState::Leave() {
  peers_[context_->process].gone = true;
  TellPeers(DataflowNews::Kind::kBye);
  LeaveIfAllKnow();
  if (context_->outcome->HasBeenSet()) return;
  self_->delayed_send(self_, ActorTimeout(context_->farewell_timeout),
                      beat_atom::value);
}

void DataflowConductorState::LeaveIfAllKnow() {
  if (!verdict_ || context_->outcome->HasBeenSet()) return;
  if (!std::all_of(peers_.begin(), peers_.end(),
                   [](const Peer& peer) { return peer.gone; })) {
    return;
  }
  OnFarewellTimeout();
}

void DataflowConductorState::OnFarewellTimeout() {
  if (context_->outcome->HasBeenSet()) return;
  if (verdict_->ok()) {
    context_->outcome->Set(Report());
  } else {
    context_->outcome->Set(*verdict_);
  }
  self_->quit();
}

void DataflowConductorState::TellPeers(DataflowNews::Kind kind,
                                       std::int64_t number,
                                       const std::string& text) {
  for (int p = 0; p < context_->processes(); ++p) {
    if (p == context_->process) continue;
    SendWord(*context_->fabric, p, kConductorChannel, {WireKind(kind), number},
             TextTensor(text))
        .IgnoreError();
  }
}

void DataflowConductorState::OnWatch() {
  if (verdict_) return;
  const std::int64_t own = Handled();
  std::int64_t all = own;
  for (const Peer& peer : peers_) all += peer.handled;
  const auto now = self_->clock().now();
  if (all != handled_) {
    handled_ = all;
    changed_ = now;
  }
  const std::chrono::nanoseconds timeout = ActorTimeout(context_->timeout);
  if (now - changed_ >= timeout) {
    Fail(absl::DeadlineExceededError(absl::StrCat(
        "no handler has returned for ", absl::FormatDuration(context_->timeout),
        ": ", DescribeStages())));
    return;
  }
  TellPeers(DataflowNews::Kind::kAlive, own);
  self_->delayed_send(self_, timeout / kLooksPerTimeout, watch_atom::value);
}

std::int64_t DataflowConductorState::Handled() const {
  std::int64_t handled = 0;
  for (const auto& run : context_->runs) {
    if (run != nullptr) handled += run->handled();
  }
  return handled;
}

std::string DataflowConductorState::DescribeStages() const {
  std::vector<std::string> lines;
  for (const auto& run : context_->runs) {
    if (run != nullptr) lines.push_back(run->Describe());
  }
  for (int p = 0; p < context_->processes(); ++p) {
    if (p == context_->process || peers_[p].done) continue;
    lines.push_back(absl::StrCat(context_->names[p], " is not done"));
  }
  return absl::StrJoin(lines, "; ");
}

DataflowReport DataflowConductorState::Report() const {
  DataflowReport report;
  const Dataflow& flow = *flow_;
  for (std::size_t c = 0; c < uses_.size(); ++c) {
    if (!context_->IsHere(flow.WriterOf(static_cast<int>(c)).stage)) continue;
    report.channels.push_back(
        {flow.channels()[c].name, uses_[c].tensors, uses_[c].in_flight_max});
  }
  return report;
}

DataflowConductor::behavior_type DataflowConductorBehavior(
    DataflowConductorState::Self self, std::shared_ptr<const Dataflow> flow) {
  self->state.Init(self, std::move(flow));
  return {
      [=](const DataflowContextPtr& context) {
        self->state.OnContext(context);
      },
      [=](const DataflowStageDone& message) {
        self->state.OnStageDone(message);
      },
      [=](const DataflowFailure& failure) {
        self->state.Fail(absl::Status(
            static_cast<absl::StatusCode>(failure.code), failure.message));
      },
      [=](const DataflowNews& news) { self->state.OnNews(news); },
      [=](beat_atom) { self->state.OnFarewellTimeout(); },
      [=](watch_atom) { self->state.OnWatch(); },
  };
}

}  // namespace troupe::actors
