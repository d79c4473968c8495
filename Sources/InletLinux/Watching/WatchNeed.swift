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
