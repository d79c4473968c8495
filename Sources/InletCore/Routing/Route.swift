package import SystemPackage

/// One entry of `routes:`: which files it takes, what it demands of them, where they go under which key.
package struct Route: Sendable {
    package enum OnSuccess: String, Sendable, CaseIterable, Codable {
        case keep
        case archive
        case delete
    }
    package enum OnFailure: String, Sendable, CaseIterable, Codable {
        case keep
        case quarantine
    }

    package var name: String
    package var match: RouteMatch
    package var validate: Validation
    /// nil = by extension (`MediaType.category`).
    package var category: String?
    package var key: KeyTemplate
    package var owner: String?
    /// Destination names, at least one, no two the same.
    package var to: [String]
    /// Templates for the destination's own fields.
    package var with: [String: KeyTemplate]
    /// The fields that a sidecar may set: those that the destinations of `to` know. nil = any.
    package var sidecarFields: Set<String>?
    package var onSuccess: OnSuccess
    package var onFailure: OnFailure
    package var retry: RetryPolicy
    package var priority = RouteKeys.all.priority.standard
    /// nil = the root's.
    package var settle: Duration?
    package var sidecars: SidecarRule
    package var unit: RouteUnit
    package var completion: Completion
    /// Texts of the user's own that go with every file of the route into listings, receipts and notifications; `type:` is the
    /// one called `type`.
    package var labels: [String: KeyTemplate] = [:]
    package var receipts = RouteKeys.all.receipts.standard
    package var dedupe = RouteKeys.all.dedupe.standard
    /// What is made of its files and delivered beside them.
    package var derive: [DeriveRule] = []
    /// For `unit: folder` only.
    package var manifest: ManifestRule?
    /// nil = deliveries of big files begin at any time, too.
    package var window: DeliveryWindow?

    package init(
        name: String, match: RouteMatch = RouteMatch(), validate: Validation = Validation(), category: String? = nil,
        key: KeyTemplate = .standard, owner: String? = nil, to: [String], with: [String: KeyTemplate] = [:],
        sidecarFields: Set<String>? = nil, onSuccess: OnSuccess = RouteKeys.all.onSuccess.standard,
        onFailure: OnFailure = RouteKeys.all.onFailure.standard,
        retry: RetryPolicy = RetryPolicy(), settle: Duration? = nil, sidecars: SidecarRule = SidecarRule(),
        unit: RouteUnit = RouteKeys.all.unit.standard, completion: Completion = RouteKeys.all.completion.standard
    ) {
        self.name = name
        self.match = match
        self.validate = validate
        self.category = category
        self.key = key
        self.owner = owner
        self.to = to
        self.with = with
        self.sidecarFields = sidecarFields
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
        self.settle = settle
        self.sidecars = sidecars
        self.unit = unit
        self.completion = completion
    }
}

/// `match:` — all given conditions must hold; none given matches every file.
package struct RouteMatch: Sendable {
    /// Path below the root, by gitignore's rules; any of them.
    package var paths: [GlobPattern]
    /// Lower case, without the dot; any of them; empty = any.
    package var extensions: Set<String>
    package var minSize: Int64?
    package var maxSize: Int64?
    /// What the file is by its content, any of them; empty = any.
    package var mediaTypes: [MediaTypePattern] = []

    package init(
        paths: [GlobPattern] = [], extensions: Set<String> = [], minSize: Int64? = nil, maxSize: Int64? = nil
    ) {
        self.paths = paths
        self.extensions = extensions
        self.minSize = minSize
        self.maxSize = maxSize
    }
}

/// `validate:` — a violation is a rejection with a reason, not a reason to try the next route.
package struct Validation: Sendable, Equatable {
    package var minSize: Int64?
    package var maxSize: Int64?
    /// Lower case, without the dot; nil = any.
    package var extensions: [String]?
    /// What the file may be by its content; empty = anything.
    package var mediaTypes: [MediaTypePattern] = []

    package init(minSize: Int64? = nil, maxSize: Int64? = nil, extensions: [String]? = nil) {
        self.minSize = minSize
        self.maxSize = maxSize
        self.extensions = extensions
    }
}

/// `receipts:` — where a finished file's receipt is written besides the journal, which always keeps it.
package enum ReceiptLocation: String, Sendable, CaseIterable, Codable {
    case none
    /// One JSON file each, below `receipts` of the state directory.
    case folder
    /// Beside the file, wherever that is in the end.
    case sidecar
}

/// `dedupe:` — what happens to a file whose content its destinations have already.
package enum DuplicateRule: String, Sendable, CaseIterable, Codable {
    /// It is sent again.
    case off
    /// It is not sent; it ends as a duplicate of the earlier one.
    case skip
    /// It is not sent; it ends as delivered, at the place of the earlier one.
    case link
}

/// `manifest:` — the checksum list of a unit, for other tools to verify.
package struct ManifestRule: Sendable, Hashable, Codable {
    package enum Format: String, Sendable, CaseIterable, Codable {
        /// ASC MHL 2.0.
        case ascmhl
        /// Media Hash List 1.1.
        case mhl
    }

    /// Those that the lists' readers know.
    package static let algorithms: [Digest.Algorithm] = [.xxh64, .md5, .sha1]

    package var format: Format
    /// What is computed of every file as it is read from its folder.
    package var algorithm: Digest.Algorithm

    package init(format: Format, algorithm: Digest.Algorithm = RouteKeys.all.manifestHash.standard) {
        self.format = format
        self.algorithm = algorithm
    }
}

/// `priority:` of a route: what goes first where several files wait for one destination.
package enum Priority: String, Sendable, CaseIterable, Codable {
    case low
    case normal
    case high

    /// As the journal keeps it; the smallest goes first.
    package var rank: Int { Self.ranked.firstIndex(of: self) ?? 1 }

    /// Those of a rank that nobody knows are as all the others.
    package init(rank: Int) { self = Self.ranked.indices.contains(rank) ? Self.ranked[rank] : .normal }

    /// In the order in which they go.
    package static let ranked: [Priority] = [.high, .normal, .low]
}

extension Route {
    /// The folder that is delivered as one and that the file at `path` is in: the first below the fixed part of the
    /// pattern that takes it (`gigs/**` and `gigs/X/a.mp4` give `gigs/X`), without a pattern the first below the root.
    /// nil for a file directly in the fixed part, and for a route whose unit is the file.
    package func unit(of path: FilePath) -> FilePath? {
        guard unit == .folder else { return nil }
        if match.paths.isEmpty { return path.folder(depth: 1) }
        guard let pattern = match.paths.first(where: { $0.matches(path) }) else { return nil }
        return path.folder(depth: pattern.fixedFolders.count + 1)
    }

    /// The unit that the file at `path` says is complete.
    fileprivate func unitMarked(by path: FilePath) -> FilePath? {
        guard unit == .folder, completion == .marker, path.lastComponent?.string == Completion.folderMarker else {
            return nil
        }
        let unit = path.removingLastComponent()
        let folders = unit.components.map { FilePath(root: nil, [$0]).bytes }
        let isUnit =
            match.paths.isEmpty
            ? folders.count == 1
            : match.paths.contains {
                folders.count == $0.fixedFolders.count + 1 && folders.starts(with: $0.fixedFolders)
            }
        return isUnit ? unit : nil
    }
}

extension RouteTable {
    /// The unit that the file at `path` is the marker of; nil for every file that is none.
    package func unitMarked(by path: FilePath) -> FilePath? {
        hasUnits ? routes.lazy.compactMap { $0.unitMarked(by: path) }.first : nil
    }

    /// The file that the one at `path` is the marker of; nil for every file that is none.
    package func fileMarked(by path: FilePath) -> FilePath? {
        belongings(of: path).first { $0.companion.kind == .marker }?.main
    }

    /// The route called `name`.
    package func named(_ name: String) -> Route? { routes.first { $0.name == name } }
}

extension FilePath {
    /// The first `depth` folders of a relative path to a file; nil when it has fewer.
    fileprivate func folder(depth: Int) -> FilePath? {
        guard components.count > depth else { return nil }
        return FilePath(root: nil, components.prefix(depth))
    }
}

/// `sidecars:` of a route: which small files belong to each of its files, and how long they wait for each other.
package struct SidecarRule: Sendable, Equatable {
    /// `<file>.yaml` (or `.yml`) holds the destination's own fields of the file.
    package var metadata: Bool
    /// Endings of companions, in lower case, without the dot: `clip.xmp` and `clip.mp4.xmp` belong to `clip.mp4`.
    package var extensions: [String]
    /// How long a file must be quiet before it goes without what is missing, and a companion without its file.
    package var wait: Duration

    package init(
        metadata: Bool = RouteKeys.all.sidecarsMetadata.standard, extensions: [String] = [],
        wait: Duration = RouteKeys.all.sidecarsWait.standard
    ) {
        self.metadata = metadata
        self.extensions = extensions
        self.wait = wait
    }

    package var isEmpty: Bool { !metadata && extensions.isEmpty }
}

/// `unit:` of a route: what is delivered as one.
package enum RouteUnit: String, Sendable, CaseIterable {
    /// Each file for itself.
    case file
    /// All files of a folder: none of them before the folder is closed.
    case folder
}

/// `completion:` of a route: what says that a unit is complete.
package enum Completion: String, Sendable, CaseIterable {
    /// Nothing happens to it for the settle time.
    case quiet
    /// An empty file beside it: `<name>.done` for a file, `DONE` in a folder.
    case marker

    /// What a marker's name adds to its file's.
    static let fileEnding = "done"
    /// The marker of a folder.
    package static let folderMarker = "DONE"
    /// In a folder, what it says of its files; never sent.
    package static let labelsFile = ".inlet.yaml"
}
