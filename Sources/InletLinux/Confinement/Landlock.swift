import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Gives up the rest of the file system for good (landlock(7)): whatever is made of this process by a hostile file or answer,
/// it opens, makes, renames and removes nothing but what the rules name, and starts no program.
///
/// From Linux 6.12 on it also reaches no process that was started before by a signal, nor by a socket without a file. What a
/// process may *see* of a file without opening it (`stat(2)`), and other sockets, are not held back.
package enum Landlock {
    /// What the kernel can do; nil where it has no Landlock, or it is switched off.
    package static var version: Int? {
        let version = inlet_landlock_version()
        return version > 0 ? Int(version) : nil
    }

    /// Before it nothing can be renamed from one folder to another: Linux 5.19.
    package static let leastVersion = 2

    /// Whether this kernel can hold us to anything.
    package static var isAvailable: Bool { version ?? 0 >= leastVersion }

    /// Confines the calling thread, and those that it starts. What is open stays open.
    ///
    /// - Parameter usesAbstractSockets: whether it has to reach sockets that have no file (unix(7)), of a service manager for
    ///   example.
    /// - Throws: where it is not done; the process is as free as it was then, but that programs get no capabilities.
    package static func restrict(to rules: [AccessRule], usesAbstractSockets: Bool = false) throws(SystemError) {
        let known = try Rights.known()
        let ruleset = try ruleset(known, scopes(usesAbstractSockets: usesAbstractSockets))
        for rule in rules {
            try add(rule.path, (rule.mayWrite ? Rights.writing : .reading).intersection(known), to: ruleset.number)
        }
        try restrict(to: ruleset)
    }

    /// Has the calling thread, and what it starts, write, make, rename and remove nothing but in `folder`, which is found
    /// without following symlinks below `base`, and in devices that compute pictures or swallow everything. What they read and
    /// start is not held, and what Landlock does not know: modes, owners, times and attributes of files; before Linux 6.2
    /// (version 3) their lengths.
    ///
    /// - Throws: where it is not done; the thread is as free as it was then, but that programs get no capabilities.
    package static func holdWrites(to folder: FilePath, below base: FilePath) throws(SystemError) {
        let writes = try Rights.known().subtracting(.notWriting)
        let start = try Descriptor(opening: base, inlet_o_path | O_DIRECTORY)
        let opened = try PathResolver.here.open(folder, below: start.number, base)
        let ruleset = try ruleset(writes, scopes(usesAbstractSockets: false))
        try allow(base.pushing(folder), writes.subtracting(.makingDevices), opened, in: ruleset.number)
        for device in devices() { try add(device, writes.intersection(.ofFiles), to: ruleset.number) }
        try restrict(to: ruleset)
    }

    /// Graphics cards and codecs by the beginnings of their names; not disks, nor what other programs share (`/dev/shm`).
    private static func devices() -> [FilePath] {
        let names = ["null", "zero", "full", "dri", "kfd", "dma_heap", "mpp_service", "rga"]
        let beginnings = ["nvidia", "video", "media"]
        var found: Set = Set(names)
        do throws(SystemError) {
            var stream = try DirectoryStream("/dev")
            while let name = try stream.next()?.name.string {
                if beginnings.contains(where: name.hasPrefix) { found.insert(name) }
            }
        } catch {
            // A device that is not seen here is one that the program may not use; it says so itself.
        }
        return found.map { FilePath("/dev").appending($0) }
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
        /// The same everywhere: a file may be renamed only to where no more may be done with it.
        static let writing: Rights = [
            .readFile, .readFolder, .writeFile, .removeFolder, .removeFile, .makeFolder, .makeFile, .makeSocket,
            .makeLink, .refer, .truncate,
        ]
        static let ofFiles: Rights = [.readFile, .writeFile, .truncate]

        static let notWriting: Rights = [.execute, .readFile, .readFolder, .controlDevice]
        static let makingDevices: Rights = [.makeCharacterDevice, .makeBlockDevice]

        /// All that the kernel knows.
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

/// Gives up the system calls that Inlet has no use for (seccomp(2)), for good: whatever is made of this process, it looks into no
/// other one, mounts nothing, loads nothing into the kernel, and reaches less of it. What the process starts has them neither.
package enum CallFilter {
    /// How many are given up by their names.
    package static var count: Int { Int(inlet_count_unused_calls()) }

    /// Whether this kernel, or what it runs us in, lets us.
    package static var isAvailable: Bool { inlet_can_filter_calls() == 1 }

    /// Gives them up for the whole process (SECCOMP_FILTER_FLAG_TSYNC), or for the calling thread and what it starts. No program
    /// that is started afterwards gains rights (PR_SET_NO_NEW_PRIVS).
    ///
    /// - Throws: where it is not done; the calls are there as before then.
    package static func apply(toThread isOnlyThread: Bool = false) throws(SystemError) {
        _ = try SystemCall.result("prctl") { inlet_forbid_new_privileges() }
        _ = try SystemCall.result("seccomp") { inlet_filter_calls(isOnlyThread ? 0 : 1) }
    }
}
