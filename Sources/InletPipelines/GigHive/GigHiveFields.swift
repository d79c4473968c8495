internal import Foundation
internal import InletCore

/// The fields sent with a file, checked against the server's limits before a byte is sent.
struct GigHiveFields: Sendable {
    /// In the order of `specs`, without empty ones.
    let values: [(name: String, value: String)]

    static let specs = [
        FieldSpec("label", default: "{stem}", "Title that people see; 1 to 255 characters."),
        FieldSpec("event_date", default: "{mtime:yyyy-MM-dd}", "Day of the event, such as 2026-11-21."),
        FieldSpec("org_name", default: "Band", "Band or family of the event; up to 128 characters."),
        FieldSpec("event_type", default: "band", "band, wedding or other."),
        FieldSpec("participants", "Names, separated by commas."),
        FieldSpec("keywords", "Search words, separated by commas."),
        FieldSpec("location", "Place of the event; up to 255 characters."),
        FieldSpec("rating", "One digit, 0 to 9."),
        FieldSpec("notes", "Free text about the event."),
    ]

    /// The limits of GigHive's database columns, in characters.
    private static let limits = ["label": 255, "org_name": 128, "location": 255]
    private static let eventTypes = ["band", "wedding", "other"]

    /// Checks and cleans `fields`; unknown names belong to other destinations and are left out.
    ///
    /// - Parameters:
    ///   - defaults: for missing or empty fields.
    ///   - isGuest: guests' labels are measured in bytes, and the server sets their event.
    init(_ fields: [String: String], defaults: [String: String], isGuest: Bool) throws(SettingFault) {
        var values: [(String, String)] = []
        for spec in Self.specs where spec.name == "label" || !isGuest {
            var text = Self.clean(fields[spec.name], spec.name)
            if text.isEmpty { text = Self.clean(defaults[spec.name], spec.name) }
            if let reason = Self.objection(to: text, in: spec.name, isGuest) {
                throw SettingFault(key: spec.name, message: reason)
            }
            if !text.isEmpty { values.append((spec.name, text)) }
        }
        self.values = values
    }

    /// Cleans a value as the server does before it checks: trims white space, makes a name's inner white space single,
    /// and compares names in normal form C.
    private static func clean(_ text: String?, _ name: String) -> String {
        let trimmed = (text ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        guard name == "org_name" || name == "label" else { return trimmed }
        let composed = trimmed.precomposedStringWithCanonicalMapping
        guard name == "org_name" else { return composed }
        return composed.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private static func objection(to text: String, in name: String, _ isGuest: Bool) -> String? {
        let length = isGuest ? text.utf8.count : text.unicodeScalars.count
        if let limit = limits[name], length > limit {
            return "has \(length) \(isGuest ? "bytes" : "characters"); the server takes \(limit)"
        }
        switch name {
        case "label": return text.isEmpty ? "is empty; the server needs one" : nil
        case "event_date": return text.isEmpty || isDate(text) ? nil : "\(shown(text)) is no date; write 2026-11-21"
        case "event_type" where !text.isEmpty && !eventTypes.contains(text):
            let hint = Suggestion.hint(text, in: eventTypes)
            return "\(shown(text)) is not one of \(eventTypes.joined(separator: ", "))\(hint)"
        case "rating" where !text.isEmpty && !(text.utf8.count == 1 && ("0"..."9").contains(text)):
            return "\(shown(text)) is not a digit from 0 to 9"
        default: return nil
        }
    }

    /// A day of the Gregorian calendar in ASCII digits, in the range of MySQL's DATE.
    static func isDate(_ text: String) -> Bool {
        text.utf8.count == 10 && text >= "1000" && WallTime(rfc3339: text + "T00:00:00Z") != nil
    }

    private static func shown(_ text: String) -> String { "'\(DisplayText.escape(String(text.prefix(60))))'" }
}

/// The files that a GigHive server accepts, by its default lists of extensions.
extension GigHivePipeline {
    private static let audio = words("mp3 wav flac aac m4a m4p aif aifc aiff ogg oga au m2a wma")
    private static let video = words(
        "mp4 mov mkv webm m4v avi mpg mpeg ts m2t m2ts ogv mxf flv rm rmvb rv wmv vob m2v bup ifo")

    /// Media types from the IANA registry that general tables lack.
    private static let rare = [
        "m4p": "audio/mp4", "m2a": "audio/mpeg", "au": "audio/basic", "m2t": "video/mp2t",
        "rv": "video/vnd.rn-realvideo",
        "rm": "application/vnd.rn-realmedia", "rmvb": "application/vnd.rn-realmedia-vbr",
    ]

    /// Whether the server accepts a file with this extension (lower case, without the dot).
    static func takes(_ ext: String) -> Bool { audio.contains(ext) || video.contains(ext) }

    /// The media type to declare. The server takes audio or video from it, and the rest from the extension.
    static func declaredType(_ ext: String, mediaType: String) -> String {
        mediaType == MediaType.unknown ? rare[ext] ?? mediaType : mediaType
    }

    /// Why the server will refuse the file; nil if it will not.
    static func objection(to name: FileName) -> String? {
        let ext = name.plainExtension
        if takes(ext) { return nil }
        let shown = DisplayText.escape(name.bytes)
        if ext.isEmpty { return "\(shown) has no extension; the server tells audio and video by it" }
        let hint =
            Suggestion.nearest(to: ext, in: (audio.union(video)).sorted()).map { "; did you mean '.\($0)'?" } ?? ""
        return "\(shown): the server takes no '.\(DisplayText.escape(ext))' files, only audio and video\(hint)"
    }

    private static func words(_ text: String) -> Set<String> { Set(text.split(separator: " ").map(String.init)) }
}
