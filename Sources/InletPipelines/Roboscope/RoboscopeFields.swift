internal import Foundation
internal import InletCore
package import SystemPackage

/// The fields of a file's route, checked before the first request to the server.
struct RoboscopeFields: Sendable, Equatable {
    /// The key of the space; nil for markers whose file names it.
    var space: String?
    /// The name of a new space; its key when nil.
    var name: String?
    var sessionType: String
    /// nil = `done` for a completely delivered folder, and `active` for markers of their own.
    var sessionStatus: String?
    var role: RoboscopeRole

    static let types = ["inspection", "repair", "other"]
    static let statuses = ["draft", "active", "done", "archived"]
    private static let roles = ["auto"] + RoboscopeRole.allCases.map(\.rawValue)

    static let specs = [
        FieldSpec("space", default: "{folder[1]}", "Key of the file's space."),
        FieldSpec("name", "Name of a new space; its key without this."),
        FieldSpec("session_type", default: "inspection", choices: types, "inspection, repair or other."),
        FieldSpec(
            "session_status", choices: statuses, "State of a session at its end: draft, active, done or archived."),
        FieldSpec("role", default: "auto", choices: roles, "auto, model, scan, preview, markers, session or file."),
    ]

    /// Unknown names belong to other destinations and are left out.
    init(_ fields: [String: String], path: FilePath) throws(SettingFault) {
        func text(_ name: String) -> String? {
            (fields[name]?.trimmingCharacters(in: .whitespacesAndNewlines)).flatMap { $0.isEmpty ? nil : $0 }
        }
        space = text("space")
        name = text("name")
        sessionType = try Self.choice(text("session_type") ?? "inspection", "session_type", Self.types)
        sessionStatus = try text("session_status").map { value throws(SettingFault) in
            try Self.choice(value, "session_status", Self.statuses)
        }
        let word = text("role") ?? "auto"
        role = RoboscopeRole(path)
        if word != "auto" {
            role = RoboscopeRole(rawValue: try Self.choice(word, "role", Self.roles)) ?? role
        }
        for (name, limit) in [("space", 200), ("name", 200)] {
            let length = text(name)?.unicodeScalars.count ?? 0
            if length > limit { throw SettingFault(key: name, message: "has \(length) characters; \(limit) are taken") }
        }
        if role == .model, RoboscopeRole.models[FileName(path).plainExtension] == nil {
            throw SettingFault(key: "role", message: "is model, but the file is not a glb, usdc or usdz")
        }
    }

    static let noSpace =
        "no space is named; put the file into a folder named as its space, or set it with: { space: KEY }"

    /// Resolves these fields for the file at `path`.
    static func reading(_ fields: [String: String], path: FilePath) -> FieldReading {
        do throws(SettingFault) {
            let read = try RoboscopeFields(fields, path: path)
            let decided = fields["role"] == read.role.rawValue ? [:] : ["role": read.role.rawValue]
            let missing = read.space == nil ? objection(withoutSpace: read.role) : nil
            return (decided, missing)
        } catch {
            return ([:], "\(error.key) \(error.message)")
        }
    }

    private static func objection(withoutSpace role: RoboscopeRole) -> String? {
        switch role {
        case .model, .scan, .preview, .session: noSpace
        case .markers: noSpace + "; markers may name it themselves"
        case .file: nil
        }
    }

    static func choice(_ text: String, _ field: String, _ known: [String]) throws(SettingFault) -> String {
        let word = text.lowercased()
        if known.contains(word) { return word }
        let hint = Suggestion.hint(word, in: known)
        let shown = DisplayText.escape(String(text.prefix(60)))
        throw SettingFault(key: field, message: "'\(shown)' is not one of \(known.joined(separator: ", "))\(hint)")
    }
}

/// The role of a file at Roboscope.
package enum RoboscopeRole: String, Sendable, CaseIterable {
    /// `model_glb_url` or `model_usdc_url` of its space.
    case model
    /// `scan_url` of its space.
    case scan
    /// `preview_url` of its space.
    case preview
    /// A list of markers for a session.
    case markers
    /// Settings for the session of its folder: `session.yaml`.
    case session
    /// A file of a session, for example of an offloaded card. Nothing is registered for it alone.
    case file

    /// The role of the file at `path` (below its root), by its name; nil for `isInUnit` leaves the question open.
    ///
    /// A picture beside a model of the same name is the model's preview when it travels with it; alone it is one only when
    /// it is called `preview`.
    package init(_ path: FilePath) {
        let name = FileName(path)
        let ending = name.plainExtension
        let stem = String(decoding: name.stem, as: UTF8.self).lowercased()
        switch ending {
        case "json" where stem == "markers", "yaml" where stem == "markers", "yml" where stem == "markers":
            self = .markers
        case "json" where stem == "session", "yaml" where stem == "session", "yml" where stem == "session":
            self = .session
        case _ where Self.scans.contains(ending) && Self.isBelowScans(path): self = .scan
        case _ where Self.models[ending] != nil: self = .model
        case _ where Self.pictures.contains(ending) && stem == "preview": self = .preview
        default: self = .file
        }
    }

    /// The field of a space for the URL of a model with this ending.
    static let models = ["glb": "model_glb_url", "usdc": "model_usdc_url", "usdz": "model_usdc_url"]
    private static let scans: Set = ["usdc", "usdz", "obj", "ply"]
    static let pictures: Set = ["png", "jpg", "jpeg", "webp"]

    private static func isBelowScans(_ path: FilePath) -> Bool {
        path.removingLastComponent().components.contains { $0.string.lowercased() == "scans" }
    }

    /// Whether the file's bytes must be in the storage first. Markers and session files are read here.
    package var needsStorage: Bool {
        switch self {
        case .model, .scan, .preview, .file: true
        case .markers, .session: false
        }
    }
}
