// The thread that moves what can be moved, so that nobody else has to; it
// sleeps when nothing comes for a while, and stays away while others drive.
//
//   IoThread thread(board, /*look_for=*/absl::Microseconds(50));
//   // Until it goes.
//
// On few cores a thread that looks for work takes the time of those that
// compute: it gives its core away at each look that was in vain, and sleeps in
// poll(2) over the links after `look_for`. While a rank is in RunInline() it
// leaves the links to it (two threads that wake up for one frame cost more than
// one), and looks now and then whether that is still so.

#ifndef COMM_SPANNING_IO_THREAD_H_
#define COMM_SPANNING_IO_THREAD_H_

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "comm/spanning/switchboard.h"

namespace troupe::comm::internal {

class IoThread {
 public:
  // `board` outlives it.
  IoThread(Switchboard* board, absl::Duration look_for);
  ~IoThread();

 private:
  // Whoever has work rings it; lives as long as the board, which others may use
  // when the thread has gone.
  struct Bell {
    Bell();
    ~Bell();
    void Ring();

    const int fd;  // an eventfd
    std::atomic<bool> asleep{false};
  };

  void Loop();
  void Sleep();

  Switchboard& board_;
  const absl::Duration look_for_;
  const std::shared_ptr<Bell> bell_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_IO_THREAD_H_
