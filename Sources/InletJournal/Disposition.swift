/// What became of a source file, as the journal's `disposition` column says it.
package enum Disposition {
    /// The file stays where it is.
    package static let kept = "kept"
    package static let deleted = "deleted"
    package static func archived(_ path: String) -> String { "archived: \(path)" }
    package static func quarantined(_ path: String) -> String { "quarantined: \(path)" }
    /// The file was gone or another one when its turn came; nothing was done.
    package static func untouched(_ why: String) -> String { "untouched: \(why)" }

    /// It could not be moved or removed, and is tried again.
    package static func stuck(_ why: String) -> String { "waiting: could not be put away: \(why)" }

    /// Where this says that a quarantined file is, as people read it; nil for every other end.
    package static func quarantine(_ text: String?) -> String? {
        guard let text, text.hasPrefix(quarantined("")) else { return nil }
        return String(text.dropFirst(quarantined("").count))
    }

    /// Whether this left the path free, so that a file dropped there later is a new one.
    static func vacates(_ text: String?) -> Bool {
        guard let text else { return false }
        return text == deleted || text.hasPrefix("archived: ") || text.hasPrefix("quarantined: ")
    }
}
