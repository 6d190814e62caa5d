// The tensors of a chunk that a checkpoint has: parameters and optimizer
// states, which live in arenas, and buffers. Copies them into a shard, and
// reads them from a checkpoint or a file of weights.
//
//   SavedTensors saved({{arena, optimizer, &counts}}, buffers, copies,
//                      kernels);
//   TROUPE_RETURN_IF_ERROR(saved.ReadWeights(weights));
//   TROUPE_RETURN_IF_ERROR(saved.CopyInto(scalars, /*share=*/{}, shard));
//   TROUPE_RETURN_IF_ERROR(saved.Restore(checkpoint, /*updates=*/100,
//                                        /*allow_missing=*/false));
//
// A checkpoint has whole parameters and states. Ranks along tp that have pieces
// (pieces.h), and replicas that have slices of states, read them whole and keep
// their own part. To save them, either each rank copies its own parts, which
// all write into one file (nn/serialize/tensor_parts.h), or the first rank is
// given whole ones.
//
// It owns nothing: all that it is given outlives it. Tensors of a device pass
// through host memory.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_SAVED_TENSORS_H_
#define ACTORS_CHUNKS_SAVED_TENSORS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/chunks/pieces.h"
#include "actors/chunks/update_counts.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/buffer.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "nn/serialize/weight_file.h"

namespace troupe::actors {

class SavedTensors {
 public:
  // The parameters of one dtype.
  struct Part {
    nn::ParameterArena* arena = nullptr;
    nn::Optimizer* optimizer = nullptr;  // null: none is attached
    UpdateCounts* counts = nullptr;      // saved if Optimizer::CountsUpdates()
    // Whole tensors that take the place of the rank's pieces and slices in a
    // checkpoint; empty: it has none of these, or copies nothing.
    WholeSlots wholes = {};
  };

  // Choice of the elements that a rank copies.
  struct Share {
    // Whether it copies its own parts of tensors; false: whole ones.
    bool in_place = false;
    // Whether it is the first of the replicas, and of the ranks along tp. With
    // `in_place`, the first of both copies what belongs to no other: buffers,
    // numbers, and the parameters of which each rank has all.
    bool first_replica = true;
    bool first_piece = true;

    bool is_first() const { return first_replica && first_piece; }
  };

  // `copies`: names of the parameters that an earlier stage saves.
  SavedTensors(std::vector<Part> parts, absl::Span<nn::Buffer* const> buffers,
               const std::set<std::string>& copies, nn::Kernels& kernels)
      : parts_(std::move(parts)),
        buffers_(buffers),
        copies_(copies),
        kernels_(kernels) {}

  // Reads the parameters and buffers that the file has; the others keep their
  // values. Errors: those of nn::WeightFile::Read().
  absl::Status ReadWeights(const nn::WeightFile& weights);
  // Reads master values and averages of 16-bit parameters, which otherwise
  // begin as the rounded values.
  absl::Status ReadWideCopies(const nn::WeightFile& weights,
                              const nn::ParameterArena& arena);

  // Does the same as ChunkParameters::CopyInto().
  absl::Status CopyInto(const nn::Tensor& scalars, const Share& share,
                        CheckpointShard& shard) const;
  // Does the same as ChunkParameters::Restore(). `allow_missing`: whether a
  // tensor that the checkpoint lacks keeps its value.
  absl::Status Restore(const Checkpoint& checkpoint, double updates,
                       bool allow_missing);

 private:
  // Calls read(host) with `tensor`, or with host memory for it that is then
  // copied to `tensor`.
  template <typename Read>
  absl::Status Fill(const nn::Tensor& tensor, const Read& read);
  // Calls read(host), or read(whole) with memory for the tensor of which `host`
  // is the same piece as that of `parameter`, and which is then copied to it.
  template <typename Read>
  absl::Status ReadPiece(const nn::Parameter& parameter, const nn::Tensor& host,
                         const Read& read) const;
  // Calls read(host) with host memory for a whole state of the slot, of which
  // then the elements are copied to `state` that the arena owns.
  template <typename Read>
  absl::Status FillState(const nn::ParameterArena& arena,
                         const nn::ArenaSlot& slot, const nn::Tensor& state,
                         const Read& read);
  // Returns what was gathered as the value of a slot, for number 0, or as its
  // state number - 1; null: the rank's own is whole.
  static const nn::Tensor* Gathered(const Part& part, const nn::ArenaSlot& slot,
                                    std::size_t number);
  // Returns the memory of a state of a slot, of which the rank has all.
  static nn::Tensor OwnState(const Part& part, const nn::ArenaSlot& slot,
                             std::size_t i);
  // Copies a tensor for a checkpoint, in host memory.
  absl::StatusOr<nn::TensorPart> CopyOf(const std::string& name,
                                        const nn::Tensor& tensor) const;
  // Copies what the rank writes of the value of a slot, for number 0, or of its
  // state number - 1.
  absl::StatusOr<nn::TensorPart> PartOf(const std::string& name,
                                        const nn::ParameterArena& arena,
                                        const nn::ArenaSlot& slot,
                                        std::size_t number,
                                        const Share& share) const;
  // Adds copies of the rank's parts of all tensors.
  absl::Status CopyParts(const Share& share, CheckpointShard& shard) const;
  // Adds copies of whole tensors.
  absl::Status CopyWholes(CheckpointShard& shard) const;
  // Calls of_value(name, part, slot) for the value of each parameter,
  // of_state(name, part, slot, i) for its state i, and of_buffer(name, tensor)
  // for each buffer, until a call fails. Names are those of `saved`, unless it
  // is null.
  template <typename OfValue, typename OfState, typename OfBuffer>
  absl::Status ForEachSaved(const Checkpoint* saved, const OfValue& of_value,
                            const OfState& of_state,
                            const OfBuffer& of_buffer) const;
  // Restores the optimizers' states, or all other tensors.
  absl::Status RestoreTensors(const Checkpoint& checkpoint, bool states,
                              bool allow_missing);

  const std::vector<Part> parts_;
  const absl::Span<nn::Buffer* const> buffers_;
  const std::set<std::string>& copies_;
  nn::Kernels& kernels_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_SAVED_TENSORS_H_
