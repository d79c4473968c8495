import CLinux
import Glibc
import Synchronization

/// Children that could not be ended. Those that have gone after all are collected, so that they do not stay as zombies.
enum LeftChildren {
    private static let processes = Mutex<[pid_t]>([])

    static func add(_ process: pid_t) { processes.withLock { $0.append(process) } }

    /// Does not wait.
    static func collect() {
        processes.withLock { processes in
            processes.removeAll { process in
                guard inlet_has_ended(process) != 0 else { return false }
                // As for any other that had to be ended: what it has started goes with it.
                kill(-process, SIGKILL)
                var status: CInt = 0
                _ = waitpid(process, &status, WNOHANG)
                return true
            }
        }
    }
}
