/// Everything that is known of a card at one moment. `CardVerdict` decides by it, and `lines` tell it.
package struct CardFacts: Sendable, Equatable {
    /// How far the card has come.
    package enum Stage: String, Sendable, Codable {
        /// Its content is being listed.
        case listing
        /// Files of it wait, or are on their way.
        case copying
        /// Its destinations are asked whether they have its files.
        case asking
        /// Its files are read a second time.
        case checking
        /// Everything has been looked at.
        case known
    }

    package var stage = Stage.listing
    /// Whether it was unmounted by an eject.
    package var isOut = false
    /// Whether it no longer answers, although it is still mounted.
    package var isPulled = false
    /// Whether no watched pattern fits anything on it.
    package var isUnknown = false
    /// Whether files wait for a person to name its roll (`ask: wait`).
    package var awaitsLabels = false

    /// The camera's system, by the names of its folders.
    package var camera: String?

    /// Everything on it, and the sum of the sizes; `isWhole` is false where not all of it could be listed.
    package var files = 0
    package var bytes: Int64 = 0
    package var isWhole = true
    /// Files that enough destinations have now.
    package var accounted = 0
    package var accountedBytes: Int64 = 0
    /// Files that wait or are on their way.
    package var open = 0
    package var openBytes: Int64 = 0
    /// Whether all files in its watched folders have been taken in: then no others are on their way.
    package var isTakenIn = false
    /// Files that ended without being delivered.
    package var failed = 0
    /// Files without enough copies on disks of their own, although each delivery has ended.
    package var short = 0
    /// Files that wait for their marker.
    package var unmarked = 0
    /// Files and folders that could not be read.
    package var unread = 0
    /// Whether it has a `lost+found` that only root may look into.
    package var hasClosedLostFound = false
    /// Files that operating systems and Inlet itself put there. They count nowhere else.
    package var systemFiles = 0
    /// Files that Inlet did not take, by the reason.
    package var others: [OtherFiles] = []
    /// Whether a person has said that they may stay (`inlet cards leave`).
    package var othersMayStay = false
    package var places: [CardPlace] = []
    /// How many disks must have each file; nil is every destination of its route.
    package var copies: Int?
    /// Which destinations share a disk, in words: together they are one copy.
    package var shared: [String] = []
    package var source = SourceCheck.off
    /// Files that were to be read a second time, and have no known checksum to compare with.
    package var unchecked = 0
    /// Checksum lists on it that could not be used.
    package var listFaults: [String] = []
    /// Files that do not open, are empty, or are missing from a run of numbers. They are copied too.
    package var suspects: [String] = []
    package var readErrors = CardErrors()

    package init() {}

    /// All of `others`: they hold the verdict up.
    package var otherFiles: Int { others.reduce(0) { $0 + $1.files } }
}

/// Files on a card that Inlet did not take.
package struct OtherFiles: Sendable, Equatable, Codable {
    package enum Reason: String, Sendable, Codable, CaseIterable {
        /// They lie outside of the watched folder.
        case outside
        /// No route takes them, or a rule of the watched folder leaves them out.
        case unrouted
        /// Symlinks, sockets and other things without content.
        case irregular
    }

    package var reason: Reason
    package var files = 0
    package var bytes: Int64 = 0
    /// Some of their folders, below the card's top.
    package var folders: [String] = []

    package static let mostFolders = 5

    package init(reason: Reason, files: Int = 0, bytes: Int64 = 0, folders: [String] = []) {
        (self.reason, self.files, self.bytes, self.folders) = (reason, files, bytes, folders)
    }

    package mutating func add(size: Int64, folder: String) {
        files += 1
        bytes += size
        if folders.count < Self.mostFolders, !folders.contains(folder) { folders.append(folder) }
    }

    /// `3 files, 2.0 MiB, outside of the watched folder: in MISC, PRIVATE`
    package var words: String {
        let what =
            switch reason {
            case .outside: "outside of the watched folder"
            case .unrouted: "that no route takes"
            case .irregular: "that are no regular files"
            }
        let places = folders.map { $0.isEmpty ? "the card's top" : $0 }.joined(separator: ", ")
        return "\(files.counted("file", "files")), \(ByteText.format(bytes)), \(what): in \(places)"
    }
}

/// The state of a card's files at one destination.
package struct CardPlace: Sendable, Equatable {
    package var name: String
    /// Whether the card is not safe without it, however many copies there are.
    package var isRequired = false
    /// Files that belong there.
    package var files = 0
    /// Files that are there with bytes that were read back, or with a checksum that the store confirmed.
    package var proved = 0
    /// Files of which only the size was compared.
    package var sized = 0
    /// Files that it had, and no longer has.
    package var missing = 0
    /// Files about which it cannot be asked now: they count as not there.
    package var silent = 0
    /// Files about which it can be asked no more, or refuses to answer: they count as not there, too.
    package var unconfirmed = 0
    /// Files that are on their way.
    package var open = 0
    /// Files whose delivery failed.
    package var failed = 0
    /// When it was asked last.
    package var askedAt: WallTime?
    /// A reason why something is missing, silent or failed.
    package var reason: String?

    package init(name: String, isRequired: Bool = false) { (self.name, self.isRequired) = (name, isRequired) }

    /// Whether all files are there now.
    package var isWhole: Bool { proved + sized == files }

    /// `at nas 182 of 186: 4 missing, asked 12:59`
    package func words(time: (WallTime) -> String) -> String {
        var text = "at \(name) \(proved + sized) of \(files)"
        if sized > 0 {
            text += proved == 0 ? ", copied, sizes equal, not verified" : ", \(sized) of them with equal sizes only"
        } else if isWhole, files > 0 {
            text += ", proved"
        }
        let rest = [
            (open, "on their way"), (missing, "missing"), (silent, "unknown"), (unconfirmed, "not confirmed"),
            (failed, "failed"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !rest.isEmpty { text += ": " + rest.joined(separator: ", ") }
        if let reason, missing + silent + unconfirmed + failed > 0 { text += " (\(reason))" }
        if let askedAt { text += ", asked \(time(askedAt))" }
        return text
    }
}

/// The second look at a card's own files (`source_check`).
package enum SourceCheck: Sendable, Equatable {
    case off
    /// Not begun, or under way.
    case running(done: Int, of: Int)
    /// Read again, and equal to what was delivered.
    case same(files: Int)
    /// A checksum list on the card says the same.
    case listed(files: Int, list: String)
    /// These differ from what was delivered, or from the card's list.
    case differs([String])
}

/// The errors and slow reads of a card over its whole life.
package struct CardErrors: Sendable, Equatable, Codable {
    package var reads = 0
    package var lastRead: WallTime?
    package var slow = 0

    package init(reads: Int = 0, lastRead: WallTime? = nil, slow: Int = 0) {
        (self.reads, self.lastRead, self.slow) = (reads, lastRead, slow)
    }
}
