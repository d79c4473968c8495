package import SystemPackage

/// An entry of `routes:`: the files it takes, its requirements, their destinations and keys.
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
    /// nil for the category by extension (`MediaType.category`).
    package var category: String?
    package var key: KeyTemplate
    package var owner: String?
    /// For each destination; clean where it has none.
    package var names: [String: NameForm] = [:]
    /// Names of destinations: at least one, without duplicates.
    package var to: [String]
    /// Templates for fields of the destinations.
    package var with: [String: KeyTemplate]
    /// The fields that a sidecar may set, which the destinations of `to` support; nil for any.
    package var sidecarFields: Set<String>?
    package var onSuccess: OnSuccess
    package var onFailure: OnFailure
    package var retry: RetryPolicy
    package var priority = RouteKeys.all.priority.standard
    /// nil for the root's.
    package var settle: Duration?
    package var sidecars: SidecarRule
    package var unit: RouteUnit
    package var completion: Completion
    /// The user's texts for every file of the route in lists, receipts and notifications; `type:` is the label `type`.
    package var labels: [String: KeyTemplate] = [:]
    package var receipts = RouteKeys.all.receipts.standard
    package var dedupe = RouteKeys.all.dedupe.standard
    /// Files made from its files, and delivered beside them.
    package var derive: [DeriveRule] = []
    /// Only for `unit: folder`.
    package var manifest: ManifestRule?
    /// nil if deliveries of big files may start at any time.
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

/// `match:` — all given conditions must hold; without conditions, every file matches.
package struct RouteMatch: Sendable {
    /// Patterns for the path below the root, with the rules of .gitignore; one must match.
    package var paths: [GlobPattern]
    /// In lower case, without the dot; one must match; empty for any.
    package var extensions: Set<String>
    package var minSize: Int64?
    package var maxSize: Int64?
    /// Media types by content; one must match; empty for any.
    package var mediaTypes: [MediaTypePattern] = []
    /// One must match; empty for any camera, also an unknown one.
    package var cameras: [CameraPattern] = []

    package init(
        paths: [GlobPattern] = [], extensions: Set<String> = [], minSize: Int64? = nil, maxSize: Int64? = nil
    ) {
        self.paths = paths
        self.extensions = extensions
        self.minSize = minSize
        self.maxSize = maxSize
    }
}

/// `validate:` — a violation rejects the file with a reason; Inlet does not try the next route.
package struct Validation: Sendable, Equatable {
    package var minSize: Int64?
    package var maxSize: Int64?
    /// In lower case, without the dot; nil for any.
    package var extensions: [String]?
    /// Allowed media types by content; empty for any.
    package var mediaTypes: [MediaTypePattern] = []

    package init(minSize: Int64? = nil, maxSize: Int64? = nil, extensions: [String]? = nil) {
        self.minSize = minSize
        self.maxSize = maxSize
        self.extensions = extensions
    }
}

/// `receipts:` — where to write a finished file's receipt in addition to the journal.
package enum ReceiptLocation: String, Sendable, CaseIterable, Codable {
    case none
    /// One JSON file per receipt, in `receipts` of the state directory.
    case folder
    /// Beside the file, wherever it ends up.
    case sidecar
}

/// `dedupe:` — what to do with a file whose content its destinations already have.
package enum DuplicateRule: String, Sendable, CaseIterable, Codable {
    /// Sends it again.
    case off
    /// Does not send it; it ends as a duplicate of the earlier file.
    case skip
    /// Does not send it; it ends as delivered, at the earlier file's key.
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

    /// The algorithms that readers of the lists support.
    package static let algorithms: [Digest.Algorithm] = [.xxh64, .md5, .sha1]

    package var format: Format
    /// The hash to compute for each file while it is read.
    package var algorithm: Digest.Algorithm

    package init(format: Format, algorithm: Digest.Algorithm = RouteKeys.all.manifestHash.standard) {
        self.format = format
        self.algorithm = algorithm
    }
}

/// `priority:` of a route: the order in which files go to a destination when several wait.
package enum Priority: String, Sendable, CaseIterable, Codable {
    case low
    case normal
    case high

    /// The journal's form; the smallest goes first.
    package var rank: Int { Self.ranked.firstIndex(of: self) ?? 1 }

    /// Unknown ranks count as normal.
    package init(rank: Int) { self = Self.ranked.indices.contains(rank) ? Self.ranked[rank] : .normal }

    /// In the order of sending.
    package static let ranked: [Priority] = [.high, .normal, .low]
}

extension Route {
    /// The unit of the file at `path`: the first folder below the fixed part of the pattern that matches (`gigs/**` and
    /// `gigs/X/a.mp4` give `gigs/X`). Without a pattern, the first folder below the root. A file directly in the fixed
    /// part has none, nor has a route with `unit: file`.
    package func unit(of path: FilePath) -> FilePath? {
        guard unit == .folder else { return nil }
        if match.paths.isEmpty { return path.folder(depth: 1) }
        guard let pattern = match.paths.first(where: { $0.matches(path) }) else { return nil }
        return path.folder(depth: pattern.fixedFolders.count + 1)
    }

    /// The unit that the file at `path` marks as complete.
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
    /// The unit whose marker is at `path`; nil if it is not a marker.
    package func unitMarked(by path: FilePath) -> FilePath? {
        hasUnits ? routes.lazy.compactMap { $0.unitMarked(by: path) }.first : nil
    }

    /// The file whose marker is at `path`; nil if it is not a marker.
    package func fileMarked(by path: FilePath) -> FilePath? {
        belongings(of: path).first { $0.companion.kind == .marker }?.main
    }

    /// The route named `name`.
    package func named(_ name: String) -> Route? { routes.first { $0.name == name } }
}

extension FilePath {
    /// The first `depth` folders of a relative path to a file; nil if it has fewer.
    fileprivate func folder(depth: Int) -> FilePath? {
        guard components.count > depth else { return nil }
        return FilePath(root: nil, components.prefix(depth))
    }
}

/// `sidecars:` of a route: which small files belong to its files, and how long they wait for each other.
package struct SidecarRule: Sendable, Equatable {
    /// Whether `<file>.yaml` (or `.yml`) contains fields of the destination.
    package var metadata: Bool
    /// Endings of companions in lower case, without the dot: `clip.xmp` and `clip.mp4.xmp` belong to `clip.mp4`.
    package var extensions: [String]
    /// How long a file must be quiet before it goes without missing companions, and a companion without its file.
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
    /// Each file alone.
    case file
    /// All files of a folder, when the folder is closed.
    case folder
}

/// `completion:` of a route: how to tell that a unit is complete.
package enum Completion: String, Sendable, CaseIterable {
    /// It is unchanged for the settle time.
    case quiet
    /// An empty file beside it: `<name>.done` for a file, `DONE` in a folder.
    case marker

    /// The ending that a marker's name adds to its file's.
    static let fileEnding = "done"
    /// The marker of a folder.
    package static let folderMarker = "DONE"
    /// The labels of a folder's files; never sent.
    package static let labelsFile = ".inlet.yaml"
}
