#include "tools/trainer/deepspeed/deepspeed_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/trainer/deepspeed/deepspeed_section.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Wrong(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(key, " ", what));
}

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

// Returns a text of the file for a message.
std::string Quoted(const std::string& text) {
  constexpr std::size_t kLettersMax = 80;
  return absl::StrCat("\"", absl::CHexEscape(text).substr(0, kLettersMax),
                      "\"");
}

class Reader {
 public:
  absl::StatusOr<DeepSpeedConfig> Read(const Json& json) {
    DeepSpeedSection whole(&json, "");
    TROUPE_RETURN_IF_ERROR(ReadBatches(whole));
    TROUPE_RETURN_IF_ERROR(
        ReadNumber(whole, "gradient_clipping", "optimizer.clip_grad_norm"));
    TROUPE_RETURN_IF_ERROR(ReadCount(whole, "steps_per_print", "log.every"));
    TROUPE_RETURN_IF_ERROR(ReadPrecision(whole));
    TROUPE_RETURN_IF_ERROR(ReadZero(whole));
    TROUPE_RETURN_IF_ERROR(ReadOptimizer(whole));
    TROUPE_RETURN_IF_ERROR(ReadScheduler(whole));
    whole.AddIgnored(config_.ignored);
    return std::move(config_);
  }

 private:
  void Set(const char* key, std::string value, std::string source) {
    config_.settings.push_back({key, std::move(value), std::move(source)});
  }

  absl::Status ReadNumber(DeepSpeedSection& from, const std::string& name,
                          const char* key) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> number,
                            from.TakeNumber(name));
    if (number) Set(key, Number(*number), from.NameOf(name));
    return absl::OkStatus();
  }

  absl::Status ReadCount(DeepSpeedSection& from, const std::string& name,
                         const char* key) {
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t count, from.TakeCount(name));
    if (count > 0) Set(key, absl::StrCat(count), from.NameOf(name));
    return absl::OkStatus();
  }

  absl::Status ReadFlag(DeepSpeedSection& from, const std::string& name,
                        const char* key) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> flag,
                            from.TakeFlag(name));
    if (flag) Set(key, *flag ? "true" : "false", from.NameOf(name));
    return absl::OkStatus();
  }

  absl::Status ReadBatches(DeepSpeedSection& whole) {
    DeepSpeedBatches& batches = config_.batches;
    TROUPE_ASSIGN_OR_RETURN(batches.train, whole.TakeCount("train_batch_size"));
    TROUPE_ASSIGN_OR_RETURN(batches.micro,
                            whole.TakeCount("train_micro_batch_size_per_gpu"));
    TROUPE_ASSIGN_OR_RETURN(batches.accumulation,
                            whole.TakeCount("gradient_accumulation_steps"));
    return absl::OkStatus();
  }

  absl::Status ReadZero(DeepSpeedSection& whole) {
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection zero,
                            whole.TakeSection("zero_optimization"));
    // DeepSpeed counts the parameters that it gathers ahead, not their bytes.
    for (const auto& [name, key, unit] :
         {std::tuple("stage", "zero.stage", 1),
          std::tuple("stage3_prefetch_bucket_size", "zero.ahead_bytes",
                     parameter_bytes_)}) {
      if (zero.Has(name)) {
        TROUPE_ASSIGN_OR_RETURN(const std::int64_t count, zero.TakeCount(name));
        Set(key, absl::StrCat(count * unit), zero.NameOf(name));
      }
      zero.Drop(name);
    }
    zero.AddIgnored(config_.ignored);
    return absl::OkStatus();
  }

  absl::Status ReadPrecision(DeepSpeedSection& whole) {
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection bf16, whole.TakeSection("bf16"));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> brain,
                            bf16.TakeFlag("enabled"));
    bf16.AddIgnored(config_.ignored);
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection fp16, whole.TakeSection("fp16"));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> half,
                            fp16.TakeFlag("enabled"));
    if (brain.value_or(false) && half.value_or(false)) {
      return Wrong("bf16.enabled", "and fp16.enabled are both true; set one");
    }
    if (brain.value_or(false)) {
      Set("train.precision", "bf16", "bf16.enabled");
      parameter_bytes_ = 2;
    }
    if (!half.value_or(false)) return absl::OkStatus();  // the rest has no use
    parameter_bytes_ = 2;
    Set("train.precision", "f16", "fp16.enabled");
    TROUPE_RETURN_IF_ERROR(ReadLossScale(fp16));
    fp16.AddIgnored(config_.ignored);
    return absl::OkStatus();
  }

  // DeepSpeed's loss scale is dynamic where it is 0.
  absl::Status ReadLossScale(DeepSpeedSection& fp16) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> scale,
                            fp16.TakeNumber("loss_scale"));
    if (scale.value_or(0) != 0) {
      Set("train.loss_scale", Number(*scale), fp16.NameOf("loss_scale"));
      for (const char* unused :
           {"initial_scale_power", "loss_scale_window", "min_loss_scale"}) {
        fp16.Drop(unused);
      }
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> power,
                            fp16.TakeNumber("initial_scale_power"));
    if (power) {
      constexpr double kPowerMax = 127;
      if (*power < 0 || *power > kPowerMax || *power != std::floor(*power)) {
        return Wrong(fp16.NameOf("initial_scale_power"),
                     absl::StrCat("= ", *power, "; write an integer from 0 to ",
                                  kPowerMax));
      }
      Set("train.loss_scale_init", Number(std::exp2(*power)),
          fp16.NameOf("initial_scale_power"));
    }
    TROUPE_RETURN_IF_ERROR(ReadCount(fp16, "loss_scale_window",
                                     "train.loss_scale_growth_interval"));
    return ReadNumber(fp16, "min_loss_scale", "train.loss_scale_min");
  }

  absl::Status ReadOptimizer(DeepSpeedSection& whole) {
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection optimizer,
                            whole.TakeSection("optimizer"));
    TROUPE_ASSIGN_OR_RETURN(const std::string type, optimizer.TakeText("type"));
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection params,
                            optimizer.TakeSection("params"));
    if (!type.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const std::string kind, KindOf(type, params));
      Set("optimizer.kind", kind, optimizer.NameOf("type"));
    }
    TROUPE_RETURN_IF_ERROR(ReadNumber(params, "lr", "optimizer.lr"));
    TROUPE_ASSIGN_OR_RETURN(const std::string betas, params.TakePair("betas"));
    if (!betas.empty()) {
      Set("optimizer.betas", betas, params.NameOf("betas"));
    }
    for (const auto& [name, key] :
         {std::pair("eps", "optimizer.eps"),
          std::pair("weight_decay", "optimizer.weight_decay"),
          std::pair("momentum", "optimizer.momentum"),
          std::pair("dampening", "optimizer.dampening")}) {
      TROUPE_RETURN_IF_ERROR(ReadNumber(params, name, key));
    }
    TROUPE_RETURN_IF_ERROR(ReadFlag(params, "nesterov", "optimizer.nesterov"));
    TROUPE_RETURN_IF_ERROR(ReadFlag(params, "amsgrad", "optimizer.amsgrad"));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> corrects,
                            params.TakeFlag("bias_correction"));
    if (!corrects.value_or(true)) {
      return Wrong(params.NameOf("bias_correction"),
                   "= false is not supported; remove it, or write true");
    }
    optimizer.AddIgnored(config_.ignored);
    params.AddIgnored(config_.ignored);
    return absl::OkStatus();
  }

  // DeepSpeed's Adam decays weights as AdamW does, unless adam_w_mode is false.
  static absl::StatusOr<std::string> KindOf(const std::string& type,
                                            DeepSpeedSection& params) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> decoupled,
                            params.TakeFlag("adam_w_mode"));
    const std::string lower = absl::AsciiStrToLower(type);
    if (lower == "adam") return decoupled.value_or(true) ? "adamw" : "adam";
    if (lower == "adamw" || lower == "sgd" || lower == "lamb") return lower;
    return Wrong("optimizer.type",
                 absl::StrCat("= ", Quoted(type),
                              " is not there; take \"Adam\", \"AdamW\", "
                              "\"SGD\" or \"Lamb\""));
  }

  absl::Status ReadScheduler(DeepSpeedSection& whole) {
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection scheduler,
                            whole.TakeSection("scheduler"));
    TROUPE_ASSIGN_OR_RETURN(const std::string type, scheduler.TakeText("type"));
    TROUPE_ASSIGN_OR_RETURN(DeepSpeedSection params,
                            scheduler.TakeSection("params"));
    if (type == "WarmupLR" || type == "WarmupDecayLR") {
      TROUPE_RETURN_IF_ERROR(ReadRates(type == "WarmupDecayLR", params));
    } else if (type == "WarmupCosineLR") {
      TROUPE_RETURN_IF_ERROR(ReadCosine(params));
    } else if (!type.empty()) {
      return Wrong(
          "scheduler.type",
          absl::StrCat("= ", Quoted(type),
                       " is not there; take \"WarmupLR\", \"WarmupDecayLR\" "
                       "or \"WarmupCosineLR\", or set optimizer.schedule"));
    }
    scheduler.AddIgnored(config_.ignored);
    params.AddIgnored(config_.ignored);
    return absl::OkStatus();
  }

  // Reads the warm-up, which must be linear. Returns its steps, 0 if they are
  // "auto".
  absl::StatusOr<std::int64_t> ReadWarmup(DeepSpeedSection& params,
                                          bool is_auto) {
    TROUPE_ASSIGN_OR_RETURN(const std::string type,
                            params.TakeText("warmup_type"));
    constexpr std::int64_t kDefaultSteps = 1000;
    TROUPE_ASSIGN_OR_RETURN(std::int64_t steps,
                            params.TakeCount("warmup_num_steps"));
    if (is_auto) return 0;
    if (!params.Has("warmup_num_steps")) steps = kDefaultSteps;
    if (steps > 0 && type != "linear") {
      return Wrong(params.NameOf("warmup_type"),
                   "is \"log\", by default too, which is not there; write "
                   "\"linear\"");
    }
    Set("optimizer.warmup_steps", absl::StrCat(steps),
        params.NameOf("warmup_num_steps"));
    return steps;
  }

  // WarmupLR rises from warmup_min_lr to warmup_max_lr; WarmupDecayLR falls
  // back to the former.
  absl::Status ReadRates(bool decays, DeepSpeedSection& params) {
    const bool is_auto = params.IsAuto("warmup_num_steps");
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t warmup,
                            ReadWarmup(params, is_auto));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> least,
                            params.TakeNumber("warmup_min_lr"));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> most,
                            params.TakeNumber("warmup_max_lr"));
    if (most.value_or(1) <= 0 || least.value_or(0) < 0) {
      return Wrong(params.NameOf("warmup_max_lr"),
                   "must be above 0, and warmup_min_lr at least 0");
    }
    if (least.value_or(0) > 0 && !most) {
      return Wrong(params.NameOf("warmup_max_lr"),
                   "is not given, and warmup_min_lr is a part of it; give it");
    }
    if (most)
      Set("optimizer.lr", Number(*most), params.NameOf("warmup_max_lr"));
    const double part = most ? least.value_or(0) / *most : 0;
    if (warmup > 0) {
      Set("optimizer.warmup_start", Number(part),
          params.NameOf("warmup_min_lr"));
    }
    if (!decays) return absl::OkStatus();
    Set("optimizer.schedule", "linear", "scheduler.type");
    Set("optimizer.min_factor", Number(part), params.NameOf("warmup_min_lr"));
    return ReadTotal(params, warmup);
  }

  absl::Status ReadCosine(DeepSpeedSection& params) {
    const bool is_auto = params.IsAuto("warmup_num_steps");
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t warmup,
                            ReadWarmup(params, is_auto));
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> start,
                            params.TakeNumber("warmup_min_ratio"));
    if (warmup > 0) {
      Set("optimizer.warmup_start", Number(start.value_or(0)),
          params.NameOf("warmup_min_ratio"));
    }
    Set("optimizer.schedule", "cosine", "scheduler.type");
    constexpr double kDefaultRatio = 0.0001;
    TROUPE_ASSIGN_OR_RETURN(const std::optional<double> end,
                            params.TakeNumber("cos_min_ratio"));
    Set("optimizer.min_factor", Number(end.value_or(kDefaultRatio)),
        params.NameOf("cos_min_ratio"));
    return ReadTotal(params, warmup);
  }

  // Reads the steps behind the warm-up.
  absl::Status ReadTotal(DeepSpeedSection& params, std::int64_t warmup) {
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t total,
                            params.TakeCount("total_num_steps"));
    if (total == 0) return absl::OkStatus();
    if (total <= warmup) {
      return Wrong(params.NameOf("total_num_steps"),
                   absl::StrCat("= ", total, " must be above the ", warmup,
                                " steps of the warm-up"));
    }
    Set("optimizer.schedule_steps", absl::StrCat(total - warmup),
        params.NameOf("total_num_steps"));
    return absl::OkStatus();
  }

  DeepSpeedConfig config_;
  // Bytes of one parameter in the precision of the file.
  int parameter_bytes_ = 4;
};

}  // namespace

absl::StatusOr<DeepSpeedConfig> ParseDeepSpeedConfig(absl::string_view text) {
  if (static_cast<std::int64_t>(text.size()) > kDeepSpeedBytesMax) {
    return Wrong("the file", absl::StrCat("has more than ", kDeepSpeedBytesMax,
                                          " bytes; shorten it"));
  }
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Wrong("the file",
                 "is not valid JSON; write JSON as DeepSpeed takes it");
  }
  if (!json.is_object()) {
    return Wrong("the file", "is no object; write it in { and }");
  }
  return Reader().Read(json);
}

absl::StatusOr<DeepSpeedBatches> CompleteBatches(
    const DeepSpeedBatches& batches, int dp) {
  DeepSpeedBatches all = batches;
  if (all.micro == 0 && all.accumulation == 0) return all;
  if (all.train == 0 && all.micro == 0) {
    return Wrong("gradient_accumulation_steps",
                 "alone says no size of batches; give train_batch_size or "
                 "train_micro_batch_size_per_gpu too");
  }
  if (all.accumulation == 0) {
    all.accumulation =
        all.train > 0 && all.micro > 0
            ? std::max<std::int64_t>(1, all.train / dp / all.micro)
            : 1;
  }
  const double replicas = dp;
  const double steps = static_cast<double>(all.accumulation);
  if (all.train == 0) {
    const double train = static_cast<double>(all.micro) * steps * replicas;
    if (train > kDeepSpeedCountMax)
      return Wrong("train_batch_size", "is too large; give a smaller size");
    all.train = static_cast<std::int64_t>(train);
  }
  if (all.micro == 0) {
    all.micro = static_cast<std::int64_t>(static_cast<double>(all.train) /
                                          replicas / steps);
  }
  if (static_cast<double>(all.micro) * steps * replicas !=
      static_cast<double>(all.train)) {
    return Wrong(
        "train_batch_size",
        absl::StrCat("= ", all.train, " is not train_micro_batch_size_per_gpu ",
                     all.micro, " x gradient_accumulation_steps ",
                     all.accumulation, " x mesh.dp ", dp,
                     "; change one of them"));
  }
  return all;
}

}  // namespace troupe::tools
