import CLinux
import Glibc
package import InletCore
import SystemPackage

/// Gives up the rest of the file system for good (landlock(7)). Even if a hostile file or answer takes over this
/// process, it opens, creates, renames and removes only what the rules name, and starts no program.
///
/// From Linux 6.12 on it also cannot signal processes that were started before, nor reach abstract sockets. Not
/// restricted: facts that `stat(2)` reports without opening a file, and other sockets.
package enum Landlock {
    /// The kernel's Landlock version; nil where it has none or it is switched off.
    package static var version: Int? {
        let version = inlet_landlock_version()
        return version > 0 ? Int(version) : nil
    }

    /// Before Linux 5.19 nothing can be renamed from one folder to another.
    package static let leastVersion = 2

    /// Whether this kernel can confine us at all.
    package static var isAvailable: Bool { version ?? 0 >= leastVersion }

    /// Confines the calling thread and the threads that it starts. Open files stay open.
    ///
    /// - Parameter usesAbstractSockets: whether it must reach abstract sockets (unix(7)), for example a service
    ///   manager's.
    /// - Throws: when confinement fails; the process is as free as before, except that programs it starts get no
    ///   capabilities.
    package static func restrict(to rules: [AccessRule], usesAbstractSockets: Bool = false) throws(SystemError) {
        let known = try Rights.known()
        let ruleset = try ruleset(known, scopes(usesAbstractSockets: usesAbstractSockets))
        for rule in rules {
            try add(rule.path, (rule.mayWrite ? Rights.writing : .reading).intersection(known), to: ruleset.number)
        }
        try restrict(to: ruleset)
    }

    private static func ruleset(_ handled: Rights, _ scopes: UInt64) throws(SystemError) -> Descriptor {
        Descriptor(
            owning: try SystemCall.result("landlock_create_ruleset") {
                inlet_landlock_ruleset(handled.rawValue, scopes)
            })
    }

    private static func restrict(to ruleset: borrowing Descriptor) throws(SystemError) {
        let number = ruleset.number
        _ = try SystemCall.result("prctl") { inlet_forbid_new_privileges() }
        _ = try SystemCall.result("landlock_restrict_self") { inlet_landlock_restrict(number) }
    }

    /// A place that has gone meanwhile needs no rule.
    private static func add(_ path: FilePath, _ rights: Rights, to ruleset: CInt) throws(SystemError) {
        do throws(SystemError) {
            try allow(path, rights, Descriptor(opening: path, inlet_o_path), in: ruleset)
        } catch {
            if !error.isMissing { throw error }
        }
    }

    private static func allow(
        _ path: FilePath, _ rights: Rights, _ place: borrowing Descriptor, in ruleset: CInt
    ) throws(SystemError) {
        let isFolder = try place.status(path).isDirectory
        let allowed = isFolder ? rights : rights.intersection(.ofFiles)
        let number = place.number
        _ = try SystemCall.result("landlock_add_rule", path) {
            inlet_landlock_allow(ruleset, allowed.rawValue, number)
        }
    }

    /// linux/landlock.h, `LANDLOCK_SCOPE_…`: what reaches processes outside, by abstract sockets and by signals.
    private static func scopes(usesAbstractSockets: Bool) -> UInt64 {
        let (abstractSockets, signals): (UInt64, UInt64) = (1 << 0, 1 << 1)
        if version ?? 0 < 6 { return 0 }
        return usesAbstractSockets ? signals : signals | abstractSockets
    }

    /// linux/landlock.h, `LANDLOCK_ACCESS_FS_…`.
    private struct Rights: OptionSet {
        let rawValue: UInt64

        static let execute = Rights(rawValue: 1 << 0)
        static let writeFile = Rights(rawValue: 1 << 1)
        static let readFile = Rights(rawValue: 1 << 2)
        static let readFolder = Rights(rawValue: 1 << 3)
        static let removeFolder = Rights(rawValue: 1 << 4)
        static let removeFile = Rights(rawValue: 1 << 5)
        static let makeCharacterDevice = Rights(rawValue: 1 << 6)
        static let makeFolder = Rights(rawValue: 1 << 7)
        static let makeFile = Rights(rawValue: 1 << 8)
        static let makeSocket = Rights(rawValue: 1 << 9)
        static let makeBlockDevice = Rights(rawValue: 1 << 11)
        static let makeLink = Rights(rawValue: 1 << 12)
        static let refer = Rights(rawValue: 1 << 13)
        static let truncate = Rights(rawValue: 1 << 14)
        static let controlDevice = Rights(rawValue: 1 << 15)

        static let reading: Rights = [.readFile, .readFolder]
        /// Always the same: a file may be renamed only to a place that does not allow more.
        static let writing: Rights = [
            .readFile, .readFolder, .writeFile, .removeFolder, .removeFile, .makeFolder, .makeFile, .makeSocket,
            .makeLink, .refer, .truncate,
        ]
        static let ofFiles: Rights = [.readFile, .writeFile, .truncate]

        /// Every right that the kernel knows.
        static func known() throws(SystemError) -> Rights {
            guard let version, isAvailable else {
                throw SystemError(call: "landlock_create_ruleset", code: .noFunction)
            }
            let bits =
                switch version {
                case ...2: 14
                case 3, 4: 15
                default: 16
                }
            return Rights(rawValue: 1 << bits - 1)
        }
    }
}

/// Gives up the system calls that Inlet does not use (seccomp(2)), for good. Even if the process is taken over, it
/// cannot inspect other processes, mount file systems or load code into the kernel, and fewer kernel faults are within
/// reach. Its children lack these calls too.
package enum CallFilter {
    /// The number of calls given up by name.
    package static var count: Int { Int(inlet_count_unused_calls()) }

    /// Whether the kernel, and any sandbox around us, allows filters.
    package static var isAvailable: Bool { inlet_can_filter_calls() == 1 }

    /// Applies to the whole process (SECCOMP_FILTER_FLAG_TSYNC), or to the calling thread and its children. Programs
    /// started afterwards gain no rights (PR_SET_NO_NEW_PRIVS).
    ///
    /// - Throws: when that fails; all calls then work as before.
    package static func apply(toThread isOnlyThread: Bool = false) throws(SystemError) {
        _ = try SystemCall.result("prctl") { inlet_forbid_new_privileges() }
        _ = try SystemCall.result("seccomp") { inlet_filter_calls(isOnlyThread ? 0 : 1) }
    }
}
