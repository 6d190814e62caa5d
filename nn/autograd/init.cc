#include "nn/autograd/init.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_error.h"

namespace troupe::nn::init {
namespace {

std::string NameOf(const Parameter& p) {
  return absl::StrCat(p.name.empty() ? "a parameter" : p.name, " ",
                      p.shape.ToString());
}

// Throws if the parameter has memory, which `initializer` would not reach.
void Set(const char* name, Parameter& p, const Initializer& initializer) {
  if (p.index >= 0) {
    throw base::StatusError(absl::FailedPreconditionError(absl::StrCat(
        "init::", name, ": ", NameOf(p),
        " has memory already; call it in the module's constructor")));
  }
  p.init = initializer;
}

[[noreturn]] void Refuse(const char* name, const Parameter& p,
                         const std::string& why) {
  throw base::StatusError(absl::InvalidArgumentError(
      absl::StrCat("init::", name, ": ", NameOf(p), ": ", why)));
}

void CheckFans(const char* name, const Parameter& p) {
  if (p.shape.rank() >= 2) return;
  Refuse(name, p, "a fan needs at least two axes; choose Uniform or Normal");
}

void CheckStddev(const char* name, const Parameter& p, double stddev) {
  if (stddev >= 0) return;
  Refuse(name, p,
         absl::StrCat("a standard deviation is at least 0, got ", stddev));
}

void CheckLimits(const char* name, const Parameter& p, double low,
                 double high) {
  if (low <= high) return;
  Refuse(name, p,
         absl::StrCat("limits are ascending, got ", low, " and ", high));
}

}  // namespace

double Gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::kLinear:
    case Nonlinearity::kSigmoid:
      return 1;
    case Nonlinearity::kTanh:
      return kTanhGain;
    case Nonlinearity::kRelu:
      return kReluGain;
    case Nonlinearity::kLeakyRelu:
      return LeakyReluGain(slope);
    case Nonlinearity::kSelu:
      return 3.0 / 4;
  }
  return 1;
}

void Constant(Parameter& p, double value) {
  Set("Constant", p, Initializer::Constant(value));
}

void Zeros(Parameter& p) { Set("Zeros", p, Initializer::Constant(0)); }

void Ones(Parameter& p) { Set("Ones", p, Initializer::Constant(1)); }

void Uniform(Parameter& p, double low, double high) {
  CheckLimits("Uniform", p, low, high);
  Initializer uniform = Initializer::Uniform(0);
  uniform.a = low;
  uniform.b = high;
  Set("Uniform", p, uniform);
}

void Normal(Parameter& p, double mean, double stddev) {
  CheckStddev("Normal", p, stddev);
  Set("Normal", p, Initializer::Normal(mean, stddev));
}

void TruncNormal(Parameter& p, double mean, double stddev, double low,
                 double high) {
  CheckStddev("TruncNormal", p, stddev);
  CheckLimits("TruncNormal", p, low, high);
  Set("TruncNormal", p, Initializer::TruncatedNormal(mean, stddev, low, high));
}

void XavierUniform(Parameter& p, double gain) {
  CheckFans("XavierUniform", p);
  Set("XavierUniform", p, Initializer::XavierUniform(p.shape, gain));
}

void XavierNormal(Parameter& p, double gain) {
  CheckFans("XavierNormal", p);
  Set("XavierNormal", p, Initializer::XavierNormal(p.shape, gain));
}

void KaimingUniform(Parameter& p, double a, Fan mode,
                    Nonlinearity nonlinearity) {
  CheckFans("KaimingUniform", p);
  Set("KaimingUniform", p,
      Initializer::KaimingUniform(p.shape, mode, Gain(nonlinearity, a)));
}

void KaimingNormal(Parameter& p, double a, Fan mode,
                   Nonlinearity nonlinearity) {
  CheckFans("KaimingNormal", p);
  Set("KaimingNormal", p,
      Initializer::KaimingNormal(p.shape, mode, Gain(nonlinearity, a)));
}

}  // namespace troupe::nn::init
