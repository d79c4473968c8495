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

/// How a sidecar's fields meet the templates of `with:`.
///
/// The sidecar wins field by field: who wrote it knows this one file, the route knows the folder. It sets fields of the
/// destination and nothing else; route, key, category and where the file goes stay the configuration's, so that who can
/// drop a file cannot choose its place. Fields that no destination of the route knows are left out with a note. An
/// empty text empties a field.
struct SidecarMerge {
    private let taken: [String: String]
    /// One for each field that was left out.
    let notes: [String]

    /// - Parameter known: the fields that may be set; nil = any.
    init(_ metadata: [String: String], known: Set<String>?) {
        guard let known else {
            taken = metadata.mapValues(Self.line)
            notes = []
            return
        }
        taken = metadata.filter { known.contains($0.key) }.mapValues(Self.line)
        notes = metadata.keys.filter { !known.contains($0) }.sorted().map { Self.note($0, known) }
    }

    private static func note(_ name: String, _ known: Set<String>) -> String {
        let hint = Suggestion.nearest(to: name, in: known.sorted()).map { "; did you mean '\($0)'?" } ?? ""
        return "the sidecar's field '\(DisplayText.escape(name))' is none of the destination's and is left out\(hint)"
    }

    /// `rendered` with what the sidecar says in its place.
    func over(_ rendered: [String: String]) -> [String: String] { rendered.merging(taken) { _, sidecar in sidecar } }

    /// Fields go into headers and forms: one line each, as templates give it. A break becomes a space.
    static func line(_ text: String) -> String {
        let pieces = text.split { $0.isNewline || $0 == "\t" }
        return KeySanitizer.withoutControls(pieces.joined(separator: " "))
    }
}
