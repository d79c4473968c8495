import CLinux
import Glibc

/// Gives up the system calls that Inlet has no use for (seccomp(2)), for good: whatever is made of this process, it looks into no
/// other one, mounts nothing, loads nothing into the kernel, and reaches less of it. What the process starts has them neither.
package enum CallFilter {
    /// How many are given up by their names.
    package static var count: Int { Int(inlet_count_unused_calls()) }

    /// Whether this kernel, or what it runs us in, lets us.
    package static var isAvailable: Bool { inlet_can_filter_calls() == 1 }

    enum Reach: UInt32 {
        /// The calling thread, and what it starts.
        case thread = 0
        /// All of the process (SECCOMP_FILTER_FLAG_TSYNC).
        case process = 1
    }

    /// Gives them up for the whole process.
    package static func apply() throws(SystemError) { try apply(to: .process) }

    /// No program that is started afterwards gains rights (PR_SET_NO_NEW_PRIVS).
    ///
    /// - Throws: where it is not done; the calls are there as before then.
    static func apply(to reach: Reach) throws(SystemError) {
        _ = try SystemCall.result("prctl") { inlet_forbid_new_privileges() }
        _ = try SystemCall.result("seccomp") { inlet_filter_calls(reach.rawValue) }
    }
}
