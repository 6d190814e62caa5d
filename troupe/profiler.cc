#include "troupe/profiler.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "troupe/internal/replace_file.h"
#include "troupe/profile/op_recorder.h"

namespace troupe {
namespace {

void CheckOptions(const ProfilerOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw base::StatusError(absl::InvalidArgumentError(what));
  };
  const std::pair<const char*, int> counts[] = {
      {"wait", options.wait},
      {"warmup", options.warmup},
      {"active", options.active},
      {"repeat", options.repeat},
      {"skip_first", options.skip_first}};
  for (const auto& [name, count] : counts) {
    if (count >= 0) continue;
    refuse(absl::StrCat("ProfilerOptions.", name, " is ", count,
                        "; give a number of steps or cycles, at least 0"));
  }
  if (options.events_max < 1) {
    refuse(absl::StrCat("ProfilerOptions.events_max is ", options.events_max,
                        "; keep at least 1 event"));
  }
  if (options.active > 0) return;
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    refuse(absl::StrCat("ProfilerOptions.", name, " is ", count,
                        ", but active is 0, by which all steps are recorded; "
                        "set active to the number of steps of a cycle"));
  }
}

}  // namespace

Profiler::Profiler(Rank& rank, const ProfilerOptions& options,
                   std::string folder)
    : rank_(rank),
      options_(options),
      folder_(std::move(folder)),
      exceptions_(std::uncaught_exceptions()) {
  CheckOptions(options_);
  if (rank_.recorder().owned()) {
    throw base::StatusError(absl::FailedPreconditionError(
        absl::StrCat("rank ", rank_.number(),
                     " has a Profiler already; end that one first")));
  }
  rank_.recorder().set_owned(true);
  Enter(PhaseOf(0));
}

Profiler::~Profiler() noexcept(false) {
  if (stopped_) return;
  const absl::Status status = base::Try([this] { Stop(); });
  if (status.ok() || std::uncaught_exceptions() > exceptions_) return;
  throw base::StatusError(status);
}

Profiler::Phase Profiler::PhaseOf(std::int64_t step) const {
  if (options_.active == 0) return Phase::kActive;
  step -= options_.skip_first;
  if (step < 0) return Phase::kNone;
  const int cycle = options_.wait + options_.warmup + options_.active;
  if (options_.repeat > 0 && step / cycle >= options_.repeat) {
    return Phase::kNone;
  }
  const auto place = static_cast<int>(step % cycle);
  if (place < options_.wait) return Phase::kNone;
  return place < options_.wait + options_.warmup ? Phase::kWarmup
                                                 : Phase::kActive;
}

void Profiler::Enter(Phase phase) {
  OpRecorder& recorder = rank_.recorder();
  const Phase before = std::exchange(phase_, phase);
  if (phase != Phase::kNone && !recorder.records()) {
    recorder.Start(
        {options_.record_shapes, options_.profile_memory, options_.events_max});
  } else if (phase == Phase::kActive && before == Phase::kWarmup) {
    recorder.Clear();
  }
  if (phase == Phase::kActive) BeginStepRange();
}

void Profiler::BeginStepRange() {
  step_range_ =
      rank_.recorder().BeginRange("step", absl::StrCat("ProfilerStep#", step_));
}

void Profiler::Step() {
  if (stopped_) return;
  rank_.recorder().EndRange(step_range_);
  ++step_;
  if (phase_ == Phase::kActive) ++active_steps_;
  const Phase next = PhaseOf(step_);
  const bool ends = options_.active > 0 && active_steps_ == options_.active;
  if (ends) EndCycle();
  Enter(next);
}

void Profiler::Stop() {
  if (std::exchange(stopped_, true)) return;
  rank_.recorder().set_owned(false);
  if (phase_ == Phase::kActive && (active_steps_ > 0 || options_.active == 0)) {
    EndCycle();
  } else if (rank_.recorder().records()) {
    rank_.recorder().Finish();
  }
  phase_ = Phase::kNone;
}

void Profiler::EndCycle() {
  profile_ = rank_.recorder().Finish();
  profile_.steps = std::max<std::int64_t>(std::exchange(active_steps_, 0), 1);
  phase_ = Phase::kNone;
  ++cycles_;
  if (!folder_.empty()) Write();
  if (options_.on_trace_ready) options_.on_trace_ready(*this);
}

void Profiler::Write() const {
  base::PosixFileSystem files;
  base::OrThrow(files.CreateFolder(folder_));
  const std::string path = absl::StrCat(folder_, "/rank", rank_.number(),
                                        "_cycle", cycles_, ".json");
  base::OrThrow(ReplaceFile(files, path, [&](const std::string& to) {
    return base::WriteWholeFile(files, to, profile_.ToJson());
  }));
}

const OpProfile& Profiler::profile() const {
  if (cycles_ == 0) {
    throw base::StatusError(absl::FailedPreconditionError(
        "no cycle of the Profiler has ended; call Step() after each step of "
        "the loop, or Stop() first"));
  }
  return profile_;
}

std::vector<OperatorTime> Profiler::KeyAverages(
    const TableOptions& options) const {
  return profile().KeyAverages(options);
}

std::string Profiler::Table(const TableOptions& options) const {
  return profile().Table(options);
}

RecordFunction::RecordFunction(Rank& rank, absl::string_view name)
    : recorder_(rank.recorder()), range_(recorder_.BeginRange("part", name)) {}

RecordFunction::~RecordFunction() { recorder_.EndRange(range_); }

}  // namespace troupe
