package import InletAgent
internal import InletConfig
internal import InletCore

extension JSONValue: SchemaSample {
    static let schema = Schema.anything
    static var sample: JSONValue? { .null }
}

extension ConfigEdit.List: SchemaSample {}
extension TextDiff.Mark: SchemaSample {}

/// `GET config/form`.
struct ConfigFormReport: Codable, Sendable, NamedSchema {
    struct Entry: Codable, Sendable, NamedSchema {
        /// From 0, in the file's order.
        var number: Int
        var name: String
        var line: Int
        var values: [String: JSONValue]
        var secrets: [String]

        static var schemaName: String { "ConfigEntry" }
        static let notes: [String: SchemaDescription] = [
            "number": "From 0, in the file's order.", "name": "A folder's path, or the name.",
            "values": "As they are written.",
            "secrets": "Keys of secrets that are set, such as auth.api_key: their values are never sent.",
        ]

        init(_ entry: ConfigText.Entry) {
            (number, name, line) = (entry.index, entry.name, entry.line)
            (values, secrets) = (entry.values, entry.secrets)
        }
    }

    var file: String
    var hash: String
    var watch: [Entry]
    var destinations: [Entry]
    var routes: [Entry]
    var errors: [ConfigFault]
    var objection: String?
    var needs_login: Bool?
    var versions: [String]

    static var schemaName: String { "ConfigForm" }
    static let notes: [String: SchemaDescription] = [
        "hash": "SHA-256 of the file's text, for the change.",
        "errors": "Why the file cannot be changed here.",
        "objection": "Why you may not change it here; a try still shows the lines.",
        "needs_login": "Whether another login would help.", "versions": "Former texts, the newest first.",
    ]

    init(_ form: ConfigEditor.Form) {
        func entries(_ list: ConfigEdit.List) -> [Entry] { (form.entries[list] ?? []).map { Entry($0) } }
        (file, hash, errors) = (form.file.display, form.hash, form.errors)
        (watch, destinations, routes) = (entries(.watch), entries(.destinations), entries(.routes))
        (objection, versions) = (form.objection, form.versions)
    }
}

/// The body of a change, or of its try.
struct ConfigOrder: Codable, Sendable, NamedSchema {
    struct Edit: Codable, Sendable, NamedSchema {
        var list: ConfigEdit.List
        var number: Int?
        var name: String?
        var values: [String: JSONValue]?

        static var schemaName: String { "ConfigEdit" }
        static let notes: [String: SchemaDescription] = [
            "number": "Of the entry to change, or without values to remove; nothing adds one.",
            "name": "Of a new destination.",
            "values":
                "New values by key: null removes a key, and an object changes only the keys of a section that it names.",
        ]

        func edit() throws -> ConfigEdit {
            switch (number, values) {
            case (let number?, let values?): ConfigEdit(list, .set(number, values))
            case (let number?, nil): ConfigEdit(list, .remove(number))
            case (nil, let values?): ConfigEdit(list, .add(name: name, values))
            case (nil, nil): throw APIFault.badRequest("a change needs a 'number', 'values', or both")
            }
        }
    }

    var hash: String
    var edits: [Edit]?
    var version: String?

    static let notes: [String: SchemaDescription] = [
        "hash": "Of the text that the form began with.", "edits": "Made one after the other.",
        "version": "Instead of edits: the former text to go back to.",
    ]

    private static let most = 20

    func wish() throws -> ConfigEditor.Wish {
        switch (edits, version) {
        case (let edits?, nil) where (1...Self.most).contains(edits.count): .edits(try edits.map { try $0.edit() })
        case (nil, let version?): .version(version)
        default: throw APIFault.badRequest("give 'edits' (1 to \(Self.most)), or a 'version'")
        }
    }
}

/// A line of a comparison.
struct DiffLineReport: Codable, Sendable, Equatable, NamedSchema {
    var mark: TextDiff.Mark
    var text: String

    static var schemaName: String { "DiffLine" }

    init(_ line: TextDiff.Line) { (mark, text) = (line.mark, line.text) }
}

/// The effects of a change.
struct ConfigTrialReport: Codable, Sendable, NamedSchema {
    struct Files: Codable, Sendable, NamedSchema {
        var planned: Int
        var known: Int
        var others: Int
        var partial: Bool
        var examples: [DryRunReport]

        static var schemaName: String { "ConfigTrialFiles" }
        static let notes: [String: SchemaDescription] = [
            "planned": "Files that would be sent.", "known": "Files that the journal knows.",
            "others": "Files that would not be sent.", "partial": "Whether there are more than were looked at.",
        ]
    }

    var ok: Bool
    var checked: Bool
    var diff: [DiffLineReport]
    var changes: [ReloadReport.Change]
    var errors: [ConfigFault]
    var warnings: [ConfigFault]
    var restart: String?
    var files: Files?

    static var schemaName: String { "ConfigTrial" }
    static let notes: [String: SchemaDescription] = [
        "checked": "Whether the values were checked, and not only the text: that needs the right to apply.",
        "changes": "Against the configuration in effect.",
        "restart": "Why it takes effect only after a restart.",
        "files": "The plans for the files that are there; with full access.",
    ]

    init(_ trial: ConfigEditor.Trial) {
        (ok, checked) = (trial.errors.isEmpty, trial.isChecked)
        diff = trial.diff.map { DiffLineReport($0) }
        changes = trial.changes.map { ReloadReport.Change($0) }
        (errors, warnings, restart) = (trial.errors, trial.warnings, trial.restart)
        files = trial.files.map { files in
            Files(
                planned: files.planned, known: files.known, others: files.others, partial: files.isPartial,
                examples: files.findings.map { DryRunReport($0, redact: files.redact) })
        }
    }
}

extension DryRunReport {
    /// Every file, with any verdict; its texts without secrets.
    init(_ finding: DryRun.Finding, redact: (String) -> String) {
        self.init(finding)
        (path, key, reason) = (redact(path), key.map(redact), reason.map(redact))
    }

    /// Every file, with any verdict.
    package init(_ finding: DryRun.Finding) {
        self.init(path: finding.path.display, size: finding.size, verdict: Verdict(finding.verdict))
        unit = finding.unit?.display
        switch finding.verdict {
        case .planned(let plan, let steps):
            (route, destinations) = (plan.route, steps.destinations)
            (key, on_success) = (plan.key, plan.onSuccess.rawValue)
        case .rejected(let route, let reason): (self.route, self.reason) = (route, reason)
        case .known(let job, let state): (self.job, reason) = (job, state.rawValue)
        case .along(let path), .awaited(let path): reason = path.display
        case .unreadable(let reason): self.reason = reason
        case .unmatched, .skipped, .adopted, .irregular: break
        }
    }
}

extension DryRunReport.Verdict {
    package init(_ verdict: DryRun.Verdict) {
        self =
            switch verdict {
            case .planned: .planned
            case .rejected: .rejected
            case .along: .along
            case .awaited: .awaited
            case .known: .known
            case .adopted: .adopted
            case .unreadable: .unreadable
            case .unmatched: .unmatched
            case .skipped: .skipped
            case .irregular: .irregular
            }
    }
}
