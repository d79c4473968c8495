internal import InletCore
internal import SystemPackage

/// The fields of a file's route, checked before anything is asked of the server.
struct RoboscopeFields: Sendable, Equatable {
    /// The key of the space; nil for markers whose file says it.
    var space: String?
    /// What a space that has to be made is called; its key when nil.
    var name: String?
    var sessionType: String
    /// nil = `done` for a folder that has been delivered whole, and `active` for markers of their own.
    var sessionStatus: String?
    var role: RoboscopeRole

    static let types = ["inspection", "repair", "other"]
    static let statuses = ["draft", "active", "done", "archived"]
    private static let roles = ["auto"] + RoboscopeRole.allCases.map(\.rawValue)

    static let specs = [
        FieldSpec("space", default: "{folder[1]}", "Key of the space that the file belongs to."),
        FieldSpec("name", "What a new space is called; its key when left out."),
        FieldSpec("session_type", default: "inspection", choices: types, "inspection, repair or other."),
        FieldSpec("session_status", choices: statuses, "How a session ends: draft, active, done or archived."),
        FieldSpec("role", default: "auto", choices: roles, "auto, model, scan, preview, markers, session or file."),
    ]

    /// What is wrong with a field, for a person.
    struct Fault: Error, Equatable {
        var field: String
        var reason: String
    }

    /// Names that Roboscope does not know belong to other destinations and stay out.
    init(_ fields: [String: String], path: FilePath) throws(Fault) {
        func text(_ name: String) -> String? {
            fields[name].map(Self.trimmed).flatMap { $0.isEmpty ? nil : $0 }
        }
        space = text("space")
        name = text("name")
        sessionType = try Self.choice(text("session_type") ?? "inspection", "session_type", Self.types)
        sessionStatus = try text("session_status").map { value throws(Fault) in
            try Self.choice(value, "session_status", Self.statuses)
        }
        let word = text("role") ?? "auto"
        role = RoboscopeRole(path)
        if word != "auto" {
            role = RoboscopeRole(rawValue: try Self.choice(word, "role", Self.roles)) ?? role
        }
        for (name, limit) in [("space", 200), ("name", 200)] {
            let length = text(name)?.unicodeScalars.count ?? 0
            if length > limit { throw Fault(field: name, reason: "has \(length) characters; \(limit) are taken") }
        }
        if role == .model, RoboscopeRole.models[FileName(path).plainExtension] == nil {
            throw Fault(field: "role", reason: "is model, but the file is none of glb, usdc and usdz")
        }
    }

    static let noSpace =
        "no space is named; put the file into a folder named as its space, or set it with: { space: KEY }"

    /// What these fields come to for the file at `path`.
    static func reading(_ fields: [String: String], path: FilePath) -> FieldReading {
        do throws(Fault) {
            let read = try RoboscopeFields(fields, path: path)
            let decided = fields["role"] == read.role.rawValue ? [:] : ["role": read.role.rawValue]
            let missing = read.space == nil ? objection(withoutSpace: read.role) : nil
            return FieldReading(decided: decided, objection: missing)
        } catch {
            return FieldReading(objection: "\(error.field) \(error.reason)")
        }
    }

    private static func objection(withoutSpace role: RoboscopeRole) -> String? {
        switch role {
        case .model, .scan, .preview, .session: noSpace
        case .markers: noSpace + "; markers may name it themselves"
        case .file: nil
        }
    }

    private static func trimmed(_ text: String) -> String {
        let rest = text.drop { $0.isWhitespace }
        return String(rest.dropLast(rest.reversed().prefix { $0.isWhitespace }.count))
    }

    static func choice(_ text: String, _ field: String, _ known: [String]) throws(Fault) -> String {
        let word = text.lowercased()
        if known.contains(word) { return word }
        let hint = Suggestion.nearest(to: word, in: known).map { "; did you mean '\($0)'?" } ?? ""
        let shown = DisplayText.escape(String(text.prefix(60)))
        throw Fault(field: field, reason: "'\(shown)' is not one of \(known.joined(separator: ", "))\(hint)")
    }
}
