import Glibc
import InletCore
package import SystemPackage

/// The mounts that this process sees, as `/proc/self/mountinfo` lists them (proc_pid_mountinfo(5)).
package struct MountTable: Sendable, Hashable {
    package struct Mount: Sendable, Hashable {
        package var id: Int
        /// The parent mount; its own number, or one that is not listed, at the top of the tree.
        package var parent: Int
        package var major: UInt32
        package var minor: UInt32
        /// The folder of the file system that appears at `point`.
        package var root: FilePath
        package var point: FilePath
        /// `ext4`, `nfs4`, `fuse.sshfs`…
        package var type: String
        package var source: FilePath
        /// The file system's own options, in their order; the value is empty where there is none.
        package var options: [Option]

        /// Whether this machine makes up the inode numbers, so that others have other ones: SMB without `serverino`.
        package var inventsInodes: Bool {
            ["cifs", "smb3"].contains(type) && !options.contains { $0.name == "serverino" }
        }
    }

    package struct Option: Sendable, Hashable {
        package var name: String
        package var value: [UInt8]
    }

    package let mounts: [Mount]
    /// Positions in `mounts` by the parent's number; the tops of the tree under nil.
    private let children: [Int?: [Int]]

    /// Accepts any bytes: unreadable lines are skipped.
    package init(parsing bytes: [UInt8]) {
        self.init(bytes.split(separator: UInt8(ascii: "\n")).compactMap(Self.parse))
    }

    package init(_ mounts: [Mount]) {
        self.mounts = mounts
        let known = Set(mounts.map(\.id))
        children = Dictionary(grouping: mounts.indices) { index in
            let mount = mounts[index]
            return mount.parent == mount.id || !known.contains(mount.parent) ? nil : mount.parent
        }
    }

    /// Throws where /proc is not mounted.
    package static func current() throws(SystemError) -> MountTable {
        MountTable(parsing: try DurableFile.read("/proc/self/mountinfo", limit: 64 << 20))
    }

    /// The mount of an absolute path without symlinks, found as the kernel does: from mount to mount, taking the top
    /// one where several share a place.
    package func mount(of path: FilePath) -> Mount? {
        var found: Mount?
        // A table that names a mount as its own ancestor must not cause an endless walk.
        for _ in 0...mounts.count {
            guard let next = step(from: found, to: path) else { return found }
            found = next
        }
        return found
    }

    /// The mounts strictly below `path` that no other mount hides.
    package func below(_ path: FilePath) -> [Mount] {
        mounts.filter { $0.point != path && $0.point.isWithin(path) && mount(of: $0.point)?.id == $0.id }
    }

    private func step(from mount: Mount?, to path: FilePath) -> Mount? {
        var best: Mount?
        for index in children[mount?.id] ?? [] where path.isWithin(mounts[index].point) {
            if let found = best, found.point.length < mounts[index].point.length { continue }
            best = mounts[index]
        }
        return best
    }
}

extension MountTable {
    /// `36 35 98:0 /sub /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`; any number of fields comes before the
    /// hyphen.
    private static func parse(_ line: ArraySlice<UInt8>) -> Mount? {
        let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard fields.count > 6, let hyphen = fields[6...].firstIndex(where: { $0.elementsEqual("-".utf8) }),
            hyphen + 1 < fields.count, let id = number(fields[0]), let parent = number(fields[1])
        else { return nil }
        let device = fields[2].split(separator: UInt8(ascii: ":"))
        guard device.count == 2, let major = number(device[0]), let minor = number(device[1]),
            let major = UInt32(exactly: major), let minor = UInt32(exactly: minor)
        else { return nil }
        let point = FilePath(bytes: unescape(fields[4]))
        guard point.isAbsolute else { return nil }
        return Mount(
            id: id, parent: parent, major: major, minor: minor, root: FilePath(bytes: unescape(fields[3])),
            point: point, type: DisplayText.escape(unescape(fields[hyphen + 1])),
            source: FilePath(bytes: hyphen + 2 < fields.count ? unescape(fields[hyphen + 2]) : []),
            options: hyphen + 3 < fields.count ? options(fields[hyphen + 3]) : [])
    }

    private static func number(_ field: ArraySlice<UInt8>) -> Int? { Int(String(decoding: field, as: UTF8.self)) }

    /// A comma in a value is escaped.
    private static func options(_ field: ArraySlice<UInt8>) -> [Option] {
        field.split(separator: UInt8(ascii: ",")).map { option in
            let parts = option.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return Option(
                name: DisplayText.escape(unescape(parts[0])), value: parts.count > 1 ? unescape(parts[1]) : [])
        }
    }

    /// `\040` is a space: a backslash and three octal digits stand for a byte.
    static func unescape(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        [UInt8](escaped: bytes, by: "\\", digits: 3, radix: 8)
    }
}

extension [UInt8] {
    /// Replaces each `sign`, which begins with a backslash, and the given number of digits after it by a byte; anything
    /// else stays.
    init(escaped bytes: ArraySlice<UInt8>, by sign: String, digits: Int, radix: Int) {
        self = []
        var rest = bytes.contains(UInt8(ascii: "\\")) ? bytes : []
        if rest.isEmpty { self += bytes }
        while let first = rest.first {
            let code = rest.dropFirst(sign.utf8.count).prefix(digits)
            if rest.starts(with: sign.utf8), code.count == digits, code.allSatisfy({ $0 != UInt8(ascii: "+") }),
                let byte = UInt8(String(decoding: code, as: UTF8.self), radix: radix), byte > 0
            {
                append(byte)
                rest = rest.dropFirst(sign.utf8.count + digits)
            } else {
                append(first)
                rest = rest.dropFirst()
            }
        }
    }
}

extension FilePath {
    /// The path without symlinks, by which mounts are listed; unchanged where it cannot be resolved.
    package var resolved: FilePath { realPath ?? self }

    /// The path without symlinks (realpath(3)); nil where nothing is, or it may not be seen. Blocks.
    package var realPath: FilePath? {
        guard let real = withPlatformString({ realpath($0, nil) }) else { return nil }
        defer { free(real) }
        return FilePath(platformString: real)
    }
}

extension MountTable {
    /// The mount points of this machine's fstab(5), mounted at start or on demand; none where it cannot be read.
    /// Without `/`. Blocks.
    package static func plannedPoints() -> [FilePath] {
        DurableFile.readIfPossible("/etc/fstab", limit: 1 << 20).map(plannedPoints) ?? []
    }

    /// Accepts any bytes: other lines are skipped.
    package static func plannedPoints(in bytes: [UInt8]) -> [FilePath] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard fields.count >= 3, fields[0].first != UInt8(ascii: "#") else { return nil }
            let point = FilePath(bytes: unescape(fields[1]))
            return point.isAbsolute && point != "/" ? point : nil
        }
    }
}

extension MountTable {
    /// Where other machines' folders are mounted strictly below `folder`. While such a machine does not answer, even
    /// looking at its folder hangs. Blocks on `folder` alone.
    ///
    /// - Returns: their paths below `folder` as spelled here, which may lead through symlinks.
    package func servers(below folder: FilePath) -> Set<FilePath> {
        let real = folder.resolved
        let points = below(real).filter { Self.servers.contains($0.type) }.compactMap { mount -> FilePath? in
            var rest = mount.point
            guard rest.removePrefix(real) else { return nil }
            return folder.pushing(rest)
        }
        return Set(points)
    }

    /// Not those of a virtual machine's host, which shares its disks' fate.
    private static let servers: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "coda", "lustre", "gpfs", "beegfs", "fhgfs", "glusterfs",
        "orangefs", "pvfs2", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.ceph", "fuse.glusterfs",
        "fuse.smbnetfs", "fuse.curlftpfs", "fuse.davfs2", "fuse.gvfsd-fuse",
    ]
}

/// Reports when something is mounted or unmounted, or when a folder comes or goes in one of some folders. For one
/// thread at a time.
///
/// The kernel marks `/proc/self/mountinfo` with `POLLPRI` at each change (proc_pid_mountinfo(5)): nothing is polled.
package struct MountWatch: ~Copyable, Sendable {
    private let mounts: Descriptor
    private let inotify: Inotify
    private var watched: [FilePath: Int32] = [:]

    /// Whether folders are not watched, because this user has no inotify instances left; mounts are still reported.
    package var isBlind: Bool { inotify.refusal != nil }

    /// - Parameter onlyMounts: no folders will be watched, so none of the user's inotify instances is taken.
    package init(onlyMounts: Bool = false) throws(SystemError) {
        let mounts = try Descriptor(opening: "/proc/self/mountinfo", O_RDONLY)
        let inotify = onlyMounts ? try Inotify(silentFor: nil) : try Inotify.orSilent()
        self.mounts = mounts
        self.inotify = inotify
    }

    /// Watches these folders instead of the earlier ones. A folder that cannot be watched is skipped: its changes are
    /// noticed with the next change elsewhere.
    package mutating func watch(_ folders: Set<FilePath>) {
        for (folder, watch) in watched where !folders.contains(folder) {
            inotify.remove(watch)
            watched[folder] = nil
        }
        // Watches each again: another mount may be there now. One that cannot be watched is noticed with the next
        // change.
        for folder in folders { watched[folder] = try? inotify.add(folder) }
    }

    /// Blocks until there is such a change, `waker` is woken or `deadline` has passed (nil: no deadline). Consumes the
    /// wake-up.
    ///
    /// - Returns: whether there was a change; files that come and go do not count.
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

    /// Reads inotify's records. - Returns: whether any concerns a folder.
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
