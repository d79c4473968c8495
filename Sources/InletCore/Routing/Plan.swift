package import SystemPackage

/// A regular file as it was when it was looked at, before anything is decided about it. Whether it is complete is judged later
/// (`Settler.judge`).
package struct FoundFile: Sendable, Hashable {
    /// The watched folder, absolute.
    package var root: FilePath
    /// Relative to `root`.
    package var path: FilePath
    package var identity: FileIdentity
    /// The file system that it is on; nil where nobody asked.
    package var volume: Volume?

    package init(root: FilePath, path: FilePath, identity: FileIdentity, volume: Volume? = nil) {
        self.root = root
        self.path = path
        self.identity = identity
        self.volume = volume
    }
}

/// What has been found out about a file beyond its identity; see `FileProperty`.
package struct FileProperties: Sendable, Hashable {
    package var sequence: Int64?
    package var captured: Captured?
    /// By the file's content, in lower case; `application/octet-stream` when that is of no known kind.
    package var mediaType: String?
    /// Checksums of the whole file, by their algorithm.
    package var digests: [Digest.Algorithm: Digest] = [:]
    package var sha256: Digest? { digests[.sha256] }
    /// What the file's sidecar says, by field of the destination; no template asks for it, so it has no `FileProperty`.
    package var metadata: [String: String]
    /// The labels that it gives the file.
    package var labels: [String: String] = [:]

    package init(
        sha256: Digest? = nil, sequence: Int64? = nil, captured: Captured? = nil, metadata: [String: String] = [:]
    ) {
        digests[.sha256] = sha256
        self.sequence = sequence
        self.captured = captured
        self.metadata = metadata
    }

    /// Takes in what the file's sidecar says.
    package mutating func add(_ sidecar: Sidecar) { (metadata, labels) = (sidecar.fields, sidecar.labels) }

    /// Takes checksums of the whole file in.
    package mutating func add(_ found: [Digest]) {
        for digest in found { digests[digest.algorithm] = digest }
    }

    /// Those of `wanted` that are not known yet.
    package func missing(of wanted: Set<FileProperty>) -> Set<FileProperty> {
        wanted.filter { fact in
            switch fact {
            case .sequence: sequence == nil
            case .captured: captured == nil
            case .digest(let algorithm): digests[algorithm] == nil
            case .mediaType: mediaType == nil
            }
        }
    }
}

/// What will be done with one file, fixed at admission.
package struct Plan: Sendable, Equatable {
    /// The route's name.
    package var route: String
    package var category: String
    package var key: String
    package var mediaType: String
    /// The destination's own fields: the route's templates, rendered, and over them what the file's sidecar says.
    package var with: [String: String]
    /// Names, in the route's order.
    package var destinations: [String]
    package var onSuccess: Route.OnSuccess
    package var onFailure: Route.OnFailure
    package var retry: RetryPolicy
    package var priority = Priority.normal
    package var receipts = ReceiptLocation.none
    package var dedupe = DuplicateRule.off
    package var manifest: ManifestRule?
    package var window: DeliveryWindow?
    /// The route's labels, rendered, and over them the sidecar's; empty ones are left out.
    package var labels: [String: String] = [:]
    /// The names of those that the sidecar gave: labels of the file's unit, which come later, do not replace them.
    package var ownLabels: Set<String> = []
    /// The checksums that were read for the plan: SHA-256 where `dedupe` or a template asks for it, the manifest's own.
    package var digests: [Digest] = []
    /// What a person should know of how the plan came about, a sentence each; said once, at admission.
    package var notes: [String]

    package init(
        route: String, category: String, key: String, mediaType: String, with: [String: String] = [:],
        destinations: [String], onSuccess: Route.OnSuccess = .keep, onFailure: Route.OnFailure = .keep,
        retry: RetryPolicy = RetryPolicy(), notes: [String] = []
    ) {
        self.route = route
        self.category = category
        self.key = key
        self.mediaType = mediaType
        self.with = with
        self.destinations = destinations
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
        self.notes = notes
    }
}

/// What the routes say about one file.
package enum RoutingResult: Sendable {
    case plan(Plan)
    /// Ask again with these facts.
    case needs(Set<FileProperty>)
    /// No route takes it.
    case unmatched
    /// The first route that takes it does not accept it; `reason` is a sentence for a person.
    case rejected(route: Route, reason: String)
}

/// What a file's sidecar says of it.
package struct Sidecar: Sendable, Equatable {
    /// Fields of the destination, as the route's `with:` has them.
    package var fields: [String: String]
    /// Labels of the file, over those of its unit and its route.
    package var labels: [String: String]

    package init(fields: [String: String] = [:], labels: [String: String] = [:]) {
        self.fields = fields
        self.labels = labels
    }
}

// How a sidecar's fields meet the templates of `with:`.
extension Route {
    /// `rendered` with what the sidecar says in its place, and a note for each field of the sidecar that was left out.
    ///
    /// The sidecar wins field by field: who wrote it knows this one file, the route knows the folder. It sets fields of the
    /// destination and nothing else; route, key, category and where the file goes stay the configuration's, so that who can
    /// drop a file cannot choose its place. Fields that no destination of the route knows are left out with a note. An
    /// empty text empties a field.
    func merged(
        _ rendered: [String: String], _ metadata: [String: String]
    ) -> (with: [String: String], notes: [String]) {
        let known = sidecarFields ?? Set(metadata.keys)
        let taken = metadata.filter { known.contains($0.key) }.mapValues(Self.line)
        let unknown = metadata.keys.filter { !known.contains($0) }.sorted()
        return (rendered.merging(taken) { _, sidecar in sidecar }, unknown.map { Self.note($0, known) })
    }

    private static func note(_ name: String, _ known: Set<String>) -> String {
        let hint = Suggestion.hint(name, in: known.sorted())
        return "ignored the sidecar's field '\(DisplayText.escape(name))', which the destination does not have\(hint)"
    }

    /// Fields go into headers and forms: one line each, as templates give it. A break becomes a space.
    static func line(_ text: String) -> String {
        let pieces = text.split { $0.isNewline || $0 == "\t" }
        return KeySanitizer.withoutControls(pieces.joined(separator: " "))
    }
}
