#include "base/processes/process_group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "base/files/owned_fd.h"
#include "base/processes/line_relay.h"
#include "base/processes/signal_queue.h"

namespace troupe::base {
namespace {

using Clock = std::chrono::steady_clock;

// Limit on unwritten output; pipes are not read while there is more.
constexpr std::size_t kWaitingBytesMax = 1 << 20;
constexpr std::size_t kReadBytes = 64 << 10;
// Limit on what is read from a pipe after its process has ended. Processes that
// it started keep the pipe open and may write without end.
constexpr std::size_t kLeftBytesMax = 1 << 20;

// Time between two looks for ended processes: the signal that tells of an end
// is lost if another thread of this process takes it.
constexpr std::chrono::milliseconds kLook(500);

// A stream of output of one process.
struct Stream {
  OwnedFd pipe;
  LineRelay relay;
};

struct Running {
  const JobProcess* process = nullptr;
  pid_t pid = -1;
  bool ended = false;
  bool noted = false;           // whether its early end was reported
  int status = 0;               // status of waitpid()
  std::vector<Stream> streams;  // the error output is the last
};

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Returns the last line that is not blank, among the last 4 KB.
std::string LastLineOf(const std::string& path) {
  constexpr off_t kTailBytes = 4096;
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size <= 0) return "";
  std::string tail(static_cast<std::size_t>(std::min(size, kTailBytes)), '\0');
  const ssize_t got = pread(file.get(), &tail[0], tail.size(),
                            std::max<off_t>(0, size - kTailBytes));
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  absl::StripTrailingAsciiWhitespace(&tail);
  return tail.substr(tail.find_last_of('\n') + 1);
}

class Group {
 public:
  Group(const GroupOptions& options, SignalQueue* signals)
      : options_(options),
        signals_(*signals),
        out_(options.out),
        err_(options.err) {}

  // Kills processes that have not ended and waits for them.
  ~Group() {
    KillAll(SIGKILL);
    for (Running& child : children_) {
      if (!child.ended) waitpid(child.pid, nullptr, 0);
    }
  }

  absl::Status Start(const JobProcess& process) {
    Running child;
    child.process = &process;
    ChildSpec spec = process.child;
    std::vector<OwnedFd> theirs;
    if (process.output_file.empty()) {
      TROUPE_RETURN_IF_ERROR(OpenPipes(process, child, spec, theirs));
    } else {
      theirs.emplace_back(
          open(process.output_file.c_str(),
               O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
      if (!theirs[0].valid()) {
        return FileError(errno, "create", process.output_file);
      }
      spec.out = spec.err = theirs[0].get();
    }
    TROUPE_ASSIGN_OR_RETURN(child.pid, StartChild(spec));
    children_.push_back(std::move(child));
    return absl::OkStatus();
  }

  // Returns when all have ended and their output has been forwarded.
  void Run() {
    while (AnyAlive() || out_.waiting() + err_.waiting() > 0) {
      WaitForMore();
      for (int signal : signals_.Take()) OnSignal(signal);
      ReapAll();
      for (Running& child : children_) ReadSome(child);
      CheckPatience();
      NoteEarlyEnds();
      CheckReaders();
    }
  }

  GroupEnd End() const {
    GroupEnd end;
    end.signal = first_signal_;
    for (const Running& child : children_) {
      end.statuses.push_back(child.status);
      if (HasStopped(child.status)) end.exit_code = *options_.stopped_code;
    }
    if (first_failure_ < 0) return end;
    const Running& failed = FirstFailure();
    end.first_failure = first_failure_;
    end.exit_code = std::max(1, ExitCodeOf(failed.status));
    const bool as_told = WIFSIGNALED(failed.status) && !WasStruck(failed);
    if (!as_told) end.words = absl::StrCat(WordsOf(failed), ended_before_);
    return end;
  }

 private:
  // Opens pipes for the output, except that process 0 writes to this process's
  // standard output itself.
  absl::Status OpenPipes(const JobProcess& process, Running& child,
                         ChildSpec& spec, std::vector<OwnedFd>& theirs) {
    const bool is_first = process.number == 0;
    LineRelay::Style style;
    style.clears_line = options_.on_terminal;
    if (!is_first && options_.marks_lines) {
      style.mark = MarkOf(process.number, options_.colored);
    }
    spec.out = options_.out;
    for (bool is_err : {false, true}) {
      if (!is_err && is_first) continue;
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) {
        return FileError(errno, "start", spec.command[0]);
      }
      child.streams.push_back(
          {OwnedFd(ends[0]), LineRelay(style, is_err ? &err_ : &out_)});
      fcntl(ends[0], F_SETFL, O_NONBLOCK);
      theirs.emplace_back(ends[1]);
      (is_err ? spec.err : spec.out) = ends[1];
    }
    return absl::OkStatus();
  }

  bool AnyAlive() const {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Running& child) { return !child.ended; });
  }

  void WaitForMore() {
    std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0}};
    for (OutputQueue* queue : {&out_, &err_}) {
      if (queue->waiting() > 0) entries.push_back({queue->fd(), POLLOUT, 0});
    }
    if (HasRoom()) {
      for (const Running& child : children_) {
        for (const Stream& stream : child.streams) {
          if (stream.pipe.valid()) {
            entries.push_back({stream.pipe.get(), POLLIN, 0});
          }
        }
      }
    }
    poll(entries.data(), entries.size(), MillisecondsLeft());
    for (const pollfd& entry : entries) {
      for (OutputQueue* queue : {&out_, &err_}) {
        if (entry.fd != queue->fd() || entry.revents == 0) continue;
        queue->Flush();
        drop_at_.reset();
      }
    }
  }

  bool HasRoom() const {
    return out_.waiting() + err_.waiting() < kWaitingBytesMax;
  }

  int MillisecondsLeft() const {
    if (!deadline_ && !note_at_ && !drop_at_ && !AnyAlive()) return -1;
    constexpr Clock::time_point kNever = Clock::time_point::max();
    const Clock::time_point next =
        std::min({deadline_.value_or(kNever), note_at_.value_or(kNever),
                  drop_at_.value_or(kNever), Clock::now() + kLook});
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    return static_cast<int>(
        std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
  }

  void OnSignal(int signal) {
    if (signal == SIGCHLD) {
      ReapAll();
    } else if (signal == SIGTSTP) {
      KillAll(SIGSTOP);
      raise(SIGSTOP);  // returns on SIGCONT
      KillAll(SIGCONT);
    } else {
      if (first_signal_ == 0) first_signal_ = signal;
      handed_on_.insert(signal);
      KillAll(signal);
      // All have ended: drops the output, so that a slow reader does not delay
      // the end.
      if (!AnyAlive()) {
        out_.Drop();
        err_.Drop();
      }
    }
  }

  bool HasStopped(int status) const {
    return options_.stopped_code.has_value() && WIFEXITED(status) &&
           WEXITSTATUS(status) == *options_.stopped_code;
  }

  bool HasFailed(const Running& child) const {
    if (!WIFEXITED(child.status)) return true;
    if (WEXITSTATUS(child.status) != 0) return !HasStopped(child.status);
    return child.process->is_complete && !child.process->is_complete();
  }

  // Reaps processes that have ended and finds the first failure. A process that
  // a signal ended counts as first, even if another is found before: its peers
  // see its connections close while the kernel still tears it down. Processes
  // that this one has stopped are no cause.
  void ReapAll() {
    const bool first = first_failure_ < 0;
    bool ended = false;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (!Reap(children_[i])) continue;
      ended = true;
      if (!HasFailed(children_[i])) continue;
      if (first_failure_ < 0 || (!told_to_stop_ && WasStruck(children_[i]) &&
                                 !WasStruck(FirstFailure()))) {
        first_failure_ = static_cast<int>(i);
      }
    }
    if (ended && !options_.stopped_code && first_failure_ < 0 && AnyAlive()) {
      note_at_ = Clock::now() + absl::ToChronoNanoseconds(options_.patience);
    }
    if (first && first_failure_ >= 0) {
      SetDeadline(options_.patience);
      NoteEndedBefore();
    }
  }

  // Notes the processes that ended without a failure before the first one, for
  // which it may have waited. Processes with a stopped_code name each other.
  void NoteEndedBefore() {
    if (options_.stopped_code.has_value()) return;
    for (const Running& child : children_) {
      if (!child.ended || HasFailed(child)) continue;
      absl::StrAppend(&ended_before_, "; process ", child.process->number,
                      " had ended before, with code ",
                      WEXITSTATUS(child.status));
    }
  }

  // Whether it was ended by a signal that was not forwarded.
  bool WasStruck(const Running& child) const {
    return WIFSIGNALED(child.status) &&
           handed_on_.count(WTERMSIG(child.status)) == 0;
  }

  // Returns whether it has ended since the last call.
  bool Reap(Running& child) {
    if (child.ended ||
        waitpid(child.pid, &child.status, WNOHANG) != child.pid) {
      return false;
    }
    child.ended = true;
    for (Stream& stream : child.streams) {
      for (std::size_t got = 0; stream.pipe.valid() && got < kLeftBytesMax;) {
        const std::size_t n = Read(stream);
        if (n == 0) break;
        got += n;
      }
      stream.pipe.reset();
      stream.relay.End();
    }
    return true;
  }

  const Running& FirstFailure() const {
    return children_[static_cast<std::size_t>(first_failure_)];
  }

  // Returns the number of bytes read; 0: none available.
  std::size_t Read(Stream& stream) {
    char bytes[kReadBytes];
    const ssize_t n = read(stream.pipe.get(), bytes, sizeof(bytes));
    if (n > 0) {
      stream.relay.Add(absl::string_view(bytes, static_cast<std::size_t>(n)));
      return static_cast<std::size_t>(n);
    }
    if (n == 0) stream.pipe.reset();
    return 0;
  }

  void ReadSome(Running& child) {
    for (Stream& stream : child.streams) {
      if (stream.pipe.valid() && HasRoom()) Read(stream);
    }
  }

  // Reports processes that ended without a failure, if others still run
  // `patience` later: they may wait for them.
  void NoteEarlyEnds() {
    if (!note_at_ || Clock::now() < *note_at_) return;
    note_at_.reset();
    if (first_failure_ >= 0 || !AnyAlive()) return;
    for (Running& child : children_) {
      if (!child.ended || std::exchange(child.noted, true)) continue;
      err_.Add(absl::StrCat(options_.name, ": process ", child.process->number,
                            " has ended, with code 0; others still run\n"));
    }
  }

  void SetDeadline(absl::Duration patience) {
    deadline_ = Clock::now() + absl::ToChronoNanoseconds(patience);
  }

  // Ends processes that still run after a failure: by SIGTERM, later by
  // SIGKILL.
  void CheckPatience() {
    if (!deadline_ || Clock::now() < *deadline_) return;
    deadline_.reset();
    if (!AnyAlive()) return;
    if (told_to_stop_) {
      KillAll(SIGKILL);
      return;
    }
    // A stopped process (SIGSTOP) handles SIGTERM only after SIGCONT.
    KillAll(SIGTERM);
    KillAll(SIGCONT);
    SetDeadline(options_.last_patience);
    told_to_stop_ = true;
  }

  // Drops output that nobody has read for a while, once a stop was requested:
  // processes that wait for their output to be read would never stop.
  void CheckReaders() {
    if (handed_on_.empty() || out_.waiting() + err_.waiting() == 0) {
      drop_at_.reset();
    } else if (!drop_at_) {
      drop_at_ =
          Clock::now() + absl::ToChronoNanoseconds(options_.reader_patience);
    } else if (Clock::now() >= *drop_at_) {
      out_.Drop();
      err_.Drop();
    }
  }

  // Signals the process groups, which include processes that the children
  // started.
  void KillAll(int signal) {
    for (const Running& child : children_) {
      if (!child.ended) kill(-child.pid, signal);
    }
  }

  std::string WordsOf(const Running& child) const {
    const std::string who = absl::StrCat("process ", child.process->number,
                                         " (pid ", child.pid, ")");
    if (WIFSIGNALED(child.status)) {
      const int signal = WTERMSIG(child.status);
      return absl::StrCat(who, " was killed by ", SignalName(signal),
                          signal == SIGKILL
                              ? "; where memory ran out, the kernel's log says "
                                "so (dmesg)"
                              : "");
    }
    const std::string said =
        child.process->output_file.empty()
            ? (child.streams.empty() ? ""
                                     : child.streams.back().relay.last_line())
            : LastLineOf(child.process->output_file);
    return absl::StrCat(
        who, " failed first, with code ", WEXITSTATUS(child.status),
        said.empty() ? "" : ": ",
        absl::StripPrefix(said, absl::StrCat(options_.name, ": ")));
  }

  const GroupOptions options_;
  SignalQueue& signals_;
  OutputQueue out_;
  OutputQueue err_;
  std::vector<Running> children_;
  std::set<int> handed_on_;   // forwarded signals
  int first_signal_ = 0;      // the first of them; 0: none
  int first_failure_ = -1;    // index in children_; -1: none
  std::string ended_before_;  // for the words about the first failure
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> drop_at_;  // for output without a reader
  bool told_to_stop_ = false;
  std::optional<Clock::time_point> note_at_;  // time of NoteEarlyEnds()
};

}  // namespace

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal)
                         : absl::StrCat("SIG", name);
}

absl::StatusOr<GroupEnd> RunProcesses(const std::vector<JobProcess>& processes,
                                      const GroupOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SignalQueue> signals,
      SignalQueue::Start({SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU,
                          SIGHUP, SIGTSTP}));
  Group group(options, signals.get());
  for (const JobProcess& process : processes) {
    TROUPE_RETURN_IF_ERROR(group.Start(process));
  }
  group.Run();
  return group.End();
}

}  // namespace troupe::base
