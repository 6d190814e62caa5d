// How the parameters of a layer are first filled, with the names and meanings
// of torch.nn.init:
//
//   init::KaimingNormal(fc1.weight(), /*a=*/0, Fan::kOut,
//                       init::Nonlinearity::kRelu);
//   init::Zeros(fc1.bias());
//   init::TruncNormal(fc2.weight(), /*mean=*/0, /*stddev=*/0.02);
//
// They are called in the constructor of a module, for the layers that it adds,
// and set Parameter::init, by which the arena later fills the memory. Draws are
// keyed by seed and name (initializer.h).
//
// Errors: base::StatusError with the parameter's name and shape, if it has
// memory already, if a fan is asked of fewer than two axes, or if a number is
// out of range.

#ifndef NN_AUTOGRAD_INIT_H_
#define NN_AUTOGRAD_INIT_H_

#include "nn/autograd/parameter.h"

namespace troupe::nn::init {

// The function behind a layer, whose gain its weights make up for.
enum class Nonlinearity {
  kLinear,
  kSigmoid,
  kTanh,
  kRelu,
  kLeakyRelu,
  kSelu,
};
// torch.nn.init.calculate_gain; `slope` is that of kLeakyRelu below 0.
double Gain(Nonlinearity nonlinearity, double slope = 0.01);

// Every element has the value.
void Constant(Parameter& p, double value);
void Zeros(Parameter& p);
void Ones(Parameter& p);
// Uniform in [low, high).
void Uniform(Parameter& p, double low = 0, double high = 1);
void Normal(Parameter& p, double mean = 0, double stddev = 1);
// A normal distribution that is cut to [low, high], which are numbers, not
// multiples of stddev.
void TruncNormal(Parameter& p, double mean = 0, double stddev = 1,
                 double low = -2, double high = 2);

// Bound gain sqrt(6 / (fan_in + fan_out)), and standard deviation gain
// sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).
void XavierUniform(Parameter& p, double gain = 1);
void XavierNormal(Parameter& p, double gain = 1);
// Bound gain sqrt(3 / fan), and standard deviation gain / sqrt(fan), with
// Gain(nonlinearity, a) (He et al. 2015, arXiv:1502.01852).
void KaimingUniform(Parameter& p, double a = 0, Fan mode = Fan::kIn,
                    Nonlinearity nonlinearity = Nonlinearity::kLeakyRelu);
void KaimingNormal(Parameter& p, double a = 0, Fan mode = Fan::kIn,
                   Nonlinearity nonlinearity = Nonlinearity::kLeakyRelu);

}  // namespace troupe::nn::init

#endif  // NN_AUTOGRAD_INIT_H_
