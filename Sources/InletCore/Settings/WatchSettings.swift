package import SystemPackage

/// One entry of `watch:`.
package struct WatchSettings: Sendable, Equatable {
    /// What to do with files that are there before the root was first watched.
    package enum Existing: String, Sendable, CaseIterable {
        case ingest
        case skip
        /// They are known as delivered without being sent.
        case adopt
    }

    /// Absolute; may not exist yet.
    package var path: FilePath
    /// How changes are to be found out.
    package var mode: Mode
    package var recursive: Bool
    package var settle: Duration
    /// The same of an empty file, which may only hold the name of one that is on its way; zero = as any other.
    package var settleEmpty = WatchKeys.all.settleEmpty.standard
    /// nil = off.
    package var rescan: Duration?
    package var existing: Existing
    /// With `existing: adopt`: only what its destinations have, where they can be asked; the others are sent.
    package var adoptCheck = WatchKeys.all.adoptCheck.standard
    /// Which files are taken, by what they themselves say.
    package var sources = SourceRule()
    /// The user's own patterns, on top of `IgnoreList.builtIn`.
    package var ignore: [GlobPattern]
    /// Below the root, unless absolute.
    package var archiveDirectory: FilePath
    package var quarantineDirectory: FilePath
    /// How long a file whose writers cannot be known is held before it is deleted or archived.
    package var hold: Duration
    /// The least pause between two looks at what is polled; it grows with what a look costs.
    package var poll = WatchKeys.all.poll.standard
    /// How long a file may take to be complete before the log says what keeps it; no key of the configuration.
    package var unsettledAfter = Duration.seconds(900)
    /// Set where `path` is a pattern for folders that come and go with their volumes.
    package var pattern: RootPattern?
    /// Whether other agents may watch it at the same time.
    package var isShared = false
    /// Whether anything may be moved, deleted or written in folders of a pattern.
    package var volumeWrites = false
    /// By how many destinations a file of a volume must be proved before that can be taken out; nil = by all.
    package var volumeDoneAfter: Int?

    package init(
        path: FilePath, mode: Mode = WatchKeys.all.mode.standard, recursive: Bool = WatchKeys.all.recursive.standard,
        settle: Duration = WatchKeys.all.settle.standard, rescan: Duration? = WatchKeys.all.rescan.standard,
        existing: Existing = WatchKeys.all.existing.standard, ignore: [GlobPattern] = [],
        archiveDirectory: FilePath = FilePath(WatchKeys.all.archiveDirectory.standard),
        quarantineDirectory: FilePath = FilePath(WatchKeys.all.quarantineDirectory.standard),
        hold: Duration = WatchKeys.all.hold.standard
    ) {
        self.path = path
        self.mode = mode
        self.recursive = recursive
        self.settle = settle
        self.rescan = rescan
        self.existing = existing
        self.ignore = ignore
        self.archiveDirectory = archiveDirectory
        self.quarantineDirectory = quarantineDirectory
        self.hold = hold
    }

    /// The watched folder that `path` is, or lies in; nil for a path elsewhere.
    package func root(of path: FilePath) -> FilePath? {
        if let pattern { return pattern.root(of: path) }
        return path.isWithin(self.path) ? self.path : nil
    }

    /// Whether this is about `root`, itself a watched folder.
    package func covers(_ root: FilePath) -> Bool { self.root(of: root) == root }

    /// The same for one folder of the pattern.
    package func at(_ root: FilePath) -> WatchSettings {
        var settings = self
        settings.path = root
        return settings
    }
}

extension WatchSettings {
    /// How changes below a root are to be found out.
    package enum Mode: String, Sendable, CaseIterable {
        /// By events on local file systems, by polling on those that hide changes made elsewhere; decided per mount.
        case auto
        case inotify
        case poll
        /// As `auto`, but with one mark for a file system instead of a watch for each folder, where that can be had.
        case fanotify
    }
}

/// How changes below a folder are found out.
package enum WatchMode: String, Sendable {
    case inotify
    case poll
    case fanotify
    /// Of a whole root: some of its folders are polled, the kernel tells of the others.
    case mixed
}

/// Which regular files of a watched folder are taken, by what the files themselves say. Who may put names there may give one
/// to a file of somebody else: a hard link needs no right to read it where `fs.protected_hardlinks` is 0.
package struct SourceRule: Sendable, Equatable {
    package enum HardLinks: String, Sendable, CaseIterable {
        case allow, refuse
    }

    /// User IDs; nil = any.
    package var owners: Set<UInt32>?
    package var hardLinks: HardLinks

    package init(owners: Set<UInt32>? = nil, hardLinks: HardLinks = WatchKeys.all.hardLinks.standard) {
        self.owners = owners
        self.hardLinks = hardLinks
    }

    /// Why a file is not taken.
    package enum Refusal: Sendable, Hashable {
        case owner(UInt32)
        /// It has more than one name.
        case links
    }

    /// Whether it refuses anything at all.
    package var isOff: Bool { owners == nil && hardLinks == .allow }

    /// What the rule says of a file of `owner` with so many names; nil = it is taken.
    package func refusal(owner: UInt32, links: UInt64) -> Refusal? {
        if let owners, !owners.contains(owner) { return .owner(owner) }
        return hardLinks == .refuse && links > 1 ? .links : nil
    }
}

extension SourceRule.Refusal {
    /// What to do about it, for people.
    package func reason(files count: Int) -> String {
        let (files, their) = count == 1 ? ("1 file", "its") : ("\(count) files", "their")
        return switch self {
        case .owner(let user):
            "ignored \(files) of user \(user) in this folder; add the user to 'owners', or give \(count == 1 ? "it" : "them") "
                + "to one of the owners (chown)"
        case .links:
            "ignored \(files) with more than one name in this folder ('hard_links' is refuse); remove \(their) other links, "
                + "or put copies here"
        }
    }
}

/// The answer to a look-up of a user by name.
package enum UserLookup: Sendable, Equatable {
    case found(UInt32)
    case unknown
    case failed(String)

    /// Without the system's user database.
    package static let onlyRoot: @Sendable (String) -> UserLookup = { $0 == "root" ? .found(0) : .unknown }
}
