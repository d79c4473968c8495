package import SystemPackage

/// A regular file as it was found, before any decision about it. `Settler.judge` decides later whether it is complete.
package struct FoundFile: Sendable, Hashable {
    /// The watched folder, absolute.
    package var root: FilePath
    /// Relative to `root`.
    package var path: FilePath
    package var identity: FileIdentity
    /// Its file system; nil if unknown.
    package var volume: Volume?

    package init(root: FilePath, path: FilePath, identity: FileIdentity, volume: Volume? = nil) {
        self.root = root
        self.path = path
        self.identity = identity
        self.volume = volume
    }
}

/// The facts about a file beyond its identity; see `FileProperty`.
package struct FileProperties: Sendable, Hashable {
    package var sequence: Int64?
    package var captured: Captured?
    /// By content, in lower case; `application/octet-stream` for unknown content.
    package var mediaType: String?
    /// Checksums of the whole file, by algorithm.
    package var digests: [Digest.Algorithm: Digest] = [:]
    package var sha256: Digest? { digests[.sha256] }
    /// Without values if nothing tells; nil if the file was not asked.
    package var camera: Camera?
    /// The labels of its card, none for a file on no card; nil if nobody was asked.
    package var card: CardLabels?
    /// Whether a label without a value is waited for (`ask: wait`); otherwise it is empty in keys.
    package var awaitsCard = false
    /// The fields in the file's sidecar; no template needs them, so they have no `FileProperty`.
    package var metadata: [String: String]
    /// The labels in the file's sidecar.
    package var labels: [String: String] = [:]

    package init(
        sha256: Digest? = nil, sequence: Int64? = nil, captured: Captured? = nil, metadata: [String: String] = [:]
    ) {
        digests[.sha256] = sha256
        self.sequence = sequence
        self.captured = captured
        self.metadata = metadata
    }

    /// Adds the content of the file's sidecar.
    package mutating func add(_ sidecar: Sidecar) { (metadata, labels) = (sidecar.fields, sidecar.labels) }

    /// Adds checksums of the whole file.
    package mutating func add(_ found: [Digest]) {
        for digest in found { digests[digest.algorithm] = digest }
    }

    /// The facts of `wanted` that are still unknown.
    package func missing(of wanted: Set<FileProperty>) -> Set<FileProperty> {
        wanted.filter { fact in
            switch fact {
            case .sequence: sequence == nil
            case .captured: captured == nil
            case .digest(let algorithm): digests[algorithm] == nil
            case .mediaType: mediaType == nil
            case .camera: camera == nil
            case .card(let label): isMissing(label)
            }
        }
    }
}

extension FileProperties {
    private func isMissing(_ label: CardLabels.Field) -> Bool {
        guard let card else { return true }
        guard awaitsCard, card[label] == nil else { return false }
        // The file's own camera comes first; while it is unknown, it is asked for by itself.
        return label != .camera || camera.map { $0.name == nil } ?? false
    }
}

/// The decisions about a file, fixed at admission.
package struct Plan: Sendable, Equatable {
    /// The route's name.
    package var route: String
    package var category: String
    /// For its first destination.
    package var key: String
    /// The keys of the destinations whose names have another form.
    package var otherKeys: [String: String] = [:]
    package var mediaType: String
    /// The destination's fields: the route's templates, rendered, overridden by the file's sidecar.
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
    /// The route's labels, rendered, overridden by the sidecar's; without empty ones.
    package var labels: [String: String] = [:]
    /// The names of labels from the sidecar: the unit's labels, which come later, do not replace them.
    package var ownLabels: Set<String> = []
    /// The checksums read for the plan: SHA-256 if `dedupe` or a template needs it, and the manifest's.
    package var digests: [Digest] = []
    /// Remarks on the plan for people, one sentence each; reported once, at admission.
    package var notes: [String]

    package func key(at destination: String) -> String { otherKeys[destination] ?? key }

    /// Its keys, for people.
    package var keyText: String {
        let others = otherKeys.filter { !$0.value.utf8.elementsEqual(key.utf8) }.sorted { $0.key < $1.key }
        return ([DisplayText.escape(key)] + others.map { "\(DisplayText.escape($1)) at \($0)" }).joined(separator: ", ")
    }

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

/// The routes' decision about a file.
package enum RoutingResult: Sendable {
    case plan(Plan)
    /// Ask again with these facts.
    case needs(Set<FileProperty>)
    /// No route takes it.
    case unmatched
    /// The first matching route rejects it; `reason` is a sentence for people.
    case rejected(route: Route, reason: String)
}

/// The content of a file's sidecar.
package struct Sidecar: Sendable, Equatable {
    /// Fields of the destination, as in the route's `with:`.
    package var fields: [String: String]
    /// Labels of the file; they override those of its unit and route.
    package var labels: [String: String]

    package init(fields: [String: String] = [:], labels: [String: String] = [:]) {
        self.fields = fields
        self.labels = labels
    }
}

extension Route {
    /// Whether a destination of the plan gets clean names.
    package func cleansNames(for plan: Plan) -> Bool {
        plan.destinations.contains { names[$0] ?? .clean == .clean }
    }
}

// Merges a sidecar's fields with the templates of `with:`.
extension Route {
    /// `rendered`, overridden by the sidecar, and a note for each ignored field.
    ///
    /// The sidecar wins field by field: its author knows this file, the route only the folder. It sets only fields of
    /// the destination. Route, key, category and destinations stay with the configuration, so that anyone who can drop
    /// a file cannot choose its place. Fields that no destination of the route supports are ignored with a note. An
    /// empty text clears a field.
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

    /// Fields go into headers and forms: one line each, as from templates. A line break becomes a space.
    static func line(_ text: String) -> String {
        let pieces = text.split { $0.isNewline || $0 == "\t" }
        return KeySanitizer.withoutControls(pieces.joined(separator: " "))
    }
}
