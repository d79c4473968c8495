import CLinux
import Glibc
package import SystemPackage

/// The machine as a person who looks for a fault needs to know it; nil where it does not say.
package enum MachineFacts {
    /// `Linux 6.1.0-28-amd64, x86_64`
    package static var kernel: String? {
        var name = utsname()
        guard uname(&name) == 0 else { return nil }
        return "\(text(&name.sysname)) \(text(&name.release)), \(text(&name.machine))"
    }

    /// `Debian GNU/Linux 12 (bookworm)`, from os-release(5).
    package static var distribution: String? {
        for place in ["/etc/os-release", "/usr/lib/os-release"] as [FilePath] {
            guard let bytes = DurableFile.readIfPossible(place, limit: 64 << 10) else { continue }
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            where line.hasPrefix("PRETTY_NAME=") {
                return line.dropFirst("PRETTY_NAME=".count).filter { $0 != "\"" }
            }
        }
        return nil
    }

    /// The kind of container that this process runs in; nil on a machine of its own.
    package static var container: String? {
        let marks: [(FilePath, String)] = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")]
        for (file, kind) in marks where isThere(file) { return kind }
        // systemd's container interface: its first process leaves the kind there.
        return DurableFile.readIfPossible("/run/systemd/container", limit: 256).map {
            String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace }
        }
    }

    /// A service of systemd, as far as files show it; nil where systemd does not run, or has no such unit.
    package struct Unit: Sendable, Equatable {
        package var isEnabled: Bool
        package var isActive: Bool
    }

    /// - Parameter machine: the folder in which its files are.
    package static func unit(_ name: String, of machine: FilePath = "/") -> Unit? {
        func has(_ file: String) -> Bool { isThere(machine.pushing(FilePath(file))) }
        let places = ["etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"]
        guard has("run/systemd/system"), places.contains(where: { has("\($0)/\(name)") }) else { return nil }
        return Unit(
            isEnabled: has("etc/systemd/system/multi-user.target.wants/\(name)"),
            isActive: has("run/systemd/units/invocation:\(name)"))
    }

    /// Whether anything is there, a symlink without a target included.
    private static func isThere(_ path: FilePath) -> Bool {
        var status = stat()
        return path.withPlatformString { lstat($0, &status) } == 0
    }

    private static func text<Tuple>(_ field: inout Tuple) -> String {
        withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// The clock's discipline by the kernel (adjtimex(2)).
extension MachineFacts {
    /// Whether a time service keeps the clock right; nil where the kernel does not answer.
    package static var isClockSynchronised: Bool? {
        let state = inlet_clock_is_synchronised()
        return state < 0 ? nil : state == 1
    }
}

/// Memory, and what limits it.
extension MachineFacts {
    package struct Memory: Sendable, Equatable {
        /// Bytes that programs can still get without swapping.
        package var available: Int64
        package var total: Int64
        /// The limit of the container's or the service's control group, and its use; nil without one.
        package var limit: Int64?
        package var used: Int64?
    }

    /// - Parameter unit: the service whose limit counts, where this process is not in a container.
    package static func memory(ofUnit unit: String) -> Memory? {
        guard let bytes = DurableFile.readIfPossible("/proc/meminfo", limit: 64 << 10) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        func kibibytes(_ name: String) -> Int64? {
            lines.first { $0.hasPrefix(name + ":") }.flatMap { Int64($0.filter(\.isNumber)) }.map { $0 << 10 }
        }
        guard let available = kibibytes("MemAvailable"), let total = kibibytes("MemTotal") else { return nil }
        let groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/system.slice/\(unit)"].map { FilePath($0) }
        // "max" means that there is no limit, and is not read as a number.
        let group = groups.first { number($0.appending("memory.max")) != nil }
        return Memory(
            available: available, total: total, limit: group.flatMap { number($0.appending("memory.max")) },
            used: group.flatMap { number($0.appending("memory.current")) })
    }

    private static func number(_ file: FilePath) -> Int64? {
        DurableFile.readIfPossible(file, limit: 64).flatMap {
            Int64(String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace })
        }
    }
}
