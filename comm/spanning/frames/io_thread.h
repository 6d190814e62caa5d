// The thread that moves all data of a fabric in the background. It sleeps when
// nothing arrives for a while, and pauses while other threads drive the links.
//
//   IoThread thread(board, /*look_for=*/absl::Microseconds(50));
//   // Runs until it is destroyed.
//
// On few cores a thread that polls takes time from those that compute: it
// yields its core after each poll that finds nothing, and sleeps in poll(2)
// over the links after `look_for`. While a rank is in RunInline() it leaves the
// links to that rank (two threads that wake up for one frame cost more than
// one), and checks now and then whether that is still so.

#ifndef COMM_SPANNING_FRAMES_IO_THREAD_H_
#define COMM_SPANNING_FRAMES_IO_THREAD_H_

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "comm/spanning/frames/switchboard.h"

namespace troupe::comm::internal {

class IoThread {
 public:
  // `board` outlives the thread.
  IoThread(Switchboard* board, absl::Duration look_for);
  ~IoThread();

 private:
  // Wakes the thread up for new work; lives as long as the board, which others
  // may use after the thread has ended.
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

#endif  // COMM_SPANNING_FRAMES_IO_THREAD_H_
