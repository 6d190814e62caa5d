// Cuts the data that a collective moves into chunks, each processed by one
// thread.
//
//   Cut cut(/*elements=*/100000, /*element_bytes=*/4, /*ranks=*/2,
//           /*chunk_bytes=*/32 << 10);
//   cut.ShareBegin(1);                       // rank 1 begins with this chunk
//   cut.ElementEnd(0);                       // 8192
//
// It counts elements over all blocks of the flow (flow.h), one after the other:
// a chunk is a part of a large block, or several small ones.

#ifndef COMM_LOCAL_CUT_H_
#define COMM_LOCAL_CUT_H_

#include <cstddef>
#include <cstdint>

namespace troupe::comm::internal {

// Chunks of 2^shift elements, the last one shorter. The share of rank r is
// chunks [ShareBegin(r), ShareBegin(r + 1)): it processes these first.
class Cut {
 public:
  // No data: no chunks.
  Cut() = default;
  Cut(std::int64_t elements, std::size_t element_bytes, int ranks,
      std::size_t chunk_bytes);

  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t ShareBegin(int rank) const { return chunks_ * rank / ranks_; }
  int shares_with_chunks() const {
    return chunks_ < static_cast<std::uint64_t>(ranks_)
               ? static_cast<int>(chunks_)
               : ranks_;
  }
  std::int64_t ElementBegin(std::uint64_t chunk) const {
    return static_cast<std::int64_t>(chunk << shift_);
  }
  std::int64_t ElementEnd(std::uint64_t chunk) const {
    const std::int64_t end = ElementBegin(chunk + 1);
    return end < elements_ ? end : elements_;
  }

 private:
  std::int64_t elements_ = 0;
  int ranks_ = 1;
  int shift_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_CUT_H_
