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
