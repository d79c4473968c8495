package import SystemPackage

/// `readers:` — how many files are read at once from one disk.
package enum ReaderRule: String, Sendable, CaseIterable {
    case one = "1"
    case two = "2"
    /// One from a disk that turns; others are not bounded.
    case auto

    /// nil for no bound.
    package func count(isRotating: Bool) -> Int? {
        switch self {
        case .one: 1
        case .two: 2
        case .auto: isRotating ? 1 : nil
        }
    }
}

/// An entry of `watch:`.
package struct WatchSettings: Sendable, Equatable {
    /// What to do with files that were there before the root was first watched.
    package enum Existing: String, Sendable, CaseIterable {
        case ingest
        case skip
        /// They count as delivered without being sent.
        case adopt
    }

    /// What to do with a card that is safe to remove.
    package enum OnComplete: String, Sendable, CaseIterable {
        case keep
        /// Unmounts it, and switches a disk off.
        case eject
    }

    /// Absolute; need not exist yet.
    package var path: FilePath
    /// How to notice changes.
    package var mode: Mode
    package var recursive: Bool
    package var settle: Duration
    /// The same for an empty file, which may be a placeholder for a file that is still arriving; zero treats it like
    /// any other.
    package var settleEmpty = WatchKeys.all.settleEmpty.standard
    /// nil for off.
    package var rescan: Duration?
    package var existing: Existing
    /// With `existing: adopt`: adopts only files that their destinations have, if they can be asked; the others are
    /// sent.
    package var adoptCheck = WatchKeys.all.adoptCheck.standard
    /// Which files to take, by their owner and links.
    package var sources = SourceRule()
    /// The user's patterns, in addition to `IgnoreList.builtIn`.
    package var ignore: [GlobPattern]
    /// Relative to the root, unless absolute.
    package var archiveDirectory: FilePath
    package var quarantineDirectory: FilePath
    /// How long to hold a file before deleting or archiving it if its writers cannot be known.
    package var hold: Duration
    /// The shortest pause between two polls; it grows with their cost.
    package var poll = WatchKeys.all.poll.standard
    /// How long a file may take to be complete before the log names the reason; not a key of the configuration.
    package var unsettledAfter = Duration.seconds(900)
    /// The folder is quiet if no file comes for so long; nil for off.
    package var expect = WatchKeys.all.expect.standard
    /// Set if `path` is a pattern for folders that come and go with their volumes.
    package var pattern: RootPattern?
    /// How many of its files are read at once.
    package var readers = WatchKeys.all.readers.standard
    /// Whether other agents may watch it at the same time.
    package var isShared = false
    /// The name of a share that other agents of the fleet watch too; nil for a folder of this agent's own.
    package var place: String?
    /// Whether files may be moved, deleted or written in folders of a pattern.
    package var volumeWrites = false
    /// What to do with a card of a pattern that is safe to remove.
    package var onComplete = OnComplete.keep
    /// The program that follows the state of each card of a pattern, and its arguments.
    package var onCard: [String]?
    /// How many destinations must prove a volume's files before it can be removed; nil for all.
    package var volumeDoneAfter: Int?
    /// The forms of the report that each folder destination gets when a card is safe.
    package var cardReport: [OffloadForm] = []
    /// When a card is safe to remove.
    package var card = CardRules()
    /// Whether to ask for a card's labels.
    package var ask = CardQuestion.offer

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

    /// The watched folder that contains `path`, or is it; nil if there is none.
    package func root(of path: FilePath) -> FilePath? {
        if let pattern { return pattern.root(of: path) }
        return path.isWithin(self.path) ? self.path : nil
    }

    /// Whether these settings apply to `root`, a watched folder.
    package func covers(_ root: FilePath) -> Bool { self.root(of: root) == root }

    /// The same settings for one folder of the pattern.
    package func at(_ root: FilePath) -> WatchSettings {
        var settings = self
        settings.path = root
        return settings
    }
}

extension WatchSettings {
    /// How to notice changes below a root.
    package enum Mode: String, Sendable, CaseIterable {
        /// Events on local file systems, polling on those that hide remote changes; decided for each mount.
        case auto
        case inotify
        case poll
        /// Like `auto`, but with one mark for a file system instead of a watch for each folder, if possible.
        case fanotify
    }
}

/// `ask:` of an entry of `watch:`: whether a person is asked for the labels of an inserted card.
package enum CardQuestion: String, Sendable, CaseIterable {
    case never
    /// Files do not wait for the answer.
    case offer
    /// Files whose route uses a label that has no value wait for it.
    case wait
}

/// How changes below a folder are noticed.
package enum WatchMode: String, Sendable {
    case inotify
    case poll
    case fanotify
    /// For a whole root: some of its folders are polled, others raise events.
    case mixed
}

/// Which regular files of a watched folder to take. Anyone who can create names there can create one for another user's
/// file: a hard link needs no read permission if `fs.protected_hardlinks` is 0.
package struct SourceRule: Sendable, Equatable {
    package enum HardLinks: String, Sendable, CaseIterable {
        case allow, refuse
    }

    /// User IDs; nil for any.
    package var owners: Set<UInt32>?
    package var hardLinks: HardLinks

    package init(owners: Set<UInt32>? = nil, hardLinks: HardLinks = WatchKeys.all.hardLinks.standard) {
        self.owners = owners
        self.hardLinks = hardLinks
    }

    /// Why a file is excluded.
    package enum Refusal: Sendable, Hashable {
        case owner(UInt32)
        /// It has more than one name.
        case links
    }

    /// Whether it excludes anything.
    package var isOff: Bool { owners == nil && hardLinks == .allow }

    /// The reason to exclude a file of `owner` with this many names; nil to take it.
    package func refusal(owner: UInt32, links: UInt64) -> Refusal? {
        if let owners, !owners.contains(owner) { return .owner(owner) }
        return hardLinks == .refuse && links > 1 ? .links : nil
    }
}

extension SourceRule.Refusal {
    /// The reason with its remedy, for people.
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

/// The result of looking up a user by name.
package enum UserLookup: Sendable, Equatable {
    case found(UInt32)
    case unknown
    case failed(String)

    /// Without the system's user database.
    package static let onlyRoot: @Sendable (String) -> UserLookup = { $0 == "root" ? .found(0) : .unknown }
}
