#include "troupe/profile/op_recorder.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/device_queues.h"

namespace troupe {

int OpRecorder::Texts::NumberOf(const std::string& text,
                                std::vector<std::string>& all) {
  if (text.empty()) return 0;
  const auto [found, is_new] =
      numbers_.emplace(text, static_cast<int>(all.size()));
  if (is_new) all.push_back(text);
  return found->second;
}

OpRecorder::OpRecorder(nn::Context& context, nn::Kernels& kernels, int rank)
    : context_(context), kernels_(kernels), rank_(rank) {}

void OpRecorder::Start(const Options& options) {
  TROUPE_CHECK(!records(), "the recorder records one profile at a time");
  options_ = options;
  ops_.emplace(kernels_, static_cast<nn::OpObserver&>(*this));
  Clear();
}

void OpRecorder::Clear() {
  profile_ = OpProfile();
  profile_.rank = rank_;
  modules_.Clear();
  shapes_.Clear();
  open_.clear();  // an exception may have left an op
  ranges_.clear();
  module_of_node_.clear();
  bytes_ = BytesNow();
  Settle();
  start_ = std::chrono::steady_clock::now();
}

OpProfile OpRecorder::Finish() {
  TROUPE_CHECK(records(), "a profile was started");
  Settle();
  while (!ranges_.empty()) EndRange(ranges_.back().number);
  profile_.micros = Now();
  ops_->Restore();
  ops_.reset();
  return std::exchange(profile_, OpProfile());
}

double OpRecorder::Now() const {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start_)
      .count();
}

void OpRecorder::Settle() {
  if (kernels_.queues() == nullptr) return;
  // A rank that ends by an exception waits for nothing any more.
  if (std::uncaught_exceptions() > 0) return;
  // An error of the device is told by the next one who waits for it.
  nn::Synchronize(kernels_, nn::Record(kernels_, nn::Queue::kCompute))
      .IgnoreError();
}

std::int64_t OpRecorder::BytesNow() const {
  if (!options_.memory) return -1;
  return static_cast<std::int64_t>(kernels_.allocator().stats().bytes_in_use);
}

bool OpRecorder::HasRoom() {
  const std::size_t kept =
      profile_.ops.size() + profile_.ranges.size() + profile_.events.size();
  if (static_cast<std::int64_t>(kept) < options_.events_max) return true;
  ++profile_.dropped;
  return false;
}

int OpRecorder::BeginRange(absl::string_view category, absl::string_view name) {
  if (!records()) return -1;
  OpenRange& range = ranges_.emplace_back();
  range.number = next_range_++;
  range.slice.rank = rank_;
  range.slice.category = std::string(category);
  range.slice.name = std::string(name);
  Settle();
  range.slice.micros = Now();
  return range.number;
}

void OpRecorder::EndRange(int range) {
  const auto open =
      std::find_if(ranges_.begin(), ranges_.end(),
                   [range](const auto& each) { return each.number == range; });
  if (open == ranges_.end()) return;  // it began in another profile
  Settle();
  open->slice.duration = Now() - open->slice.micros;
  if (HasRoom()) profile_.ranges.push_back(std::move(open->slice));
  ranges_.erase(open);
}

void OpRecorder::Record(const actors::TraceEvent& event) {
  if (records() && HasRoom()) profile_.events.push_back({event, Now()});
}

std::int64_t OpRecorder::BeginOp(const nn::OpCall& /*call*/) {
  Settle();
  open_.push_back({Now(), 0});
  return 0;
}

void OpRecorder::EndOp(const nn::OpCall& call, std::int64_t /*token*/) {
  Close(call);
}

void OpRecorder::Close(const nn::OpCall& call) {
  Settle();
  const double end = Now();
  const OpenOp op = open_.back();
  open_.pop_back();
  OpEvent event;
  event.name = call.name;
  event.micros = op.begin;
  event.total = end - op.begin;
  event.self = event.total - op.in_others;
  if (!open_.empty()) open_.back().in_others += event.total;
  event.module = ModuleNow();
  event.shapes = ShapesOf(call);
  event.bytes = BytesNow();
  event.grown = event.bytes - bytes_;
  bytes_ = event.bytes;
  if (HasRoom()) profile_.ops.push_back(event);
}

OpRecorder::Call::Call(OpRecorder& recorder, const char* name,
                       std::initializer_list<const nn::Tensor*> tensors)
    : recorder_(recorder.records() ? &recorder : nullptr) {
  if (recorder_ == nullptr) return;
  for (const nn::Tensor* tensor : tensors) {
    if (tensor->defined()) tensors_.push_back(tensor);
  }
  call_.name = name;
  call_.tensors = tensors_;
  depth_ = recorder_->open_.size();
  recorder_->BeginOp(call_);
}

OpRecorder::Call::~Call() {
  if (recorder_ == nullptr || !recorder_->records() ||
      recorder_->open_.size() <= depth_) {
    return;  // the profile that it began in has ended
  }
  // An exception may have left ops within it.
  recorder_->open_.resize(depth_ + 1);
  recorder_->Close(call_);
}

int OpRecorder::ModuleNow() {
  const nn::Tape* const tape = context_.tape();
  const int running = tape == nullptr ? -1 : tape->running_node();
  if (running >= 0) {
    const bool known = running < static_cast<int>(module_of_node_.size());
    return known ? module_of_node_[running] : 0;
  }
  const int module = modules_.NumberOf(context_.path(), profile_.modules);
  // The node that this op's front will record, if it records one; those before
  // it that had no op are views in the same module.
  if (tape != nullptr) {
    module_of_node_.resize(tape->num_nodes() + 1, module);
    module_of_node_.back() = module;
  }
  return module;
}

int OpRecorder::ShapesOf(const nn::OpCall& call) {
  if (!options_.shapes) return 0;
  std::string text;
  for (const nn::Tensor* tensor : call.tensors) {
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    nn::DTypeName(tensor->dtype()), tensor->shape().ToString());
  }
  return shapes_.NumberOf(text, profile_.shapes);
}

}  // namespace troupe
