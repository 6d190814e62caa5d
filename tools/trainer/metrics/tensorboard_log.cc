#include "tools/trainer/metrics/tensorboard_log.h"

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "tools/tensorboard/event.pb.h"

namespace troupe::tools {
namespace {

// TensorFlow's name of the format, which readers check.
constexpr char kFileVersion[] = "brain.Event:2";

events::Event EventAt(std::int64_t step, absl::Time time) {
  events::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(time - absl::UnixEpoch()));
  event.set_step(step);
  return event;
}

void AddScalar(const char* tag, double value, events::Event& event) {
  events::Summary::Value* scalar = event.mutable_summary()->add_value();
  scalar->set_tag(tag);
  scalar->set_simple_value(static_cast<float>(value));
}

}  // namespace

std::string EventFileName::ToString() const {
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d",
                         absl::ToUnixSeconds(time), host, process);
}

absl::StatusOr<TensorBoardLog> TensorBoardLog::Open(base::FileSystem& files,
                                                    const std::string& folder,
                                                    const EventFileName& name) {
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(folder));
  TROUPE_ASSIGN_OR_RETURN(
      RecordFile file,
      RecordFile::Create(files, base::JoinPath(folder, name.ToString())));
  events::Event version = EventAt(/*step=*/0, name.time);
  version.set_file_version(kFileVersion);
  TROUPE_RETURN_IF_ERROR(file.Append(version.SerializeAsString()));
  return TensorBoardLog(std::move(file));
}

absl::Status TensorBoardLog::OnStart(const StartEntry& entry) {
  events::Event event = EventAt(entry.first_step + 1, entry.time);
  event.mutable_session_log()->set_status(events::SessionLog::START);
  return file_.Append(event.SerializeAsString());
}

absl::Status TensorBoardLog::OnStep(const StepEntry& entry) {
  events::Event event = EventAt(entry.step, entry.time);
  AddScalar("train/loss", entry.loss, event);
  if (entry.accuracy) AddScalar("train/accuracy", *entry.accuracy, event);
  AddScalar("train/lr", entry.lr, event);
  if (entry.loss_scale) {
    AddScalar("train/loss_scale", *entry.loss_scale, event);
    AddScalar("train/skipped_steps", double(entry.skipped_steps), event);
  }
  if (entry.grad_norm) AddScalar("train/grad_norm", *entry.grad_norm, event);
  AddScalar("train/samples_per_second", entry.samples_per_s, event);
  return file_.Append(event.SerializeAsString());
}

absl::Status TensorBoardLog::OnEvaluation(const EvaluationEntry& entry) {
  events::Event event = EventAt(entry.step, entry.time);
  AddScalar("eval/loss", entry.loss, event);
  if (entry.accuracy) AddScalar("eval/accuracy", *entry.accuracy, event);
  return file_.Append(event.SerializeAsString());
}

}  // namespace troupe::tools
