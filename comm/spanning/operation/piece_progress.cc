#include "comm/spanning/operation/piece_progress.h"

namespace troupe::comm::internal {

void PieceProgress::Reset(int frames, int nodes) {
  stage_ = Stage::kWaiting;
  parts_missing_ = false;
  frames_missing_ = frames;
  sends_out_ = 0;
  nodes_.assign(nodes, Arrived());
  value_ = Arrived();
  parts_.clear();
  buffers_.clear();
}

void PieceProgress::Place(int node, int member, const char* to) {
  of(node).data = to;
  of(node).placed_by = member;
}

bool PieceProgress::Receiving(int node, int member) const {
  if (node >= nodes()) return false;
  return of(node).placed_by == member && !of(node).whole;
}

void PieceProgress::Arrive(int node) {
  of(node).whole = true;
  --frames_missing_;
}

void PieceProgress::AddFromNote(int node, int member, const char* data) {
  of(node) = {data, member, true};
  --frames_missing_;
}

char* PieceProgress::Keep(StagingBuffer buffer) {
  buffers_.push_back(std::move(buffer));
  return buffers_.back().data();
}

const char* PieceProgress::Part(int node) const {
  for (const auto& [other, sum] : parts_) {
    if (other == node) return sum.data();
  }
  return nullptr;
}

bool PieceProgress::TakeReady() {
  if (stage_ != Stage::kWaiting || parts_missing_ || frames_missing_ > 0 ||
      sends_out_ > 0) {
    return false;
  }
  stage_ = Stage::kRunning;
  return true;
}

void PieceProgress::Finish() {
  stage_ = Stage::kDone;
  buffers_.clear();
  parts_.clear();
}

}  // namespace troupe::comm::internal
