import CLinux
import Glibc
import SystemPackage

/// The resources that a process of ours needs at its start. Libraries that get no thread, descriptor or memory then end
/// the process silently, or wait for ever.
package enum StartNeed {
    /// The agent's needs beyond what is open and running at its start, with some to spare.
    package static let descriptors = 40
    package static let memory = 192 << 20
    package static var threads: Int { 12 + 2 * max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Opens standard input, output and error, on `/dev/null` where they are closed. Otherwise the next files and
    /// sockets would get their numbers, and messages for people would be written there. Call this first of all.
    package static func openStandardStreams() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // Gets the lowest free number. Without /dev, something that cannot be written to.
            if inlet_open("/dev/null", O_RDWR, 0) == -1 { _ = inlet_open("/", O_RDONLY, 0) }
        }
    }

    /// Acquires everything, and releases it again. For the agent's first thread, before others begin. Blocks for some
    /// milliseconds.
    ///
    /// - Returns: what is missing, with the remedy; nil when nothing is.
    package static func missing() -> String? {
        let got = openable(descriptors)
        if got < descriptors {
            return "\(descriptors) file descriptors are needed, and \(got) are free: raise LimitNOFILE= or 'ulimit -n'"
        }
        let room = mmap(nil, memory, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        if room == MAP_FAILED {
            return "\(memory >> 20) MiB of address space are needed, and there is less: raise LimitAS= or 'ulimit -v'"
        }
        munmap(room, memory)
        let started = startable(threads)
        if started < threads {
            return "\(threads) threads are needed, and there are \(started): raise TasksMax=, LimitNPROC=, 'ulimit -u' "
                + "or the container's limit of processes"
        }
        return nil
    }

    private static func openable(_ most: Int) -> Int {
        var numbers: [CInt] = []
        defer { for number in numbers { close(number) } }
        while numbers.count < most {
            let number = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
            if number == -1 { break }
            numbers.append(number)
        }
        return numbers.count
    }

    /// The number of threads that can run at once, up to `most`: each waits until all are counted.
    private static func startable(_ most: Int) -> Int {
        var threads: [LoopThread] = []
        do throws(SystemError) {
            let gate = try Waker()
            defer {
                gate.wake()
                for thread in threads { thread.join() }
            }
            while threads.count < most {
                threads.append(
                    try LoopThread(name: "start") {
                        // Nobody consumes the wake-up, so that it reaches all of them. It fails only for want of
                        // memory, and then there is one thread less at a time.
                        do throws(SystemError) { _ = try Poll.wait([gate.number], until: nil) } catch {}
                    })
            }
        } catch {
            // This is the answer: there are no more.
        }
        return threads.count
    }
}

// A time limit for a process's first step: where the system gives no thread for it, none of our code would ever run.
extension StartNeed {
    private static let seconds: UInt32 = 10
    private static let words: StaticString = """
        inlet: the system gave no thread to begin on within 10 s: raise TasksMax=, LimitNPROC=, 'ulimit -u', 'ulimit -v' or \
        the container's limits of processes and memory

        """

    /// Ends the process with 75 and the reason, unless `endDeadline` is called in time.
    package static func beginDeadline() {
        signal(SIGALRM) { _ in
            // Only calls that signal-safety(7) allows.
            _ = write(STDERR_FILENO, StartNeed.words.utf8Start, StartNeed.words.utf8CodeUnitCount)
            _exit(75)
        }
        alarm(seconds)
    }

    package static func endDeadline() {
        alarm(0)
        signal(SIGALRM, SIG_DFL)
    }
}

extension SystemError {
    /// The error of opening `/dev/null` if the process or the system has no descriptors or memory left now. Libraries
    /// that fail for want of a descriptor do not always say so.
    package static func shortage() -> SystemError? {
        do throws(SystemError) {
            _ = try Descriptor(opening: "/dev/null", O_RDONLY)
            return nil
        } catch {
            return error.isShortage ? error : nil
        }
    }
}
