import InletCore
import SystemPackage

/// How many inotify watches are needed, against how many this user may have.
package struct WatchNeed: Sendable, Hashable {
    package var directories: Int
    /// nil where the kernel does not say.
    package var limit: Int?

    package init(directories: Int, limit: Int? = Self.limit) {
        self.directories = directories
        self.limit = limit
    }

    package var isMet: Bool { limit.map { directories <= $0 } ?? true }

    /// The line that makes room for twice as many, and for other programs; never less than there is now, which others may use.
    package var remedy: String { "sysctl fs.inotify.max_user_watches=\(suggestion)" }

    var suggestion: Int {
        var room = 1 << 19
        while room < directories * 2 || room <= limit ?? 0, room < 1 << 30 { room *= 2 }
        return room
    }

    /// Watches of one user, all programs together.
    package static var limit: Int? { number("max_user_watches") }
    /// Instances of one user, all programs together; each watched folder of the configuration takes one.
    package static var instanceLimit: Int? { number("max_user_instances") }

    /// The line for more of them than `needed`, and than there are now.
    package static func instanceRemedy(needed: Int, limit: Int? = instanceLimit) -> String {
        var room = 1 << 10
        while room < needed * 2 || room <= limit ?? 0, room < 1 << 30 { room *= 2 }
        return "sysctl fs.inotify.max_user_instances=\(room)"
    }

    private static func number(_ name: String) -> Int? {
        // A number for a remedy's text; the remedy is given without it too.
        let path = FilePath("/proc/sys/fs/inotify").appending(name)
        guard let bytes = try? DurableFile.read(path, limit: 64) else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self).filter(\.isNumber))
    }
}

/// What inotify is asked for, against what it has for this user: the words of `inlet check`.
package struct WatchRoom: Sendable {
    /// One line of the answer.
    package struct Line: Sendable, Hashable {
        package var isMet: Bool
        package var text: String
    }

    private let watches: WatchNeed
    private let instances: Int
    private let instanceLimit: Int?

    /// - Parameters:
    ///   - watches: one for each folder that is not polled.
    ///   - instances: one for each watched folder of the configuration, and for each pattern.
    ///   - instanceLimit: nil where the kernel does not say.
    package init(watches: WatchNeed, instances: Int, instanceLimit: Int? = WatchNeed.instanceLimit) {
        self.watches = watches
        self.instances = instances
        self.instanceLimit = instanceLimit
    }

    /// First the watches, then the instances; nothing where the kernel names no limit.
    package var lines: [Line] { [watchLine, instanceLine].compactMap(\.self) }

    private var watchLine: Line? {
        guard let limit = watches.limit else { return nil }
        let counts = "\(watches.directories) of \(limit) needed (fs.inotify.max_user_watches)"
        return Self.line(counts, isMet: watches.isMet, remedy: watches.remedy)
    }

    private var instanceLine: Line? {
        guard let limit = instanceLimit else { return nil }
        let counts = "\(instances) of \(limit) inotify instances needed (fs.inotify.max_user_instances)"
        let remedy = "sysctl fs.inotify.max_user_instances=\(max(1024, instances * 2))"
        return Self.line(counts, isMet: instances <= limit, remedy: remedy)
    }

    private static func line(_ counts: String, isMet: Bool, remedy: String) -> Line {
        Line(isMet: isMet, text: isMet ? counts : "\(counts); the rest is polled. Raise it with '\(remedy)'")
    }
}
