import CLinux
import Glibc
import SystemPackage

/// What a process of ours cannot do without: libraries that get no thread, descriptor or memory when they begin end the
/// process without a word, or wait for ever.
package enum StartNeed {
    /// What the agent takes besides what is open and runs when it starts, with some to spare.
    package static let descriptors = 40
    package static let memory = 192 << 20
    package static var threads: Int { 12 + 2 * max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Standard input, output and error are open from here on, `/dev/null` where nobody gave any: the next files and sockets
    /// would get their numbers, and what is written for people would go there. To be called first of all.
    package static func openStandardStreams() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // The lowest number that is free. Where there is no /dev, something that cannot be written to.
            if inlet_open("/dev/null", O_RDWR, 0) == -1 { _ = inlet_open("/", O_RDONLY, 0) }
        }
    }

    /// Tries to get it all, and gives it back. For the agent's first thread, before others begin. Blocks for some
    /// milliseconds.
    ///
    /// - Returns: what is missing, and what to do about it; nil when nothing is.
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

    /// How many threads run at a time, up to `most`: each waits until all are counted.
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
                        // Nobody takes the wake-up, so that it is for all of them. It fails for want of memory only, and then
                        // there is one thread less at a time.
                        do throws(SystemError) { _ = try Poll.wait([gate.number], until: nil) } catch {}
                    })
            }
        } catch {
            // This is the answer: there are no more.
        }
        return threads.count
    }
}

// A bound for the first step of a process: where the system gives no thread for it, nothing of ours would ever run.
extension StartNeed {
    private static let seconds: UInt32 = 10
    private static let words: StaticString = """
        inlet: the system gave no thread to begin on within 10 s: raise TasksMax=, LimitNPROC=, 'ulimit -u', 'ulimit -v' or \
        the container's limits of processes and memory

        """

    /// Ends the process with 75 and says why unless `endDeadline` is called in time.
    package static func beginDeadline() {
        signal(SIGALRM) { _ in
            // Only what signal-safety(7) allows.
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
    /// The error of opening `/dev/null`, if the process or the system has no descriptors or memory left now: libraries that
    /// fail for want of a descriptor do not always say so.
    package static func shortage() -> SystemError? {
        do throws(SystemError) {
            _ = try Descriptor(opening: "/dev/null", O_RDONLY)
            return nil
        } catch {
            return error.isShortage ? error : nil
        }
    }
}
