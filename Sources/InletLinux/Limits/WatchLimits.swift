import InletCore
import SystemPackage

/// The number of inotify watches needed, against the number that this user may have.
package struct WatchNeed: Sendable, Hashable {
    package var directories: Int
    /// nil where the kernel does not say.
    package var limit: Int?

    package init(directories: Int, limit: Int? = Self.limit) {
        self.directories = directories
        self.limit = limit
    }

    package var isMet: Bool { limit.map { directories <= $0 } ?? true }

    /// The sysctl line that makes room for twice as many, and for other programs; never less than now, since others may
    /// use them.
    package var remedy: String {
        "sysctl fs.inotify.max_user_watches=\(Self.room(from: 1 << 19, for: directories, above: limit))"
    }

    private static func room(from least: Int, for needed: Int, above limit: Int?) -> Int {
        var room = least
        while room < needed * 2 || room <= limit ?? 0, room < 1 << 30 { room *= 2 }
        return room
    }

    /// Watches of one user, all programs together.
    package static var limit: Int? { number("max_user_watches") }
    /// Instances of one user, all programs together; each watched folder of the configuration takes one.
    package static var instanceLimit: Int? { number("max_user_instances") }

    /// The sysctl line for more of them than `needed`, and than now.
    package static func instanceRemedy(needed: Int, limit: Int? = instanceLimit) -> String {
        "sysctl fs.inotify.max_user_instances=\(room(from: 1 << 10, for: needed, above: limit))"
    }

    /// The watches and instances that a user's programs have, as far as we may see other processes (`/proc/PID/fdinfo`,
    /// proc(5)). Takes some milliseconds for each hundred processes.
    package static func used(by user: UInt32) -> (watches: Int, instances: Int) {
        var (watches, instances) = (0, 0)
        for process in numbers(in: "/proc") {
            // One that has just ended has none.
            guard (try? FileOwner.ofFile(FilePath("/proc/\(process)")).user) == user else { continue }
            for descriptor in numbers(in: FilePath("/proc/\(process)/fd")) {
                let link = DurableFile.target(ofLink: FilePath("/proc/\(process)/fd/\(descriptor)"))
                guard link?.string == "anon_inode:inotify" else { continue }
                instances += 1
                let file = FilePath("/proc/\(process)/fdinfo/\(descriptor)")
                let lines =
                    DurableFile.readIfPossible(file, limit: 64 << 20)?.split(separator: UInt8(ascii: "\n")) ?? []
                watches += lines.count { $0.starts(with: "inotify ".utf8) }
            }
        }
        return (watches, instances)
    }

    /// The names in a folder that are numbers; none where it cannot be read.
    private static func numbers(in folder: FilePath) -> [Int] {
        var found: [Int] = []
        do throws(SystemError) {
            var names = try DirectoryStream(folder)
            while let entry = try names.next() { if let number = Int(entry.name.string) { found.append(number) } }
        } catch {
            // Another user's process, or one that has just ended: what is not seen is not counted.
        }
        return found
    }

    private static func number(_ name: String) -> Int? {
        DurableFile.readIfPossible(FilePath("/proc/sys/fs/inotify").appending(name), limit: 64).flatMap {
            Int(String(decoding: $0, as: UTF8.self).filter(\.isNumber))
        }
    }

    /// The findings of `inlet check`: first on watches, then on instances; none where the kernel names no limit.
    ///
    /// - Parameter instances: the number needed: one for each watched folder of the configuration, and one for each
    ///   pattern.
    package func findings(
        instances: Int, instanceLimit: Int? = Self.instanceLimit
    ) -> [(isMet: Bool, text: String)] {
        func finding(_ counts: String, _ isMet: Bool, _ remedy: String) -> (isMet: Bool, text: String) {
            (isMet, isMet ? counts : "\(counts); the rest is polled. Raise it with '\(remedy)'")
        }
        let ofWatches = limit.map { limit in
            finding("\(directories) of \(limit) needed (fs.inotify.max_user_watches)", isMet, remedy)
        }
        let ofInstances = instanceLimit.map { limit in
            finding(
                "\(instances) of \(limit) inotify instances needed (fs.inotify.max_user_instances)", instances <= limit,
                "sysctl fs.inotify.max_user_instances=\(max(1024, instances * 2))")
        }
        return [ofWatches, ofInstances].compactMap(\.self)
    }
}
