// Puts pieces of parameters together for a checkpoint: ranks along tp have
// equal parts of those that are split (nn/autograd/sharding.h), and files have
// them whole. So are the states of which replicas have slices.
//
//     WholeSlots wholes(arena.slots().size());
//     wholes[i] = {value, momentum};          // of a parameter that is split
//     wholes[j] = {nn::Tensor(), momentum};   // of one whose states are shared
//
// Threads: any number.

#ifndef ACTORS_CHUNKS_PIECES_H_
#define ACTORS_CHUNKS_PIECES_H_

#include <vector>

#include "nn/autograd/parameter.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// Whole tensors in host memory of each slot of an arena: value, then states.
// Undefined, or left out: the rank's own tensor is whole.
using WholeSlots = std::vector<std::vector<nn::Tensor>>;

// Copies the piece of the rank at `coord` along the parameter's axis into
// `whole`; both are of one dtype, in host memory. A state has the same pieces
// as its parameter.
void CopyIntoWhole(const nn::Parameter& parameter, int coord,
                   const nn::Tensor& piece, const nn::Tensor& whole);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_PIECES_H_
