/// The fate of a source file, as in the journal's `disposition` column.
package enum Disposition {
    /// The file stays in place.
    package static let kept = "kept"
    /// The same, although a person wanted it to go.
    package static func kept(because why: String) -> String { "\(kept): \(why)" }
    package static let deleted = "deleted"
    /// A person had it removed, because this was proved.
    package static func deleted(because why: String) -> String { "\(deleted): \(why)" }
    package static func archived(_ path: String) -> String { "archived: \(path)" }
    package static func quarantined(_ path: String) -> String { "quarantined: \(path)" }
    /// The file was gone or replaced when its turn came; nothing was done.
    package static func untouched(_ why: String) -> String { "untouched: \(why)" }

    /// It could not be moved or removed; the next attempt follows.
    package static func stuck(_ why: String) -> String { "waiting: could not be put away: \(why)" }

    /// The place of a quarantined file, for people; nil for every other fate.
    package static func quarantine(_ text: String?) -> String? {
        guard let text, text.hasPrefix(quarantined("")) else { return nil }
        return String(text.dropFirst(quarantined("").count))
    }

    /// Whether the file is in its place, untouched.
    package static func isKept(_ text: String?) -> Bool { text == kept || text?.hasPrefix(kept(because: "")) == true }
    /// The same as SQL. No other fate begins like that.
    static let isKept = "(disposition = '\(kept)' OR disposition LIKE '\(kept(because: ""))%')"

    /// Whether this freed the path, so that a file dropped there later is new.
    static func vacates(_ text: String?) -> Bool {
        guard let text, text != kept else { return false }
        return text == deleted || away.contains { text.hasPrefix($0) }
    }

    private static let away = [deleted(because: ""), archived(""), quarantined("")]
}
