import Glibc
package import SystemPackage

/// Tells when something is mounted or unmounted, or when a folder comes or goes in one of some folders. For one thread at a
/// time.
///
/// The kernel marks `/proc/self/mountinfo` with `POLLPRI` at each change (proc_pid_mountinfo(5)): nothing is polled.
package struct MountWatch: ~Copyable, Sendable {
    private let mounts: Descriptor
    private let inotify: Inotify
    private var watched: [FilePath: Int32] = [:]

    /// Whether nothing tells of folders, because this user has no inotify instances left; mounts are told all the same.
    package var isBlind: Bool { inotify.refusal != nil }

    /// - Parameter onlyMounts: no folders will be watched: none of the user's inotify instances is taken.
    package init(onlyMounts: Bool = false) throws(SystemError) {
        let mounts = try Descriptor(opening: "/proc/self/mountinfo", O_RDONLY)
        let inotify = onlyMounts ? try Inotify(silentFor: nil) : try Inotify.orSilent()
        self.mounts = mounts
        self.inotify = inotify
    }

    /// Watches these folders, and no longer those of before. One that cannot be watched is left out: what happens in it is
    /// seen at the next change elsewhere.
    package mutating func watch(_ folders: Set<FilePath>) {
        for (folder, watch) in watched where !folders.contains(folder) {
            inotify.remove(watch)
            watched[folder] = nil
        }
        // Each of them again: what is mounted there now may be another.
        for folder in folders { watched[folder] = try? inotify.add(folder) }
    }

    /// Blocks until there is such a change, `waker` is woken or `deadline` has passed (nil: no deadline). The wake-up is taken.
    ///
    /// - Returns: whether there was a change; files that come and go are none.
    package func wait(until deadline: ContinuousClock.Instant?, waker: Waker) throws(SystemError) -> Bool {
        var requests = [
            pollfd(fd: mounts.number, events: Int16(POLLPRI), revents: 0),
            pollfd(fd: inotify.number, events: Int16(POLLIN), revents: 0),
            pollfd(fd: waker.number, events: Int16(POLLIN), revents: 0),
        ]
        try Poll.wait(for: &requests, until: deadline)
        if requests[2].revents != 0 { waker.drain() }
        if requests[1].revents == 0 { return requests[0].revents != 0 }
        return try hasFolders() || requests[0].revents != 0
    }

    /// Reads what inotify has. - Returns: whether any of it is about a folder.
    private func hasFolders() throws(SystemError) -> Bool {
        var hasAny = false
        while true {
            let records = try inotify.read()
            if records.isEmpty { return hasAny }
            if records.contains(where: { $0.isOverflow || $0.mask.contains(.isDirectory) || $0.name.isEmpty }) {
                hasAny = true
            }
        }
    }
}
