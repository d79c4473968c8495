package import InletCore
internal import InletLinux
package import SystemPackage

/// Whether the kernel can tell us of writers in a root, in words for people.
package enum WriterCheck {
    /// `on`, or `off: why`. Leases need ownership of the file or CAP_LEASE, and a local file system.
    package static func describe(_ root: FilePath) -> String {
        if let kind = try? FileSystemKind.of(root), kind.isNetwork {
            return "off: \(kind.name) does not show writers on other machines; the settle time still counts, and "
                + "writers on this one are looked for in /proc"
        }
        // Root has it, but for containers that leave it out.
        if ProcessSetup.hasCapability(.lease) { return "on" }
        return "on for own files only: other owners' files need CAP_LEASE (the systemd unit grants it); "
            + "their writers are looked for in /proc, as far as it shows them"
    }
}

/// Who holds the files that wait for their writers, for people: asked seldom, because a look at all processes is not free.
struct FileHolders {
    private var holders: [FilePath: OpenWriters.Holder] = [:]
    private var next: ContinuousClock.Instant?

    /// Before a writer that is just finishing is looked for.
    private static let patience = Duration.seconds(2)
    /// At least that long between two looks, and 200 times what one cost.
    private static let pause = Duration.seconds(10)

    /// Those of `waiting`, paths below `root`, of which a writer is known. Blocks now and then.
    mutating func holders(
        of waiting: [Settler.Waiting], below root: FilePath, at now: ContinuousClock.Instant
    ) -> [FilePath: OpenWriters.Holder] {
        let busy = waiting.filter { $0.isBusy && $0.since.duration(to: now) >= Self.patience }.map(\.path)
        if busy.isEmpty {
            holders = [:]
            return [:]
        }
        if let next, now < next { return holders.filter { busy.contains($0.key) } }
        holders = [:]
        // One look for all of them: each is being written to, and would have a probe look anew.
        let files = busy.compactMap { path in
            let file = RootedPath(root, path)
            return (try? FileLook.look(at: file))?.identity.map { (path, identity: $0, whole: file.whole) }
        }
        let found = WriterProbe.holders(of: files.map { ($0.identity, $0.whole) })
        for (file, holder) in zip(files, found) { holders[file.0] = holder }
        let cost = now.duration(to: .now)
        next = now.advanced(by: max(Self.pause, cost * 200))
        return holders
    }
}

/// Whether others can have Inlet send what it may read and they may not, by a hard link in a watched folder.
package enum LinkCaution {
    /// What is to be said of a watched folder; nil where its rule, the kernel or its permissions see to it.
    ///
    /// - Parameters:
    ///   - isProtected: what `fs.protected_hardlinks` says; nil where that cannot be read, and is believed to be its usual value.
    ///   - folder: the folder's owner and permission bits.
    ///   - user: ours.
    package static func text(
        _ rule: SourceRule, isProtected: Bool?, folder: (owner: UInt32, mode: UInt32), user: UInt32
    ) -> String? {
        // Who owns the folder may give himself the right to write there.
        let isOthers = folder.mode & 0o022 != 0 || ![0, user].contains(folder.owner)
        guard rule.isOff, isProtected == false, isOthers else { return nil }
        return
            "fs.protected_hardlinks is 0, and others may write here: a hard link to a file that only Inlet may read would be "
            + "sent"
    }

    package static let remedy =
        "set the sysctl fs.protected_hardlinks to 1, or name the 'owners' of what is taken, or refuse 'hard_links'"

    /// The same of the folder at `path`, now. Blocks.
    package static func text(_ rule: SourceRule, at path: FilePath) -> String? {
        guard let folder = try? FileMode.ofFolder(path) else { return nil }
        return text(rule, isProtected: LinkProtection.isOn(), folder: folder, user: ProcessSetup.userID)
    }
}
