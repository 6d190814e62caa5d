#include "tools/profile/profile_command.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/planning/dtype_choice.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "data/registry.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/options_reader.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {
namespace {

constexpr char kHelp[] =
    R"(trainer profile [--config=FILE] [options]

Trains for a few seconds with the given configuration, and prints how the time
of a step divides among ops. Each op is timed by itself, on the CPU; "outside
ops" is the rest of a step: waiting for other ranks and for samples, messages,
and the scheduling of ops. Nothing is evaluated, saved or logged.

Options:
  --config=FILE            The same as that of trainer train.
  --set section.key=value  Likewise.
  --ranks=N                Likewise.
  --seconds=S              Time to train: 5.
  --help                   This text.

For example:

  trainer profile --set model.kind=resnet18 --set data.kind=synthetic \
      --set data.input_shape=32,32,3

trainer train --trace=FILE records the same steps as a timeline, which shows
what ranks and stages wait for.
)";

constexpr double kSecondsMax = 3600;
// Ops that take a smaller fraction of a step share one row.
constexpr double kRowShareMin = 0.005;

std::string Row(absl::string_view name, const std::string& calls, double ms,
                double share) {
  return absl::StrFormat("%-28s%13s%11.3f%12.1f%%\n", name, calls, ms,
                         100 * share);
}

}  // namespace

std::string ProfileHelp() { return kHelp; }

absl::StatusOr<ProfileRequest> ParseProfile(
    const std::vector<std::string>& arguments) {
  ProfileRequest request;
  OptionsReader reader("profile");
  reader.Path("--config=examples/glyphs/glyphs.toml", &request.config);
  reader.Texts("--set=model.kind=resnet18", &request.sets);
  reader.Text("--ranks=2", &request.ranks);
  reader.Real("--seconds=5", /*min=*/0.01, kSecondsMax, &request.seconds);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  return request;
}

std::string FormatProfile(const StepProfile& profile) {
  const double step = 1 / profile.steps_per_second;
  const double steps = profile.seconds / step * profile.ranks;
  std::string text = absl::StrCat(
      absl::StrFormat("a step takes %.4g ms: ", 1e3 * step),
      FormatCount(static_cast<std::int64_t>(profile.batch / step)),
      " samples/s on ", profile.ranks, profile.ranks == 1 ? " rank" : " ranks",
      ", timed op by op\n\n");
  absl::StrAppendFormat(&text, "%-28s%13s%11s%13s\n", "op", "calls a step",
                        "ms a step", "of the step");
  double rest = 1, small = 0;
  int number = 0;
  for (const OpClock::Time& op : profile.times) {
    const double share = op.seconds / steps / step;
    rest -= share;
    if (share < kRowShareMin) {
      small += share;
      ++number;
      continue;
    }
    text += Row(op.name,
                absl::StrFormat("%.3g", static_cast<double>(op.calls) / steps),
                1e3 * share * step, share);
  }
  if (number > 0) {
    text += Row(absl::StrCat(number, " more"), "", 1e3 * small * step, small);
  }
  return text + Row("outside ops", "", 1e3 * rest * step, rest);
}

absl::Status ProfileSteps(const LoadedConfig& loaded,
                          const ProfileRequest& request,
                          base::FileSystem& files,
                          const std::function<bool(absl::string_view)>& write,
                          const NoteFn& note) {
  if (!loaded.config.job.device.is_host()) {
    return ErrorAt(
        loaded, {"train.device"},
        "ops are timed on the CPU: those of a GPU run later than "
        "they are called; run \"trainer train --trace=FILE\" instead");
  }
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenData(loaded, files, note));
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          BuildSpec(loaded, splits, files));
  if (spec.open_dtype.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(spec, actors::WithDType(spec, /*plan=*/nullptr));
  }
  spec = actors::StepsAlone(spec);
  OpClock clock;
  clock.Attach(spec);
  actors::TimedPart part;
  part.begin = [&clock] { clock.Start(); };
  part.end = [&clock] { clock.Stop(); };
  const absl::StatusOr<double> rate =
      actors::StepsPerSecond(spec, request.seconds, part);
  if (!rate.ok()) return AtKeys(loaded, rate.status());
  StepProfile profile;
  profile.steps_per_second = *rate;
  profile.batch = spec.plan.global_batch_size;
  profile.ranks = spec.plan.mesh.size();
  profile.seconds = clock.seconds();
  profile.times = clock.times();
  write(FormatProfile(profile));
  return absl::OkStatus();
}

}  // namespace troupe::tools
