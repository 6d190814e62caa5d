// Lowers the learning rate when a metric has stopped improving
// (torch.optim.lr_scheduler.ReduceLROnPlateau, with its options and defaults).
//
//   PlateauOptions options;
//   options.patience = 3;
//   ReduceLROnPlateau plateau(sgd, options);
//   AllReduce(loss, ReduceOp::kAvg);            // the same on all ranks
//   plateau.Step(loss.item());                  // after each epoch
//
// It sets the optimizer's rate (Optimizer::set_lr), and so ends a schedule.
// Each rank has its own, which all get the same metrics: otherwise their rates
// would differ. It is Saved, as "plateau".
//
// Errors: base::StatusError. kInvalidArgument names the option.
// Threads: the rank's own. The optimizer outlives it.

#ifndef TROUPE_PLATEAU_H_
#define TROUPE_PLATEAU_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "troupe/optimizer.h"
#include "troupe/state.h"

namespace troupe {

struct PlateauOptions {
  bool maximize = false;  // mode "max": larger metrics are better
  double factor = 0.1;    // multiplies the rate; below 1
  // Number of calls without an improvement that the rate stays for.
  std::int64_t patience = 10;
  // Change that counts as an improvement: a share of the best metric, or, if
  // not `relative` (threshold_mode "abs"), a difference from it.
  double threshold = 1e-4;
  bool relative = true;
  std::int64_t cooldown = 0;  // calls after a change that count nothing
  double min_lr = 0;
  double eps = 1e-8;  // a smaller change of the rate is not made
};

class ReduceLROnPlateau : public Saved {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer,
                             const PlateauOptions& options = {});

  void Step(double metric);
  double best() const { return best_; }

  // Saved:
  absl::string_view default_name() const override { return "plateau"; }
  void AddTo(State& state) override;

 private:
  bool IsBetter(double metric) const;

  Optimizer& optimizer_;
  const PlateauOptions options_;
  double best_;
  std::int64_t bad_ = 0;      // calls since the best one
  std::int64_t cooling_ = 0;  // calls of the cooldown that are left
};

}  // namespace troupe

#endif  // TROUPE_PLATEAU_H_
